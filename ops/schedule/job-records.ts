import type { OpsDocument } from '../../src/client/documents.ts';
import type { Log } from '../../src/core/ports.ts';
import { type ClockCorrection, corrected } from '../../src/core/time/clock-watch.ts';
import { isoUtc } from '../../src/core/time/time.ts';
import { FREQUENT, JOB_NAMES, type JobName, VERDICTS } from '../jobs.ts';
import { correctionSince, markClocks } from '../lib/clock-mark.ts';
import { EXIT, type JobStatus, type Trigger } from '../lib/job.ts';
import type { NotifierState } from '../notify/notifier.ts';
import type { StateFiles } from './state.ts';

/** A job in the state file, and one of its runs. */
export type JobRecord = OpsDocument['jobs'][number];
export type Run = NonNullable<JobRecord['last']>;

export function newRecord(name: string, schedule: string): JobRecord {
  const counters = { runs: 0, failures: 0, missed: 0, overlaps: 0 };
  return { name, schedule, next: null, running_since: null, last: null, last_success: null, ...counters };
}

/** Whether a job that returned this status did not do its work. health_check is UNKNOWN if one of its checks cannot be made. */
export function isFailure(name: JobName, status: JobStatus): boolean {
  if (status === 'UNKNOWN') return name !== 'health_check';
  return status === 'CRITICAL' && !VERDICTS.includes(name);
}

/** Marks the start of a run; the returned function records how it ended. */
export function startRun(name: JobName, trigger: Trigger): (status: JobStatus, lines: readonly string[], failed?: boolean) => Run {
  const begun = markClocks();
  const startedAt = performance.now();
  return (status, lines, failed = isFailure(name, status)) => {
    const duration_seconds = Math.round(performance.now() - startedAt) / 1000;
    const started = isoUtc(begun.wall_ms + (correctionSince(begun, markClocks())?.deltaMs ?? 0));
    return { started, duration_seconds, status, exit_code: EXIT[status], trigger, failed, lines: lastLines(lines) };
  };
}

/**
 * The record with one more completed run. A manual run that began before the last recorded run, and is loaded after it, is only counted.
 */
export function withRun(record: JobRecord, run: Run): JobRecord {
  const isLater = record.last === null || run.started >= record.last.started;
  const succeeded = run.failed ? [] : [run.started];
  return {
    ...record,
    last: isLater ? run : record.last,
    last_success: [record.last_success ?? '', ...succeeded].sort().at(-1) || null,
    runs: record.runs + 1,
    failures: record.failures + (run.failed ? 1 : 0),
  };
}

const LINES = 30;
const LINE_LENGTH = 400;

/** The last lines of a run's output. If there are too many, lines that report OK are dropped first. */
export function lastLines(lines: readonly string[]): string[] {
  const all = lines.flatMap((line) => line.split('\n')).filter((line) => line.trim() !== '');
  let surplus = all.length - LINES;
  const kept = all.filter((line) => {
    const isDropped = surplus > 0 && /^\s*OK\b/.test(line);
    if (isDropped) surplus -= 1;
    return !isDropped;
  });
  return kept.slice(-LINES).map((line) => (line.length > LINE_LENGTH ? `${line.slice(0, LINE_LENGTH - 1)}…` : line));
}

/**
 * The disk is written at this interval if no job ends, and this long after a job has ended, so that jobs that end together share a write.
 */
const DURABLE_SECONDS = 300;
const DURABLE_SOON_SECONDS = 2;

export interface JobRecordsOptions {
  readonly log: Log;
  readonly state: Pick<StateFiles, 'load' | 'saveLive' | 'saveDurable'>;
  /** Manual runs since the last call. */
  readonly takeRuns: () => readonly { readonly name: JobName; readonly run: Run }[];
  readonly onRun: (name: JobName, run: Run) => void;
}

/** The records of the jobs and the timing of their writes: each write of the durable copy wears out flash; the live copy costs nothing. */
export class JobRecords {
  readonly #options: JobRecordsOptions;
  readonly #nextRun: (name: JobName) => string | null;
  readonly #records = new Map<JobName, JobRecord>();
  #started = isoUtc(Date.now());
  /** The last heartbeat, and the value used instead in the durable copy while the clock is not set; null if they are the same. */
  #beatMs = Date.now();
  #coveredMs: number | null = null;
  /** Null if notifications are off. */
  #notifications: NotifierState | null = null;
  #timer: NodeJS.Timeout | undefined;
  #hasStopped = false;

