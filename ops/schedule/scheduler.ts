import type { Config } from '../../src/config/schema.ts';
import type { Log } from '../../src/core/ports.ts';
import { type Clocks, isoUtc } from '../../src/core/time.ts';
import type { OpsDocument } from '../../src/http/api/ops-schema.ts';
import type { NotifierState } from '../notify/notifier.ts';
import { Copies, type CopyFiles } from './copies.ts';
import { type Execution, execute } from './execution.ts';
import type { LeftRun } from './inbox.ts';
import { FREQUENT, HEAVY, hasFailed, JOB_NAMES, type JobName, type JobRecord, lastLines, newRecord, type Run, withRun } from './jobs.ts';
import { type Decision, decide, decideAtStart, EARLIEST_MS, nextAfterPutBack, pass, type Reckoning } from './reckoning.ts';
import type { Runner } from './runners.ts';
import { Timetable } from './timetable.ts';
import { zoneOf } from './zone.ts';

export interface SchedulerOptions {
  readonly config: Config['ops'];
  readonly clocks: Clocks;
  readonly log: Log;
  readonly runners: Readonly<Record<JobName, Runner>>;
  readonly state: CopyFiles & { load(): OpsDocument };
  /** Runs by hand since the last call. */
  readonly takeRuns: () => readonly LeftRun[];
  readonly onRun: (name: JobName, run: Run) => void;
  /** As they are now; null: they are off. */
  readonly notifications: () => NotifierState | null;
  /** From the request to end a run to giving up on it. */
  readonly graceSeconds: number;
  /** What was missed is made up for so long after it was noticed: just after the start, or waking up, there is enough to do. */
  readonly catchUpAfterSeconds: number;
}

interface Job {
  record: JobRecord;
  timetable: Timetable | null;
  /** The time that had its run last. */
  lastDueMs: number | null;
  /** When what was missed is to be made up for, in monotonic seconds. */
  catchUpAt: number | null;
  execution: Execution | null;
}

/** Beats are no further apart: a clock that is set, or a machine that wakes up, is noticed within so long. */
const BEAT_SECONDS = 15;

