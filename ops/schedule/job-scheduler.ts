import * as cron from 'node-cron';
import type { Config } from '../../src/config/schema.ts';
import { type ClockReading, compareClocks } from '../../src/core/clock-watch.ts';
import type { Log } from '../../src/core/ports.ts';
import { type Clocks, HOUR_MS, isoUtc, MINUTE_MS } from '../../src/core/time.ts';
import type { OpsDocument } from '../../src/http/api/ops-schema.ts';
import type { NotifierState } from '../notify/notifier.ts';
import { CronTimes } from './cron-times.ts';
import { type Execution, execute, type Runner } from './execution.ts';
import {
  FREQUENT,
  HEAVY,
  hasFailed,
  JOB_NAMES,
  type JobName,
  type JobRecord,
  lastLines,
  newRecord,
  type Run,
  withRun,
} from './job-record.ts';
import { LocalClock } from './local-clock.ts';
import type { LeftRun } from './manual-run.ts';
import type { StateFiles } from './state.ts';

/** A run that would begin later than this after its scheduled time is missed. */
const ON_TIME_MS = 30_000;
/** Before this the clock has not been set yet: it is older than the program. */
const EARLIEST_MS = Date.UTC(2026, 0, 1);
/** A clock set back by up to this does not repeat runs at fixed times, and others not within a minute: as in cron(8). */
const NO_REPEAT_MS = 3 * HOUR_MS;
/** Heartbeats come just before a scheduled time, so that they, and not node-cron, are the first to see a clock that was set. */
const EARLY_MS = 100;
/** The disk is written this often where no job ended, and this long after one has: jobs that end together are written together. */
const DURABLE_SECONDS = 300;
const DURABLE_SOON_SECONDS = 2;

export interface JobSchedulerOptions {
  readonly config: Config['ops'];
  readonly clocks: Clocks;
  readonly log: Log;
  readonly runners: Readonly<Record<JobName, Runner>>;
  readonly state: Pick<StateFiles, 'load' | 'saveLive' | 'saveDurable'>;
  /** Runs by hand since the last call. */
  readonly takeRuns: () => readonly LeftRun[];
  readonly onRun: (name: JobName, run: Run) => void;
  /** Called when every job that is due has been started. */
  readonly onBeat: () => void;
  /** Null: they are off. */
  readonly notifications: () => NotifierState | null;
  /** At most this far apart, heartbeats detect what node-cron does not: see `#beat`. */
  readonly beatSeconds: number;
  /** From the request to stop a run until it is considered hung. */
  readonly graceSeconds: number;
  /** Delay of catch-up runs: just after the start, or resuming, the service and the network come up. */
  readonly catchUpAfterSeconds: number;
}

interface ScheduledJob {
  record: JobRecord;
  /** Null: the schedule is off. */
  times: CronTimes | null;
  task: cron.ScheduledTask | null;
  /** Local time up to which each scheduled time had its run, or was counted as missed. */
  accountedTo: number;
  /** The scheduled time of the last run, on the wall clock. */
  dueMs: number | null;
  catchUp: NodeJS.Timeout | null;
  execution: Execution | null;
}

interface Now extends ClockReading {
  /** Local time minus UTC. */
  readonly offsetMs: number;
  readonly local: number;
}

/** `+02:00` */
function offsetName(offsetMs: number): string {
  return `${offsetMs < 0 ? '-' : '+'}${isoUtc(Math.abs(offsetMs)).slice(11, 16)}`;
}

/**
 * Runs jobs on schedule. node-cron 4.6 starts them on time, but it skips a daily time that daylight saving leaves out, pauses for the hour
 * that comes twice, pauses when the clock is set back, and spends 0.1 ms on each time missed when it is set forward. A heartbeat notices
 * such steps and restarts its tasks. Both call the same: it starts what is due since the time accounted for, so whichever comes second
 * finds nothing to do.
 */