  constructor(options: JobRecordsOptions, nextRun: (name: JobName) => string | null) {
    this.#options = options;
    this.#nextRun = nextRun;
  }

  /** Continues from the state of the previous scheduler, and returns that state. */
  load(): OpsDocument {
    const past = this.#options.state.load();
    for (const name of JOB_NAMES) {
      const record = past.jobs.find((job) => job.name === name) ?? newRecord(name, 'off');
      this.#records.set(name, { ...record, running_since: null });
    }
    return past;
  }

  /** Returns the record itself, which the caller may change. */
  get(name: JobName): JobRecord {
    return this.#records.get(name) as JobRecord;
  }

  beat(beatMs: number, coveredMs: number | null): void {
    this.#beatMs = beatMs;
    this.#coveredMs = coveredMs;
    for (const { name, run } of this.#options.takeRuns()) this.count(name, run);
  }

  /** The clock stepped: corrects the times stamped before in this boot. */
  correct(correction: ClockCorrection): void {
    const at = (time: string): string => isoUtc(corrected(Date.parse(time), correction));
    this.#started = at(this.#started);
    if (this.#notifications) this.#notifications = { ...this.#notifications, since: at(this.#notifications.since) };
    for (const record of this.#records.values()) {
      const { last, last_success, running_since } = record;
      Object.assign(record, {
        running_since: running_since && at(running_since),
        last: last && { ...last, started: at(last.started) },
        last_success: last_success && at(last_success),
      });
    }
  }

  count(name: JobName, run: Run): void {
    const { log, onRun } = this.#options;
    const record = this.get(name);
    const hadFailed = record.last?.failed === true;
    Object.assign(record, withRun(record, run));
    const fields = { job: name, status: run.status, seconds: run.duration_seconds, trigger: run.trigger };
    const line = run.lines.find((line) => line.startsWith(run.status)) ?? run.lines.at(-1);
    if (run.failed) log('error', 'job failed', { ...fields, line });
    else if (hadFailed) log('notice', 'job recovered', fields);
    onRun(name, run);
    this.saveLive();
    if (!FREQUENT.includes(name) || run.failed !== hadFailed) this.saveDurablySoon();
  }

  countOverlap(name: JobName): void {
    const record = this.get(name);
    record.overlaps += 1;
    this.#options.log('warning', 'run skipped: the previous run is still in progress', { job: name, since: record.running_since });
    this.saveLive();
  }

  setNotifications(state: NotifierState | null): void {
    this.#notifications = state;
    this.saveLive();
  }

  document(): OpsDocument {
    return {
      scheduler: { state: this.#hasStopped ? 'stopped' : 'running', started: this.#started, beat: isoUtc(this.#beatMs) },
      jobs: JOB_NAMES.map((name) => ({ ...this.get(name), next: this.#nextRun(name) })),
      ...(this.#notifications === null || this.#hasStopped ? {} : { notifications: this.#notifications }),
    };
  }

  saveLive(): void {
    this.#options.state.saveLive(this.document());
  }

  saveDurablySoon(): void {
    this.#saveIn(DURABLE_SOON_SECONDS);
  }

  /** Writes both copies. */
  save(): Promise<void> {
    this.saveLive();
    this.#saveIn(DURABLE_SECONDS);
    const document = this.document();
    if (this.#coveredMs !== null) {
      // The time of an unset clock must not be recorded as the scheduler's last heartbeat, or missed runs would not be detected.
      document.scheduler.beat = isoUtc(this.#coveredMs);
      for (const job of document.jobs) job.next = null;
    }
    return this.#options.state.saveDurable(document);
  }

  /** From now on, the scheduler's state is `stopped`. */
  stop(): void {
    this.#hasStopped = true;
    clearTimeout(this.#timer);
  }

  #saveIn(seconds: number): void {
    clearTimeout(this.#timer);
    if (!this.#hasStopped) this.#timer = setTimeout(() => void this.save(), seconds * 1000).unref();
  }
}