/**
 * Runs jobs at their times. It has no timer for that: whoever owns it calls `beat` when `nextBeatMilliseconds` are over, or at any other
 * moment. Never runs a job beside itself.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #jobs = new Map<JobName, Job>();
  readonly #copies: Copies;
  #config: Config['ops'];
  #reckoning: Reckoning;
  readonly #started: string;
  #isStopping = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#config = options.config;
    this.#copies = new Copies({
      files: options.state,
      monotonicSeconds: options.clocks.monotonicSeconds,
      live: () => this.document(),
      durable: () => this.#durableDocument(),
    });
    this.#reckoning = { reading: this.#read(), coveredMs: null };
    this.#started = isoUtc(this.#reckoning.reading.wallMilliseconds);
  }

  /** Takes up where the last scheduler ended. */
  start(): void {
    const past = this.#options.state.load();
    const nowMs = this.#reckoning.reading.wallMilliseconds;
    const beatMs = past.scheduler.beat === null ? null : Date.parse(past.scheduler.beat);
    this.#reckoning = { ...this.#reckoning, coveredMs: beatMs !== null && beatMs >= EARLIEST_MS ? beatMs : null };
    for (const name of JOB_NAMES) {
      const known = past.jobs.find((job) => job.name === name);
      const job = this.#newJob(name, known);
      this.#jobs.set(name, job);
      const { timetable } = job;
      if (!timetable) continue;
      if (known && beatMs !== null && known.schedule === job.record.schedule) {
        const nextMs = known.next === null ? null : Date.parse(known.next);
        const before = { beatMs, nextMs, wasRunning: known.running_since !== null };
        this.#apply(name, job, decideAtStart(timetable, before, nowMs, this.#catchesUp(name)));
      }
      this.#plan(job, nextAfterPutBack(timetable, nowMs, job.lastDueMs));
    }
    this.#takeIn();
    this.#copies.saveBoth();
  }

  /** Begins what is due. */
  beat(): void {
    if (this.#isStopping) return;
    const { fromMs, isBack, reckoning, sleptSeconds, steppedSeconds } = pass(this.#reckoning, this.#read());
    this.#reckoning = reckoning;
    const nowMs = reckoning.reading.wallMilliseconds;
    if (steppedSeconds !== 0) this.#options.log('notice', 'clock stepped', { seconds: steppedSeconds });
    if (sleptSeconds !== 0) this.#options.log('notice', 'system suspended', { seconds: sleptSeconds });
    for (const [name, job] of this.#jobs) {
      const { timetable } = job;
      if (!timetable) continue;
      if (isBack) this.#plan(job, nextAfterPutBack(timetable, nowMs, job.lastDueMs));
      else if (job.record.next !== null && nowMs >= Date.parse(job.record.next)) {
        // Not before its next time: clocks may have been put back over times that had their runs.
        const since = Math.max(fromMs, Date.parse(job.record.next) - 1);
        this.#apply(name, job, decide(timetable, since, nowMs, this.#catchesUp(name)));
        this.#plan(job, timetable.next(nowMs));
      }
      if (job.catchUpAt !== null && reckoning.reading.monotonicSeconds >= job.catchUpAt) this.#begin(name, job, 'catch_up', job.lastDueMs);
    }
    this.#takeIn();
    this.#copies.beat();
  }

  /** Notifications changed their state. */
  saveLive(): void {
    this.#copies.saveLive();
  }

  /** How long nothing is due. */
  nextBeatMilliseconds(): number {
    const { monotonicSeconds, wallMilliseconds } = this.#read();
    let waitMs = BEAT_SECONDS * 1000;
    for (const { catchUpAt, record } of this.#jobs.values()) {
      if (record.next !== null) waitMs = Math.min(waitMs, Date.parse(record.next) - wallMilliseconds);
      if (catchUpAt !== null) waitMs = Math.min(waitMs, (catchUpAt - monotonicSeconds) * 1000);
    }
    return Math.max(1, Math.ceil(waitMs));
  }

  reload(config: Config['ops']): void {
    const hasMoved = config.timezone !== this.#config.timezone;
    this.#config = config;
    const { wallMilliseconds: nowMs } = this.#read();
    for (const [name, job] of this.#jobs) {
      if (!hasMoved && config[name] === job.record.schedule) continue;
      job.timetable = this.#timetableOf(name);
      job.catchUpAt = job.timetable ? job.catchUpAt : null;
      job.record = { ...job.record, schedule: config[name] };
      this.#plan(job, job.timetable?.next(nowMs) ?? null);
    }
    this.#copies.saveBoth();
  }

  /** Ends what runs; resolves when that has ended or was given up, and the state is on the disk. A second call waits for the same. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const running = [...this.#jobs.values()].map(({ execution }) => execution).filter((execution) => execution !== null);
    for (const execution of running) execution.stop();
    await Promise.all(running.map(({ ended }) => ended));
    this.#takeIn();
    await this.#copies.end();
  }

  document(): OpsDocument {
    const { wallMilliseconds: beatMs } = this.#reckoning.reading;
    const notifications = this.#options.notifications();
    return {
      scheduler: { state: this.#isStopping ? 'stopped' : 'running', started: this.#started, beat: isoUtc(beatMs) },
      // What is still to be made up for is overdue: should this process end before, the next one finds it so.
      jobs: [...this.#jobs.values()].map(({ lastDueMs, catchUpAt, record }) =>
        catchUpAt === null || lastDueMs === null ? record : { ...record, next: isoUtc(lastDueMs) },
      ),
      ...(notifications === null || this.#isStopping ? {} : { notifications }),
    };
  }

  /** On the disk an unset clock must not stand for when the scheduler ran last: what was missed meanwhile would be forgotten. */
  #durableDocument(): OpsDocument {
    const { coveredMs, reading } = this.#reckoning;
    if (reading.wallMilliseconds >= EARLIEST_MS || coveredMs === null) return this.document();
    const { jobs, scheduler, ...rest } = this.document();
    return { ...rest, scheduler: { ...scheduler, beat: isoUtc(coveredMs) }, jobs: jobs.map((job) => ({ ...job, next: null })) };
  }

  #newJob(name: JobName, known: JobRecord | undefined): Job {
    const schedule = this.#config[name];
    const record = { ...(known ?? newRecord(name, schedule)), schedule, next: null, running_since: null };
    // Nearly when its time was; where it ran by hand no time was used up.
    const lastDueMs = record.last && record.last.trigger !== 'manual' ? Date.parse(record.last.started) : null;
    return { record, timetable: this.#timetableOf(name), lastDueMs, catchUpAt: null, execution: null };
  }

  #timetableOf(name: JobName): Timetable | null {
    const schedule = this.#config[name];
    return schedule === 'off' ? null : new Timetable(schedule, zoneOf(this.#config.timezone));
  }

  #catchesUp(name: JobName): boolean {
    return (this.#config.catch_up as readonly string[]).includes(name);
  }

  #plan(job: Job, nextMs: number | null): void {
    job.record = { ...job.record, next: nextMs === null ? null : isoUtc(nextMs) };
  }

  #apply(name: JobName, job: Job, { dueMs, missed, run }: Decision): void {
    if (missed > 0) {
      this.#copies.isDirty = true;
      job.record = { ...job.record, missed: job.record.missed + missed };
      const fields = { job: name, times: missed, last: dueMs === null ? null : isoUtc(dueMs) };
      this.#options.log('warning', run === 'catch_up' ? 'run missed, catch-up pending' : 'run missed', fields);
    }
    if (run === null || dueMs === null) return;
    if (run === 'schedule') {
      this.#begin(name, job, 'schedule', dueMs);
    } else {
      job.lastDueMs = dueMs;
      job.catchUpAt = this.#reckoning.reading.monotonicSeconds + this.#options.catchUpAfterSeconds;
    }
  }

  #begin(name: JobName, job: Job, trigger: 'schedule' | 'catch_up', dueMs: number | null): void {
    // Whichever comes first makes up for what was missed.
    job.catchUpAt = null;
    job.lastDueMs = dueMs;
    if (job.execution) {
      this.#overlap(name, job);
      return;
    }
    const startedMs = this.#options.clocks.wallMilliseconds();
    job.record = { ...job.record, running_since: isoUtc(startedMs) };
    this.#copies.isDirty = true;
    if (HEAVY.includes(name)) this.#copies.saveDurablySoon();
    const { clocks, graceSeconds, runners } = this.#options;
    job.execution = execute({
      name,
      trigger,
      runner: runners[name],
      deadlineSeconds: this.#config.timeouts[name],
      graceSeconds,
      clocks,
    });
    void this.#follow(name, job, job.execution, dueMs);
  }

  async #follow(name: JobName, job: Job, execution: Execution, dueMs: number | null): Promise<void> {
    const ended = await execution.ended;
    if (ended.kind === 'hanging') {
      this.#options.log('error', 'job hung; no further run until it exits', { job: name });
      this.#count(name, job, ended.run);
      await execution.returned;
      this.#options.log('notice', 'hung job exited', { job: name });
    }
    job.execution = null;
    job.record = { ...job.record, running_since: null };
    if (ended.kind === 'busy') this.#overlap(name, job);
    else if (ended.kind === 'ended') this.#count(name, job, ended.run);
    else if (ended.kind === 'interrupted' && dueMs !== null) {
      // Its time is still owed: the next scheduler finds it in the past.
      this.#plan(job, dueMs);
      this.#options.log('notice', 'run interrupted', { job: name });
    }
    this.#copies.saveLive();
  }

  #overlap(name: JobName, job: Job): void {
    job.record = { ...job.record, overlaps: job.record.overlaps + 1 };
    this.#options.log('warning', 'run skipped: the previous run is still in progress', { job: name, since: job.record.running_since });
  }

  /** Runs by hand count as those of the scheduler do. */
  #takeIn(): void {
    for (const { name, run } of this.#options.takeRuns()) {
      const job = this.#jobs.get(name);
      if (job) this.#count(name, job, run);
    }
  }

  #count(name: JobName, job: Job, ended: Run): void {
    const run = { ...ended, lines: lastLines(ended.lines) };
    const hadFailed = job.record.last !== null && hasFailed(job.record.last);
    job.record = withRun(job.record, run);
    const fields = { job: name, status: run.status, seconds: run.duration_seconds, trigger: run.trigger };
    if (hasFailed(run))
      this.#options.log('error', 'job failed', {
        ...fields,
        line: run.lines.find((line) => line.startsWith(run.status)) ?? run.lines.at(-1),
      });
    else if (hadFailed) this.#options.log('notice', 'job recovered', fields);
    this.#options.onRun(name, run);
    this.#copies.saveLive();
    if (!FREQUENT.includes(name) || hasFailed(run) !== hadFailed) this.#copies.saveDurablySoon();
  }

  #read() {
    const { clocks } = this.#options;
    return { monotonicSeconds: clocks.monotonicSeconds(), wallMilliseconds: clocks.wallMilliseconds(), bootSeconds: clocks.bootSeconds() };
  }
}
