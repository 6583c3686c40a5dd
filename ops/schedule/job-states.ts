import type { Log } from '../../src/core/ports.ts';
import { isoUtc } from '../../src/core/time.ts';
import type { OpsDocument } from '../../src/http/api/ops-schema.ts';
import type { NotifierState } from '../notify/notifier.ts';
import { FREQUENT, hasFailed, type JobName, type JobRecord, lastLines, type Run, withRun } from './job-record.ts';
import type { LeftRun } from './manual-run.ts';
import type { StateFiles } from './state.ts';

/** The disk is written this often where no job ended, and this long after one has: jobs that end together are written together. */
const DURABLE_SECONDS = 300;
const DURABLE_SOON_SECONDS = 2;

export interface JobStatesOptions {
  readonly log: Log;
  readonly state: Pick<StateFiles, 'load' | 'saveLive' | 'saveDurable'>;
  /** Runs by hand since the last call. */
  readonly takeRuns: () => readonly LeftRun[];
  readonly onRun: (name: JobName, run: Run) => void;
  /** Null: they are off. */
  readonly notifications: () => NotifierState | null;
}

/** The records of the jobs, and when they are written: each write of the durable copy wears out flash, the live one costs nothing. */
export class JobStates {
  readonly #options: JobStatesOptions;
  readonly #records = new Map<string, JobRecord>();
  readonly #started = isoUtc(Date.now());
  /** The last heartbeat, and what the durable copy has instead while the clock is not set; null: the same. */
  #beatMs = Date.now();
  #coveredMs: number | null = null;
  #timer: NodeJS.Timeout | null = null;
  #hasStopped = false;

  constructor(options: JobStatesOptions) {
    this.#options = options;
  }

  get(name: JobName): JobRecord {
    return this.#records.get(name) as JobRecord;
  }

  set(name: JobName, changes: Partial<JobRecord>): void {
    this.#records.set(name, { ...this.get(name), ...changes });
  }

  beat(beatMs: number, coveredMs: number | null): void {
    this.#beatMs = beatMs;
    this.#coveredMs = coveredMs;
    for (const { name, run } of this.#options.takeRuns()) this.count(name, run);
  }

  count(name: JobName, ended: Run): void {
    const { log, onRun } = this.#options;
    const run = { ...ended, lines: lastLines(ended.lines) };
    const { last } = this.get(name);
    const hadFailed = last !== null && hasFailed(last);
    this.set(name, withRun(this.get(name), run));
    const fields = { job: name, status: run.status, seconds: run.duration_seconds, trigger: run.trigger };
    const line = run.lines.find((line) => line.startsWith(run.status)) ?? run.lines.at(-1);
    if (hasFailed(run)) log('error', 'job failed', { ...fields, line });
    else if (hadFailed) log('notice', 'job recovered', fields);
    onRun(name, run);
    this.saveLive();
    if (!FREQUENT.includes(name) || hasFailed(run) !== hadFailed) this.saveDurablySoon();
  }

  countOverlap(name: JobName): void {
    const { overlaps, running_since } = this.get(name);
    this.set(name, { overlaps: overlaps + 1 });
    this.#options.log('warning', 'run skipped: the previous run is still in progress', { job: name, since: running_since });
    this.saveLive();
  }

  document(): OpsDocument {
    const notifications = this.#options.notifications();
    return {
      scheduler: { state: this.#hasStopped ? 'stopped' : 'running', started: this.#started, beat: isoUtc(this.#beatMs) },
      jobs: [...this.#records.values()],
      ...(notifications === null || this.#hasStopped ? {} : { notifications }),
    };
  }

  saveLive(): void {
    this.#options.state.saveLive(this.document());
  }

  saveDurablySoon(): void {
    this.#saveDurablyIn(DURABLE_SOON_SECONDS);
  }

  saveDurably(): Promise<void> {
    this.#saveDurablyIn(DURABLE_SECONDS);
    const { jobs, scheduler, ...rest } = this.document();
    // An unset clock must not stand for when the scheduler ran last: runs missed meanwhile would not be noticed.
    const covered = this.#coveredMs === null ? {} : { beat: isoUtc(this.#coveredMs) };
    const records = this.#coveredMs === null ? jobs : jobs.map((job) => ({ ...job, next: null }));
    return this.#options.state.saveDurable({ ...rest, scheduler: { ...scheduler, ...covered }, jobs: records });
  }

  /** From now on the scheduler is shown as stopped. */
  stop(): void {
    this.#hasStopped = true;
    clearTimeout(this.#timer ?? undefined);
  }

  #saveDurablyIn(seconds: number): void {
    clearTimeout(this.#timer ?? undefined);
    if (!this.#hasStopped) this.#timer = setTimeout(() => void this.saveDurably(), seconds * 1000).unref();
  }
}
