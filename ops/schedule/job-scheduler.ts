import * as cron from 'node-cron';
import type { OpsDocument } from '../../src/client/documents.ts';
import type { Config } from '../../src/config/schema.ts';
import { type ClockReading, compareClocks, correctionOf } from '../../src/core/time/clock-watch.ts';
import { type Clocks, HOUR_MS, isoUtc, MINUTE_MS } from '../../src/core/time/time.ts';
import { HEAVY, JOB_NAMES, type JobName } from '../jobs.ts';
import type { NotifierState } from '../notify/notifier.ts';
import { type Execution, execute, type Runner } from './execution.ts';
import { type JobRecord, JobRecords, type JobRecordsOptions } from './job-records.ts';
import { CronTimes, LocalClock } from './local-time.ts';

/** A run that would start later than this after its scheduled time counts as missed. */
const ON_TIME_MS = 30_000;
/** Delay of catch-up runs, because the service and the network are still starting just after boot or resume. */
const CATCH_UP_AFTER_MS = 10_000;
/** A clock before this date has not been set yet, because it is older than the program. */
const EARLIEST_MS = Date.UTC(2026, 0, 1);
/**
 * If the clock is set back by up to this, runs at fixed times are not repeated, and other runs are not repeated
 * within a minute, as in cron(8).
 */
const NO_REPEAT_MS = 3 * HOUR_MS;
/** Heartbeats come just before a scheduled time, so that a heartbeat, and not node-cron, is the first to detect a clock change. */
const EARLY_MS = 100;

export interface JobSchedulerOptions extends JobRecordsOptions {
  readonly config: Config['ops'];
  readonly clocks: Clocks;
  readonly runner: Runner;
  /** Called when every due job has been started. */
  readonly onBeat: (document: OpsDocument) => void;
  readonly beatSeconds: number;
}

interface ScheduledJob {
  readonly name: JobName;
  /** Null if the schedule is off. */
  times: CronTimes | null;
  /** Local time up to which each scheduled time has had its run or was counted as missed. */
  accountedTo: number;
  /** The scheduled time of the last run, on the wall clock. */
  dueMs: number | null;
  /** Whether that run still has to catch up, in this process or the next. */
  isOverdue: boolean;
  catchUp: NodeJS.Timeout | undefined;
  execution: Execution | null;
}

interface Now extends ClockReading {
  readonly offsetMs: number;
  readonly local: number;
}

/**
 * Runs jobs on schedule. node-cron 4.6 starts them on time, but it skips a daily time that daylight saving leaves out, pauses for the
 * repeated hour, pauses when the clock is set back, and spends 0.1 ms on each missed time when it is set forward. A heartbeat detects
 * such steps and restarts the node-cron tasks. Both call the same function, which starts the runs due since the accounted time; the
 * second call finds nothing to do.
 */
export class JobScheduler {
  readonly #options: JobSchedulerOptions;
  readonly #records: JobRecords;
  readonly #jobs: readonly ScheduledJob[];
  #config: Config['ops'];
  #localClock: LocalClock;
  #now: Now;
  /**
   * The latest time, by a clock that was set, at which a scheduler ran on this data folder; null if none has. It is ahead of a clock that
   * is not yet set: only times after it can be missed.
   */
  #coveredMs: number | null = null;
  #tasks: readonly cron.ScheduledTask[] = [];
  #heartbeat: NodeJS.Timeout | undefined;
  #isStopping = false;

  constructor(options: JobSchedulerOptions) {
    this.#options = options;
    this.#records = new JobRecords(options, (name) => this.#nextRun(name));
    const initial = { times: null, accountedTo: 0, dueMs: null, isOverdue: false, catchUp: undefined, execution: null };
    this.#jobs = JOB_NAMES.map((name) => ({ name, ...initial }));
    this.#config = options.config;
    this.#localClock = new LocalClock(options.config.timezone);
    this.#now = this.#readClocks();
  }

