import type { Metric, Reading, Readings } from './metrics.ts';
import { METRICS } from './metrics.ts';

export interface Threshold {
  readonly warning: number;
  readonly critical: number;
}

export type Thresholds = Readonly<Record<Metric, Threshold>>;

/** Health status of a host or a metric, from healthy to worst; UNKNOWN says that nothing is known, not that all is bad. */
export const STATUSES = ['OK', 'WARNING', 'CRITICAL', 'UNKNOWN'] as const;
export type Status = (typeof STATUSES)[number];

/** A threshold is crossed when value ≥ threshold. */
export function statusOfReading(reading: Reading, threshold: Threshold): Status {
  if (reading === null) return 'UNKNOWN';
  if (reading >= threshold.critical) return 'CRITICAL';
  return reading >= threshold.warning ? 'WARNING' : 'OK';
}

/** The worst of the metrics that could be measured; UNKNOWN when none could. */
export function statusOfReadings(readings: Readings, thresholds: Thresholds): Status {
  let worst: Status = 'UNKNOWN';
  for (const metric of METRICS) {
    const status = statusOfReading(readings[metric], thresholds[metric]);
    if (status === 'UNKNOWN') continue;
    if (status === 'CRITICAL') return 'CRITICAL';
    if (worst !== 'WARNING') worst = status;
  }
  return worst;
}

/** The worst of several statuses where each stands for a stretch of time: CRITICAL, WARNING, OK, and UNKNOWN when there is nothing else. */
export function worstStatus(a: Status, b: Status): Status {
  const rank = (status: Status): number => (status === 'UNKNOWN' ? -1 : STATUSES.indexOf(status));
  return rank(a) >= rank(b) ? a : b;
}
