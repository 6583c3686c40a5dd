import type { OpsDocument } from '../api/ops-schema.ts';
import type { Exposition } from '../exposition.ts';

type Job = OpsDocument['jobs'][number];

const OUTCOMES = ['OK', 'WARNING', 'CRITICAL', 'UNKNOWN'] as const;

const secondsOf = (instant: string | null | undefined): number | null => (instant ? Date.parse(instant) / 1000 : null);

/** Metrics of the maintenance scheduler and, with the label `ops_job`, of its jobs; none if no scheduler has ever run. */
export function jobMetrics(out: Exposition, { jobs, scheduler }: OpsDocument): void {
  if (scheduler.state === 'never') return;
  out.family('edge_health_ops_scheduler_up', 'gauge', 'Whether the maintenance scheduler is running.', [
    [{}, Number(scheduler.state === 'running')],
  ]);
  const family = (type: 'gauge' | 'counter') => (name: string, help: string, value: (job: Job) => number | null) =>
    out.family(
      `edge_health_ops_job_${name}`,
      type,
      help,
      jobs.map((job) => [{ ops_job: job.name }, value(job)]),
    );
  const gauge = family('gauge');
  const counter = family('counter');
  gauge('last_run_timestamp_seconds', 'Start time of the last completed run of a job.', ({ last }) => secondsOf(last?.started));
  gauge('last_success_timestamp_seconds', 'Start time of the last run that ended with OK or WARNING.', (job) =>
    secondsOf(job.last_success),
  );
  gauge('last_duration_seconds', 'Duration of the last completed run of a job.', ({ last }) => last?.duration_seconds ?? null);
  gauge('next_run_timestamp_seconds', 'Time of the next scheduled run of a job.', ({ next }) => secondsOf(next));
  out.family(
    'edge_health_ops_job_last_status',
    'gauge',
    'Status of the last completed run of a job: 1 for the current status, otherwise 0.',
    jobs.flatMap(({ last, name }) =>
      last ? OUTCOMES.map((status) => [{ ops_job: name, status }, Number(last.status === status)] as const) : [],
    ),
  );
  counter('runs_total', 'Completed runs of a job.', ({ runs }) => runs);
  counter('failures_total', 'Runs of a job that ended with CRITICAL or UNKNOWN.', ({ failures }) => failures);
  counter('missed_runs_total', 'Scheduled runs of a job that could not start.', ({ missed }) => missed);
  counter('overlaps_total', 'Scheduled runs of a job skipped because its previous run was still in progress.', ({ overlaps }) => overlaps);
}
