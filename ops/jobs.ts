import type { Job } from './lib/job.ts';
import type { JobName } from './schedule/job-record.ts';

/** The scheduled jobs. Each is loaded when it is run: a row of metrics should not cost the memory of a backup. */
export const JOBS: Readonly<Record<JobName, () => Promise<Job>>> = {
  health_check: async () => (await import('./health_check.ts')).healthCheck,
  collect_metrics: async () => (await import('./collect_metrics.ts')).collectMetrics,
  collect_alerts: async () => (await import('./collect_alerts.ts')).collectAlerts,
  backup_logs: async () => (await import('./backup_logs.ts')).backupLogs,
  generate_7day_report: async () => (await import('./generate_7day_report.ts')).generateReport,
};