  /** Continues from the state of the previous scheduler. */
  start(): void {
    const past = this.#records.load();
    const beatMs = past.scheduler.beat === null ? null : Date.parse(past.scheduler.beat);
    this.#coveredMs = beatMs !== null && beatMs >= EARLIEST_MS ? beatMs : null;
    for (const job of this.#jobs) {
      const { last } = this.#records.get(job.name);
      // A manual run does not replace a scheduled one.
      if (last && last.trigger !== 'manual') job.dueMs = Date.parse(last.started);
      this.#setSchedule(job);
      this.#startAfresh(job);
      const known = past.jobs.find(({ name }) => name === job.name);
      if (known?.schedule === this.#config[job.name] && beatMs !== null) this.#continue(job, known, beatMs);
    }
    this.#restartTasks();
    this.#beat();
    this.#scheduleHeartbeat();
    void this.#records.save();
  }

  /** Applies a new configuration; only schedules that differ are affected. */
  reload(config: Config['ops']): void {
    const hasMoved = config.timezone !== this.#config.timezone;
    this.#config = config;
    this.#localClock = new LocalClock(config.timezone);
    this.#now = this.#readClocks();
    for (const job of this.#jobs) {
      if (!hasMoved && config[job.name] === this.#records.get(job.name).schedule) continue;
      this.#setSchedule(job);
      job.accountedTo = this.#now.local;
    }
    this.#restartTasks();
    void this.#records.save();
  }

  /** Stops running jobs; resolves when they have ended or are considered hung, and the state is on disk. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#heartbeat);
    for (const task of this.#tasks) void task.destroy();
    for (const { catchUp } of this.#jobs) clearTimeout(catchUp);
    this.#records.stop();
    const running = this.#jobs.flatMap(({ execution }) => execution ?? []);
    for (const execution of running) execution.stop();
    await Promise.all(running.map(({ ended }) => ended));
    await this.#records.save();
  }

  setNotifications(state: NotifierState | null): void {
    this.#records.setNotifications(state);
  }

  /** node-cron starts the jobs. It gets the current UTC offset as its zone, so that it does not have to handle daylight saving. */
  #restartTasks(): void {
    for (const task of this.#tasks) void task.destroy();
    const { offsetMs, wallMilliseconds } = this.#now;
    const timezone = `${offsetMs < 0 ? '-' : '+'}${isoUtc(Math.abs(offsetMs)).slice(11, 16)}`;
    const scheduled = wallMilliseconds < EARLIEST_MS ? [] : this.#jobs.filter(({ times }) => times !== null);
    this.#tasks = scheduled.map(({ name }) =>
      cron.schedule(this.#config[name], () => this.#beat(), { name, timezone, noOverlap: true, suppressMissedWarning: true }),
    );
  }

  #scheduleHeartbeat(): void {
    const periodMs = this.#options.beatSeconds * 1000;
    // While the clock is not set, node-cron does not run; the heartbeat then comes at the full minute.
    const phaseMs = Date.now() + (Date.now() < EARLIEST_MS ? 0 : EARLY_MS);
    const beat = (): void => {
      this.#beat();
      this.#records.saveLive();
      this.#scheduleHeartbeat();
    };
    this.#heartbeat = setTimeout(beat, periodMs - (phaseMs % periodMs));
  }

  /** Starts every due run. Called by node-cron at scheduled times, and by the heartbeat. */
  #beat(): void {
    if (this.#isStopping) return;
    const before = this.#now;
    this.#now = this.#readClocks();
    this.#followClock(before, this.#now);
    const { wallMilliseconds } = this.#now;
    this.#records.beat(wallMilliseconds, wallMilliseconds < EARLIEST_MS ? this.#coveredMs : null);
    for (const job of this.#jobs) this.#runDue(job, wallMilliseconds - before.wallMilliseconds);
    this.#options.onBeat(this.#records.document());
  }

  /** Moves the accounted times with the clock: after it was set, after a daylight saving change, and after a suspend. */
  #followClock(before: Now, now: Now): void {
    const nowMs = now.wallMilliseconds;
    const isBack = nowMs < before.wallMilliseconds;
    const covered = this.#coveredMs;
    if (nowMs >= EARLIEST_MS) this.#coveredMs = isBack ? nowMs : Math.max(covered ?? 0, nowMs);
    const events = compareClocks(before, now);
    const shiftMs = now.offsetMs - before.offsetMs;
    if (events.length === 0 && shiftMs === 0) return;
    for (const { delta_seconds, kind } of events)
      this.#options.log('notice', kind === 'step' ? 'clock stepped' : 'system suspended', { seconds: delta_seconds });
    const step = events.find(({ kind }) => kind === 'step');
    if (step && now.bootSeconds !== null) this.#records.correct(correctionOf(step, now.bootSeconds));
    const isForward = events.some(({ delta_seconds, kind }) => kind === 'step' && delta_seconds > 0);
    // The machine was off in the time beyond what a scheduler had covered. An unset clock gives no information.
    const offSinceMs = covered ?? (before.wallMilliseconds < EARLIEST_MS ? nowMs : before.wallMilliseconds);
    for (const job of this.#jobs) {
      if (job.times?.followsClock) job.accountedTo += shiftMs;
      if (isBack) this.#startAfresh(job);
      else if (isForward) job.accountedTo = Math.max(job.accountedTo, Math.min(nowMs, offSinceMs) + now.offsetMs);
    }
    this.#restartTasks();
  }

  #setSchedule(job: ScheduledJob): void {
    const schedule = this.#config[job.name];
    job.times = schedule === 'off' ? null : new CronTimes(schedule);
    if (!job.times) this.#cancelCatchUp(job);
    this.#records.get(job.name).schedule = schedule;
  }