export class JobScheduler {
  readonly #options: JobSchedulerOptions;
  readonly #jobs = new Map<JobName, ScheduledJob>();
  readonly #started = isoUtc(Date.now());
  #config: Config['ops'];
  #localClock: LocalClock;
  #now: Now;
  /**
   * The latest time, by a clock that was set, at which a scheduler ran on this data folder; null: never. It is ahead of a clock that is not
   * set yet: runs are missed only from here on.
   */
  #coveredMs: number | null = null;
  #heartbeat: NodeJS.Timeout | null = null;
  #durableSave: NodeJS.Timeout | null = null;
  #isStopping = false;

  constructor(options: JobSchedulerOptions) {
    this.#options = options;
    this.#config = options.config;
    this.#localClock = new LocalClock(options.config.timezone);
    this.#now = this.#readClocks();
  }

  /** Continues from the state that the last scheduler left. */
  start(): void {
    const past = this.#options.state.load();
    const beatMs = past.scheduler.beat === null ? null : Date.parse(past.scheduler.beat);
    this.#coveredMs = beatMs !== null && beatMs >= EARLIEST_MS ? beatMs : null;
    const known = new Map(past.jobs.map((job) => [job.name, job]));
    for (const name of JOB_NAMES) this.#jobs.set(name, this.#newJob(name, known.get(name)));
    for (const [name, job] of this.#jobs) {
      const before = known.get(name);
      this.#startAfresh(job);
      if (before?.schedule === job.record.schedule && beatMs !== null) this.#continue(name, job, before, beatMs);
      this.#planNext(job);
    }
    this.#loadRunsByHand();
    this.#restartTasks();
    this.#beat();
    this.#scheduleHeartbeat();
    this.saveLive();
    void this.#saveDurably();
  }

