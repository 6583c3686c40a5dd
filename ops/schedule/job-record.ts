import type { OpsDocument } from '../../src/http/api/ops-schema.ts';

/** A job in the state file, and one of its runs. */
export type JobRecord = OpsDocument['jobs'][number];
export type Run = NonNullable<JobRecord['last']>;

/** The scheduled jobs, in the order in which they are shown. */
export const JOB_NAMES = ['health_check', 'collect_metrics', 'collect_alerts', 'backup_logs', 'generate_7day_report'] as const;
export type JobName = (typeof JOB_NAMES)[number];

/** Run as child processes: they take long and need much memory, which the scheduler should not keep. */
export const HEAVY: readonly JobName[] = ['backup_logs', 'generate_7day_report'];

/** Jobs whose successful runs are not worth a write to the disk each. */
export const FREQUENT: readonly JobName[] = ['collect_metrics'];

export function isJobName(name: string): name is JobName {
  return (JOB_NAMES as readonly string[]).includes(name);
}

export function newRecord(name: string, schedule: string): JobRecord {
  const counters = { runs: 0, failures: 0, missed: 0, overlaps: 0 };
  return { name, schedule, next: null, running_since: null, last: null, last_success: null, ...counters };
}

export function hasFailed({ status }: Pick<Run, 'status'>): boolean {
  return status === 'CRITICAL' || status === 'UNKNOWN';
}

/** The record with one more run that ended. A run by hand that began before the last one, and is loaded after it, is only counted. */
export function withRun(record: JobRecord, run: Run): JobRecord {
  const isLater = record.last === null || run.started >= record.last.started;
  const succeeded = hasFailed(run) ? [] : [run.started];
  return {
    ...record,
    last: isLater ? run : record.last,
    last_success: [record.last_success ?? '', ...succeeded].sort().at(-1) || null,
    runs: record.runs + 1,
    failures: record.failures + (hasFailed(run) ? 1 : 0),
  };
}

const LINES = 30;
const LINE_LENGTH = 400;

/** The last lines of a run's output; of many, lines that report OK are dropped first. */
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
