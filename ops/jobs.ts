import type { Job } from './lib/job.ts';

/** Loaded when called: a row of metrics should not pay for a backup. */
const JOBS: Readonly<Record<string, () => Promise<Job>>> = {
  health_check: async () => (await import('./health_check.ts')).healthCheck,
  collect_metrics: async () => (await import('./collect_metrics.ts')).collectMetrics,
  collect_alerts: async () => (await import('./collect_alerts.ts')).collectAlerts,
  backup_logs: async () => (await import('./backup_logs.ts')).backupLogs,
  restore_backup: async () => (await import('./restore_backup.ts')).restoreBackup,
  generate_7day_report: async () => (await import('./generate_7day_report.ts')).generateReport,
  list: async () => (await import('./list.ts')).list,
  notify: async () => (await import('./notify.ts')).notify,
  run: async () => (await import('./run.ts')).run,
};

export const NAMES: readonly string[] = Object.keys(JOBS);

/** Null: there is none of that name. */
export async function jobNamed(name: string): Promise<Job | null> {
  const load = Object.hasOwn(JOBS, name) ? JOBS[name] : undefined;
  return load ? load() : null;
}
