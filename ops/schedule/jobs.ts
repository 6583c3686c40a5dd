import type { OpsDocument } from '../../src/http/api/ops-schema.ts';

/** A job as the state has it, and one of its runs. */
export type JobRecord = OpsDocument['jobs'][number];
export type Run = NonNullable<JobRecord['last']>;

/** Programs that the scheduler runs, in the order in which they are shown. */
export const JOB_NAMES = ['health_check', 'collect_metrics', 'collect_alerts', 'backup_logs', 'generate_7day_report'] as const;
export type JobName = (typeof JOB_NAMES)[number];

/** Run as processes of their own: they take long and need much memory, of which the scheduler should keep nothing. */
export const HEAVY: readonly JobName[] = ['backup_logs', 'generate_7day_report'];

/** Jobs whose end is not worth a write to the disk of its own. */
export const FREQUENT: readonly JobName[] = ['collect_metrics'];

export function isJobName(name: string): name is JobName {
  return (JOB_NAMES as readonly string[]).includes(name);
}

export function newRecord(name: string, schedule: string): JobRecord {
  return {
    name,
    schedule,
    next: null,
    running_since: null,
    last: null,
    last_success: null,
    runs: 0,
    failures: 0,
    missed: 0,
    overlaps: 0,
  };
}

export function hasFailed({ status }: Pick<Run, 'status'>): boolean {
  return status === 'CRITICAL' || status === 'UNKNOWN';
}

/** The record with one more run that ended. A run that began before the last one (by hand, told late) is counted, not shown. */
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

/** What of a run's lines is kept: the last, and where they are many, rather what is wrong than what is not. */
export function lastLines(lines: readonly string[]): string[] {
  const all = lines.flatMap((line) => line.split('\n')).filter((line) => line.trim() !== '');
  let surplus = all.length - LINES;
  const kept = all.filter((line) => {
    const isLeftOut = surplus > 0 && /^\s*OK\b/.test(line);
    if (isLeftOut) surplus -= 1;
    return !isLeftOut;
  });
  return kept.slice(-LINES).map((line) => (line.length > LINE_LENGTH ? `${line.slice(0, LINE_LENGTH - 1)}…` : line));
}
