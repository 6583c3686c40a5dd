import { duration, timeOfDay } from '../../format.ts';
import { messages } from '../../messages/messages.ts';
import type { Job, OpsState, Status } from '../../types.ts';

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
  const { beat } = ops.scheduler;
  const { jobs } = messages.system;
  return {
    problem: runs ? null : beat === null ? jobs.stopped : jobs.stoppedSince(timeOfDay(Date.parse(beat), nowMs)),
    rows: ops.jobs
      .filter(({ last, running_since, schedule }) => schedule !== 'off' || last || running_since)
      .map((job) => toRow(job, runs, nowMs)),
  };
}

function toRow(job: Job, runs: boolean, nowMs: number): JobRow {
  const { last, missed, name, next, overlaps, running_since: since } = job;
  const isRunning = runs && since !== null;
  const { jobs } = messages.system;
  const time = (at: string): string => timeOfDay(Date.parse(at), nowMs);
  const facts = [
    ...(isRunning ? [jobs.runsFor(duration((nowMs - Date.parse(since)) / 1000))] : []),
    last ? jobs.last(time(last.started)) : jobs.hasNotRun,
    ...(runs ? [next === null ? jobs.off : jobs.next(time(next))] : []),
    ...(missed > 0 ? [jobs.missed(missed)] : []),
    ...(overlaps > 0 ? [jobs.overlaps(overlaps)] : []),
  ];
  return { name: name.replaceAll('_', ' '), outcome: last?.status ?? null, facts, isRunning, lines: last?.lines ?? [] };
}
