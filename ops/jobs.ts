import type { Job } from './lib/job.ts';

/** The scheduled jobs, in display order. Each is loaded when it is run: a row of metrics should not cost the memory of a backup. */
export const JOBS = {
  health_check: async () => (await import('./health_check.ts')).healthCheck,
  collect_metrics: async () => (await import('./collect_metrics.ts')).collectMetrics,
  collect_alerts: async () => (await import('./collect_alerts.ts')).collectAlerts,
  backup_logs: async () => (await import('./backup_logs.ts')).backupLogs,
  generate_7day_report: async () => (await import('./generate_7day_report.ts')).generateReport,
} satisfies Readonly<Record<string, () => Promise<Job>>>;

export type JobName = keyof typeof JOBS;
export const JOB_NAMES = Object.keys(JOBS) as JobName[];

/** Jobs that run as child processes: they take long and need memory that the scheduler should not retain. */
export const HEAVY: readonly JobName[] = ['backup_logs', 'generate_7day_report'];

/** Jobs whose CRITICAL is a verdict: on the machine, on the week. */
export const VERDICTS: readonly JobName[] = ['health_check', 'generate_7day_report'];

/** Jobs whose successful runs are not each worth a disk write. */
export const FREQUENT: readonly JobName[] = ['collect_metrics'];