  /** Counts scheduled times from now, or from the last run if the local clock was set back to before it. */
  #startAfresh(job: ScheduledJob): void {
    const { local } = this.#now;
    const ran = job.dueMs === null ? local : job.dueMs + this.#localClock.offsetMs(job.dueMs);
    const isRepeat = ran > local && ran - local <= (job.times?.followsClock ? MINUTE_MS : NO_REPEAT_MS);
    job.accountedTo = isRepeat ? ran : local;
  }

  /** Continues a job from the state of the previous scheduler. */
  #continue(job: ScheduledJob, known: JobRecord, beatMs: number): void {
    const { local, wallMilliseconds: nowMs } = this.#now;
    // With a clock that is behind, nothing can be missed until it is set.
    if (nowMs >= EARLIEST_MS && nowMs > beatMs) {
      if (job.accountedTo === local) job.accountedTo = beatMs + this.#localClock.offsetMs(beatMs);
      this.#runDue(job, nowMs - beatMs);
    }
    const overdue = known.next !== null && Date.parse(known.next) <= beatMs ? known.next : known.running_since;
    if (overdue !== null && job.times && !job.execution && !job.isOverdue && this.#catchesUp(job))
      this.#scheduleCatchUp(job, Date.parse(overdue));
  }

  /** Starts the run that is due, and counts missed runs. */
  #runDue(job: ScheduledJob, elapsedMs: number): void {
    const { local, wallMilliseconds: nowMs } = this.#now;
    const { count, last } = job.times?.between(job.accountedTo, local) ?? { count: 0, last: null };
    job.accountedTo = Math.max(job.accountedTo, local);
    if (last === null) return;
    const { name } = job;
    const dueMs = nowMs - (local - last);
    // A time that daylight saving skips is due when the clock is set forward.
    const isOnTime = Math.min(local - last, elapsedMs) <= ON_TIME_MS;
    const missed = elapsedMs <= ON_TIME_MS ? 0 : count - (isOnTime ? 1 : 0);
    const isCaughtUp = !isOnTime && this.#catchesUp(job);
    if (missed > 0) {
      this.#records.get(name).missed += missed;
      const fields = { job: name, times: missed, last: isoUtc(dueMs) };
      this.#options.log('warning', isCaughtUp ? 'run missed, catch-up pending' : 'run missed', fields);
    }
    if (isOnTime) void this.#run(job, 'schedule', dueMs);
    else if (isCaughtUp) this.#scheduleCatchUp(job, dueMs);
  }

  #catchesUp({ name }: ScheduledJob): boolean {
    return (this.#config.catch_up as readonly string[]).includes(name);
  }

  /** One catch-up run replaces any number of missed runs. */
  #scheduleCatchUp(job: ScheduledJob, dueMs: number): void {
    this.#cancelCatchUp(job);
    job.dueMs = dueMs;
    job.isOverdue = true;
    job.catchUp = setTimeout(() => void this.#run(job, 'catch_up', dueMs), CATCH_UP_AFTER_MS);
  }

  #cancelCatchUp(job: ScheduledJob): void {
    clearTimeout(job.catchUp);
    job.isOverdue = false;
  }

  /** When a job runs next. An overdue run is reported: if this process ends before the catch-up run, the next process finds it. */
  #nextRun(name: JobName): string | null {
    const { accountedTo, dueMs, isOverdue, times } = this.#jobs.find((job) => job.name === name) as ScheduledJob;
    if (isOverdue && dueMs !== null) return isoUtc(dueMs);
    const { local, wallMilliseconds } = this.#now;
    const next = times?.next(Math.max(accountedTo, local)) ?? null;
    return next === null ? null : isoUtc(this.#localClock.momentOf(next, wallMilliseconds));
  }

  async #run(job: ScheduledJob, trigger: 'schedule' | 'catch_up', dueMs: number): Promise<void> {
    const { name } = job;
    const records = this.#records;
    const { log, runner } = this.#options;
    this.#cancelCatchUp(job);
    job.dueMs = dueMs;
    if (job.execution) return records.countOverlap(name);
    records.get(name).running_since = isoUtc(Date.now());
    job.execution = execute(name, trigger, runner, this.#config.timeouts[name]);
    records.saveLive();
    if (HEAVY.includes(name)) records.saveDurablySoon();

    const ending = await job.execution.ended;
    if (ending.kind === 'hung') {
      log('error', 'job hung; no further run until it exits', { job: name });
      records.count(name, ending.run);
      await job.execution.returned;
      log('notice', 'hung job exited', { job: name });
    }
    job.execution = null;
    records.get(name).running_since = null;
    if (ending.kind === 'busy') records.countOverlap(name);
    else if (ending.kind === 'ended') records.count(name, ending.run);
    else if (ending.kind === 'interrupted') {
      job.isOverdue = true;
      log('notice', 'run interrupted', { job: name });
    }
    records.saveLive();
  }

  #readClocks(): Now {
    const { clocks } = this.#options;
    const wallMilliseconds = clocks.wallMilliseconds();
    const offsetMs = this.#localClock.offsetMs(wallMilliseconds);
    return {
      bootSeconds: clocks.bootSeconds(),
      monotonicSeconds: clocks.monotonicSeconds(),
      wallMilliseconds,
      offsetMs,
      local: wallMilliseconds + offsetMs,
    };
  }
}