  #newJob(name: JobName, known: JobRecord | undefined): ScheduledJob {
    const schedule = this.#config[name];
    return {
      record: { ...(known ?? newRecord(name, schedule)), schedule, next: null, running_since: null },
      times: schedule === 'off' ? null : new CronTimes(schedule),
      task: null,
      accountedTo: this.#now.local,
      // A run by hand takes no scheduled time's place.
      dueMs: known?.last && known.last.trigger !== 'manual' ? Date.parse(known.last.started) : null,
      catchUp: null,
      execution: null,
    };
  }

  /** Takes another configuration; only the schedules that differ are affected. */
  reload(config: Config['ops']): void {
    const hasMoved = config.timezone !== this.#config.timezone;
    this.#config = config;
    this.#localClock = new LocalClock(config.timezone);
    this.#now = this.#readClocks();
    for (const [name, job] of this.#jobs) {
      const schedule = config[name];
      if (!hasMoved && schedule === job.record.schedule) continue;
      job.times = schedule === 'off' ? null : new CronTimes(schedule);
      if (!job.times) this.#cancelCatchUp(job);
      job.record = { ...job.record, schedule };
      job.accountedTo = this.#now.local;
      this.#planNext(job);
    }
    this.#restartTasks();
    this.saveLive();
    void this.#saveDurably();
  }

  /** Stops running jobs; resolves when they have ended or are considered hung, and the state is on the disk. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#heartbeat ?? undefined);
    const jobs = [...this.#jobs.values()];
    // Its time stays in the state as overdue, for the next scheduler.
    for (const { catchUp, task } of jobs) {
      clearTimeout(catchUp ?? undefined);
      void task?.destroy();
    }
    const running = jobs.map(({ execution }) => execution).filter((execution) => execution !== null);
    for (const execution of running) execution.stop();
    await Promise.all(running.map(({ ended }) => ended));
    this.#loadRunsByHand();
    this.saveLive();
    await this.#saveDurably();
    clearTimeout(this.#durableSave ?? undefined);
  }

  document(): OpsDocument {
    const notifications = this.#options.notifications();
    return {
      scheduler: {
        state: this.#isStopping ? 'stopped' : 'running',
        started: this.#started,
        beat: isoUtc(this.#now.wallMilliseconds),
      },
      // A catch-up that is pending is overdue: if this process ends before it, the next one finds it.
      jobs: [...this.#jobs.values()].map(({ catchUp, dueMs, record }) =>
        catchUp === null || dueMs === null ? record : { ...record, next: isoUtc(dueMs) },
      ),
      ...(notifications === null || this.#isStopping ? {} : { notifications }),
    };
  }

  saveLive(): void {
    this.#options.state.saveLive(this.document());
  }

  /** Starts every run that is due: called by node-cron at scheduled times, and by the heartbeat. */
  #beat(): void {
    if (this.#isStopping) return;
    const before = this.#now;
    const now = this.#readClocks();
    this.#now = now;
    this.#followClock(before, now);
    const elapsedMs = now.wallMilliseconds - before.wallMilliseconds;
    for (const [name, job] of this.#jobs) {
      if (this.#runDue(name, job, elapsedMs)) this.#planNext(job);
    }
    this.#loadRunsByHand();
    this.#options.onBeat();
  }

  #scheduleHeartbeat(): void {
    const periodMs = this.#options.beatSeconds * 1000;
    // While the clock is not set node-cron does not run: then the heartbeat comes at the full minute.
    const phaseMs = Date.now() + (Date.now() < EARLIEST_MS ? 0 : EARLY_MS);
    this.#heartbeat = setTimeout(
      () => {
        this.#beat();
        this.saveLive();
        this.#scheduleHeartbeat();
      },
      periodMs - (phaseMs % periodMs),
    );
  }

  #restartTasks(): void {
    for (const [name, job] of this.#jobs) {
      void job.task?.destroy();
      job.task = null;
      if (job.times === null || Date.now() < EARLIEST_MS) continue;
      // In the present offset from UTC: node-cron does not have to deal with daylight saving.
      const options = { name, timezone: offsetName(this.#now.offsetMs), noOverlap: true, suppressMissedWarning: true };
      job.task = cron.schedule(this.#config[name], () => this.#beat(), options);
    }
  }

  /** Moves the times accounted for as the clock moved: set, daylight saving begun or ended, suspended. */
  #followClock(before: Now, now: Now): void {
    const nowMs = now.wallMilliseconds;
    const isBack = nowMs < before.wallMilliseconds;
    const covered = this.#coveredMs;
    if (nowMs >= EARLIEST_MS) this.#coveredMs = isBack ? nowMs : Math.max(covered ?? 0, nowMs);
    const events = compareClocks(before, now);
    const shiftMs = now.offsetMs - before.offsetMs;
    if (events.length === 0 && shiftMs === 0) return;
    let isForward = false;
    for (const { delta_seconds, kind } of events) {
      this.#options.log('notice', kind === 'step' ? 'clock stepped' : 'system suspended', { seconds: delta_seconds });
      isForward ||= kind === 'step' && delta_seconds > 0;
    }
    for (const job of this.#jobs.values()) {
      if (job.times?.followsClock) job.accountedTo += shiftMs;
      if (isBack) this.#startAfresh(job);
      // The time in between is time that the machine was off, beyond what a scheduler had covered; nothing is known from an unset clock.
      else if (isForward) {
        const fromMs = covered ?? (before.wallMilliseconds < EARLIEST_MS ? nowMs : before.wallMilliseconds);
        job.accountedTo = Math.max(job.accountedTo, Math.min(nowMs, fromMs) + now.offsetMs);
      }
      this.#planNext(job);
    }
    this.#restartTasks();
  }

  /** Scheduled times count from now, or from the last run where the local clock was set back to before it. */
  #startAfresh(job: ScheduledJob): void {
    const ran = job.dueMs === null ? this.#now.local : job.dueMs + this.#localClock.offsetMs(job.dueMs);
    const aheadMs = ran - this.#now.local;
    const isRepeat = aheadMs > 0 && aheadMs <= (job.times?.followsClock ? MINUTE_MS : NO_REPEAT_MS);
    job.accountedTo = isRepeat ? ran : this.#now.local;
  }

  /** Takes up a job where the last scheduler left it. */
  #continue(name: JobName, job: ScheduledJob, known: JobRecord, beatMs: number): void {
    const { local, wallMilliseconds: nowMs } = this.#now;
    // With a clock that is behind nothing can be missed until it is set.
    if (nowMs >= EARLIEST_MS && nowMs > beatMs) {
      if (job.accountedTo === local) job.accountedTo = beatMs + this.#localClock.offsetMs(beatMs);
      this.#runDue(name, job, nowMs - beatMs);
    }
    const nextMs = known.next === null ? null : Date.parse(known.next);
    const isOverdue = known.running_since !== null || (nextMs !== null && nextMs <= beatMs);
    if (isOverdue && job.times && job.execution === null && job.catchUp === null && this.#catchesUp(name))
      this.#scheduleCatchUp(name, job, nextMs ?? nowMs);
  }

  /** Starts the run that is due, counts those that were missed. Returns whether there were any. */
  #runDue(name: JobName, job: ScheduledJob, elapsedMs: number): boolean {
    const { local, wallMilliseconds: nowMs } = this.#now;
    const { count, last } = job.times?.between(job.accountedTo, local) ?? { count: 0, last: null };
    job.accountedTo = Math.max(job.accountedTo, local);
    if (last === null) return false;
    const dueMs = nowMs - (local - last);
    // A time that daylight saving left out is due when the clock is put forward.
    const isOnTime = Math.min(local - last, elapsedMs) <= ON_TIME_MS;
    const missed = elapsedMs <= ON_TIME_MS ? 0 : count - (isOnTime ? 1 : 0);
    const isCaughtUp = !isOnTime && this.#catchesUp(name);
    if (missed > 0) {
      job.record = { ...job.record, missed: job.record.missed + missed };
      const fields = { job: name, times: missed, last: isoUtc(dueMs) };
      this.#options.log('warning', isCaughtUp ? 'run missed, catch-up pending' : 'run missed', fields);
    }
    if (isOnTime) this.#run(name, job, 'schedule', dueMs);
    else if (isCaughtUp) this.#scheduleCatchUp(name, job, dueMs);
    return true;
  }

  #catchesUp(name: JobName): boolean {
    return (this.#config.catch_up as readonly string[]).includes(name);
  }

  /** However many runs were missed, one catches up. */
  #scheduleCatchUp(name: JobName, job: ScheduledJob, dueMs: number): void {
    this.#cancelCatchUp(job);
    job.dueMs = dueMs;
    job.catchUp = setTimeout(() => this.#run(name, job, 'catch_up', dueMs), this.#options.catchUpAfterSeconds * 1000);
  }

  #cancelCatchUp(job: ScheduledJob): void {
    clearTimeout(job.catchUp ?? undefined);
    job.catchUp = null;
  }

  #planNext(job: ScheduledJob): void {
    const next = job.times?.next(Math.max(job.accountedTo, this.#now.local)) ?? null;
    job.record = { ...job.record, next: next === null ? null : isoUtc(this.#localClock.momentOf(next, this.#now.wallMilliseconds)) };
  }

  #run(name: JobName, job: ScheduledJob, trigger: 'schedule' | 'catch_up', dueMs: number): void {
    this.#cancelCatchUp(job);
    job.dueMs = dueMs;
    if (job.execution) {
      this.#countOverlap(name, job);
      return;
    }
    job.record = { ...job.record, running_since: isoUtc(Date.now()) };
    const { graceSeconds, runners } = this.#options;
    const timeoutSeconds = this.#config.timeouts[name];
    job.execution = execute({ name, trigger, runner: runners[name], timeoutSeconds, graceSeconds });
    void this.#follow(name, job, job.execution, dueMs);
    this.saveLive();
    if (HEAVY.includes(name)) this.#saveDurablyIn(DURABLE_SOON_SECONDS);
  }

  async #follow(name: JobName, job: ScheduledJob, execution: Execution, dueMs: number): Promise<void> {
    const ended = await execution.ended;
    if (ended.kind === 'hung') {
      this.#options.log('error', 'job hung; no further run until it exits', { job: name });
      this.#count(name, job, ended.run);
      await execution.returned;
      this.#options.log('notice', 'hung job exited', { job: name });
    }
    job.execution = null;
    job.record = { ...job.record, running_since: null };
    if (ended.kind === 'busy') this.#countOverlap(name, job);
    else if (ended.kind === 'ended') this.#count(name, job, ended.run);
    else if (ended.kind === 'interrupted') {
      // Overdue for the next scheduler, which catches up.
      job.record = { ...job.record, next: isoUtc(dueMs) };
      this.#options.log('notice', 'run interrupted', { job: name });
    }
    this.saveLive();
  }

  #countOverlap(name: JobName, job: ScheduledJob): void {
    job.record = { ...job.record, overlaps: job.record.overlaps + 1 };
    const fields = { job: name, since: job.record.running_since };
    this.#options.log('warning', 'run skipped: the previous run is still in progress', fields);
    this.saveLive();
  }

  #loadRunsByHand(): void {
    for (const { name, run } of this.#options.takeRuns()) {
      const job = this.#jobs.get(name);
      if (job) this.#count(name, job, run);
    }
  }

  #count(name: JobName, job: ScheduledJob, ended: Run): void {
    const run = { ...ended, lines: lastLines(ended.lines) };
    const hadFailed = job.record.last !== null && hasFailed(job.record.last);
    job.record = withRun(job.record, run);
    const fields = { job: name, status: run.status, seconds: run.duration_seconds, trigger: run.trigger };
    const line = run.lines.find((line) => line.startsWith(run.status)) ?? run.lines.at(-1);
    if (hasFailed(run)) this.#options.log('error', 'job failed', { ...fields, line });
    else if (hadFailed) this.#options.log('notice', 'job recovered', fields);
    this.#options.onRun(name, run);
    this.saveLive();
    if (!FREQUENT.includes(name) || hasFailed(run) !== hadFailed) this.#saveDurablyIn(DURABLE_SOON_SECONDS);
  }

  #saveDurablyIn(seconds: number): void {
    clearTimeout(this.#durableSave ?? undefined);
    this.#durableSave = this.#isStopping ? null : setTimeout(() => void this.#saveDurably(), seconds * 1000).unref();
  }

  #saveDurably(): Promise<void> {
    this.#saveDurablyIn(DURABLE_SECONDS);
    return this.#options.state.saveDurable(this.#durableDocument());
  }

  /** On the disk an unset clock must not stand for when the scheduler ran last: runs missed meanwhile would not be noticed. */
  #durableDocument(): OpsDocument {
    if (this.#now.wallMilliseconds >= EARLIEST_MS || this.#coveredMs === null) return this.document();
    const { jobs, scheduler, ...rest } = this.document();
    return { ...rest, scheduler: { ...scheduler, beat: isoUtc(this.#coveredMs) }, jobs: jobs.map((job) => ({ ...job, next: null })) };
  }

  #readClocks(): Now {
    const { clocks } = this.#options;
    const wallMilliseconds = clocks.wallMilliseconds();
    const offsetMs = this.#localClock.offsetMs(wallMilliseconds);
    return {
      monotonicSeconds: clocks.monotonicSeconds(),
      bootSeconds: clocks.bootSeconds(),
      wallMilliseconds,
      offsetMs,
      local: wallMilliseconds + offsetMs,
    };
  }
}
