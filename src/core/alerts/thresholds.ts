import type { Metric, Reading } from '../metrics.ts';
import type { Severity } from './alert.ts';

export interface Threshold {
  readonly warning: number;
  readonly critical: number;
}

export type Thresholds = Readonly<Record<Metric, Threshold>>;

/** From healthy to worst. UNKNOWN is last: without data no other status can be relied on. */
export const STATUSES = ['OK', 'WARNING', 'ERROR', 'CRITICAL', 'UNKNOWN'] as const;
export type Status = (typeof STATUSES)[number];

/** A threshold is crossed when value ≥ threshold. */
export function statusOfReading(reading: Reading, threshold: Threshold): Status {
  if (reading === null) return 'UNKNOWN';
  if (reading >= threshold.critical) return 'CRITICAL';
  return reading >= threshold.warning ? 'WARNING' : 'OK';
}

/** The worst of the statuses; UNKNOWN for none. */
export function worstStatus(statuses: Iterable<Status>): Status {
  let worst = -1;
  for (const status of statuses) worst = Math.max(worst, STATUSES.indexOf(status));
  return STATUSES[worst] ?? 'UNKNOWN';
}

/** The status of a node or of one metric: the worst of its available values and its open alerts. UNKNOWN if no value is available. */
export function healthStatusOf(values: Iterable<Status>, openAlerts: Iterable<{ readonly severity: Severity }>): Status {
  let worst = -1;
  for (const status of values) if (status !== 'UNKNOWN') worst = Math.max(worst, STATUSES.indexOf(status));
  if (worst < 0) return 'UNKNOWN';
  for (const { severity } of openAlerts) worst = Math.max(worst, STATUSES.indexOf(severity));
  return STATUSES[worst] as Status;
}
