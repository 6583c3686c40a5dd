import type { Severity } from './alert.ts';
import { METRICS, type Reading, type Readings } from './metrics.ts';
import { healthStatusOf, type Status, statusOfReading, type Thresholds } from './thresholds.ts';
import { isoUtc } from './time.ts';

/** What goes out once a period, field for field as the specification's table 2.1. Unavailable metrics are null. */
export interface HealthStatus {
  readonly cpu_percent: Reading;
  readonly memory_percent: Reading;
  readonly disk_percent: Reading;
  readonly temperature: Reading;
  readonly status: Status;
  readonly node_name: string;
  readonly timestamp: string;
}

/** One of the configured disk paths. */
export interface DiskReading {
  readonly path: string;
  /** Used, in percent; null: unavailable. */
  readonly percent: Reading;
  /** Why it is unavailable; null: it is not. */
  readonly problem: string | null;
}

/** One slot of the grid, measured. */
export interface Sample {
  /** Number of the slot on the grid; the difference to the sample before tells how many were missed. */
  readonly slot: number;
  /** Seconds on the monotonic clock at the slot's start: what durations are judged by. */
  readonly monotonicSeconds: number;
  /** Wall clock at the slot's start, milliseconds since the epoch. */
  readonly timestampMs: number;
  readonly readings: Readings;
  /** The paths of which `disk_percent` is the fullest. */
  readonly disks: readonly DiskReading[];
}

/** `openAlerts`: of this node, once this sample has been judged. */
export function toHealthStatus(
  sample: Sample,
  nodeName: string,
  thresholds: Thresholds,
  openAlerts: readonly { readonly severity: Severity }[],
): HealthStatus {
  const { readings } = sample;
  return {
    cpu_percent: readings.cpu_percent,
    memory_percent: readings.memory_percent,
    disk_percent: readings.disk_percent,
    temperature: readings.temperature,
    status: healthStatusOf(
      METRICS.map((metric) => statusOfReading(readings[metric], thresholds[metric])),
      openAlerts,
    ),
    node_name: nodeName,
    timestamp: isoUtc(sample.timestampMs),
  };
}

/** Periods without a sample after which a node's status is no longer known. */
export const STALE_AFTER_PERIODS = 3;

/** The status to show now: as published, or UNKNOWN once the last sample is more than three periods old. */
export function currentStatus(last: HealthStatus, ageSeconds: number, periodSeconds: number): HealthStatus {
  return ageSeconds > STALE_AFTER_PERIODS * periodSeconds ? { ...last, status: 'UNKNOWN' } : last;
}
