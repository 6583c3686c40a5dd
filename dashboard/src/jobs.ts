import { duration, plural, timeOfDay } from './format.ts';
import type { Job, OpsState, Status } from './types.ts';

/** A scheduled job as the page shows it. */
export interface JobRow {
  readonly name: string;
  /** Status of the last run; null: the job has not run yet. */
  readonly outcome: Status | null;
  /** Last and next run, missed runs, overlaps. */
  readonly facts: readonly string[];
  readonly isRunning: boolean;
  /** Output of the last run. */
  readonly lines: readonly string[];
}

export interface JobSummary {
  /** Null: the scheduler is running. */
  readonly problem: string | null;
  readonly rows: readonly JobRow[];
}

/** Null: no scheduler has run on this machine. Jobs that are off and never ran are omitted. */
export function summarizeJobs(ops: OpsState | null, nowMs: number): JobSummary | null {
  if (!ops || ops.scheduler.state === 'never') return null;
  const runs = ops.scheduler.state === 'running';
  const since = ops.scheduler.beat === null ? '' : ` since ${timeOfDay(Date.parse(ops.scheduler.beat), nowMs)}`;
  return {
    problem: runs ? null : `The scheduler has not run${since}: nothing is checked, collected or backed up.`,
    rows: ops.jobs
      .filter(({ last, running_since, schedule }) => schedule !== 'off' || last || running_since)
      .map((job) => toRow(job, runs, nowMs)),
  };
}

function toRow(job: Job, runs: boolean, nowMs: number): JobRow {
  const { last, missed, name, next, overlaps, running_since: since } = job;
  const isRunning = runs && since !== null;
  const facts = [
    ...(isRunning ? [`runs for ${duration((nowMs - Date.parse(since)) / 1000)}`] : []),
    last ? `last ${timeOfDay(Date.parse(last.started), nowMs)}` : 'has not run yet',
    ...(runs ? [next === null ? 'off' : `next ${timeOfDay(Date.parse(next), nowMs)}`] : []),
    ...(missed > 0 ? [`${missed} missed`] : []),
    ...(overlaps > 0 ? [plural(overlaps, 'overlap')] : []),
  ];
  return { name: name.replaceAll('_', ' '), outcome: last?.status ?? null, facts, isRunning, lines: last?.lines ?? [] };
}
