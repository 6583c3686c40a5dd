import { healthStatusOf, type Severity, type Status, statusOfReading, type Thresholds } from './alerts/alert.ts';
import { METRICS, type Reading, type Readings } from './metrics.ts';
import { isoUtc } from './time/time.ts';

/** Published once per period, field for field as in the specification's table 2.1. Unavailable metrics are null. */
export interface HealthStatus {
  readonly cpu_percent: Reading;
  readonly memory_percent: Reading;
  readonly disk_percent: Reading;
  readonly temperature: Reading;
  readonly status: Status;
  readonly node_name: string;
  readonly timestamp: string;
}

export interface DiskReading {
  readonly path: string;
  /** Used space in percent; null: unavailable. */
  readonly percent: Reading;
  /** Used inodes in percent; null: unavailable, or the file system has no fixed number of them. */
  readonly inodes_percent: Reading;
  /** Why it is unavailable or faulty. Null: nothing is wrong; if `percent` is null too, it is an automount that is not in use. */
  readonly problem: string | null;
}

/** One sample of the sampling grid. */
export interface Sample {
  /** Number of the sampling interval; a difference above one to the previous sample means missed samples. */
  readonly interval: number;
  /** Monotonic seconds at the interval's start; durations are computed from it. */
  readonly monotonicSeconds: number;
  /** Wall clock at the interval's start, milliseconds since the epoch. */
  readonly timestampMs: number;
  readonly readings: Readings;
  /** The configured disk paths; `disk_percent` is the highest of them. */
  readonly disks: readonly DiskReading[];
}

/** `openAlerts`: open alerts of this node after this sample was evaluated. */
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

/** Number of periods without a sample after which a node's status is UNKNOWN. */
export const STALE_AFTER_PERIODS = 3;

/** The status to show: as published, or UNKNOWN once the last sample is more than three periods old. */
export function currentStatus(last: HealthStatus, ageSeconds: number, periodSeconds: number): HealthStatus {
  return ageSeconds > STALE_AFTER_PERIODS * periodSeconds ? { ...last, status: 'UNKNOWN' } : last;
}
