/** Names of the files in metrics/, which collect_metrics writes and the harness reads. */

/** `metrics_2026-03-04.csv`; `metrics_2026-03-04.2.csv` and so on if the columns changed during the day. */
export const METRICS_FILE = /^metrics_(\d{4}-\d{2}-\d{2})(?:\.(\d{1,6}))?\.csv$/;

/** Number of a file among those of its day, from 1. */
export function numberOf(name: string): number {
  return Number(METRICS_FILE.exec(name)?.[2] ?? 1);
}
