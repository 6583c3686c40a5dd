import { duration, plural, timeOfDay } from './format.ts';
import type { Job, OpsState, Status } from './types.ts';

/** A scheduled job as the page shows it. */
export interface JobRow {
  readonly name: string;
  /** Of the last run; null: there was none. */
  readonly outcome: Status | null;
  /** When it ran and when it runs next, what was missed. */
  readonly facts: readonly string[];
  readonly isRunning: boolean;
  /** What the last run said. */
  readonly lines: readonly string[];
}

export interface JobsShown {
  /** Null: the scheduler runs. */
  readonly problem: string | null;
  readonly rows: readonly JobRow[];
}

/** Null: no scheduler has ever run, and there is nothing to show. A job that is off and never ran is none. */
export function jobsShown(ops: OpsState | null, nowMs: number): JobsShown | null {
  if (!ops || ops.scheduler.state === 'never') return null;
  const runs = ops.scheduler.state === 'running';
  const since = ops.scheduler.beat === null ? '' : ` since ${timeOfDay(Date.parse(ops.scheduler.beat), nowMs)}`;
  return {
    problem: runs ? null : `The scheduler has not run${since}: nothing is checked, collected or backed up.`,
    rows: ops.jobs
      .filter(({ last, running_since, schedule }) => schedule !== 'off' || last || running_since)
      .map((job) => row(job, runs, nowMs)),
  };
}

function row(job: Job, runs: boolean, nowMs: number): JobRow {
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
