import type { HealthStatus } from './health-status.ts';
import { METRICS, type Metric, type Reading } from './metrics.ts';
import type { ShutdownProgress } from './shutdown.ts';

/** Whom systemd, or whoever else started the service, listens to: sd_notify(3). */
export interface ServiceManager {
  /** How it is reached. */
  readonly via: string;
  /** One or more assignments, a line each. Never throws: supervision must not hurt what it supervises. */
  notify(state: string): void;
}

/** A little longer than a sample that waits for its slowest source until the next one is due. */
const GRACE_SECONDS = 1;
const PERIODS = 2;

/**
 * Why the service does not get on, or null: it does, and may say so to its watchdog. The disk is not part of it: what it cannot take
 * waits in memory, and no restart would repair it. `lastSampleSeconds`: when the last sample had gone its whole way (taken, stored,
 * published, judged), on the same monotonic clock as `nowSeconds`; null: none yet.
 */
export function stall(lastSampleSeconds: number | null, periodSeconds: number, nowSeconds: number): string | null {
  if (lastSampleSeconds === null) return 'there is no sample yet';
  const age = nowSeconds - lastSampleSeconds;
  return age <= PERIODS * periodSeconds + GRACE_SECONDS ? null : `the last sample is ${age.toFixed(1)} s old`;
}

/** What the line for `systemctl status` is made from. */
export interface Summary {
  /** Of this machine; null: no sample yet. */
  readonly status: HealthStatus | null;
  readonly openAlerts: number;
  readonly otherNodes: number;
  readonly transport: string;
  /** Of the storage, where it is degraded. */
  readonly storageError: string | null;
  /** Changed keys of the configuration that take a restart, a sentence each that begins with the key. */
  readonly restartNeeded: readonly string[];
  /** Of a shutdown that is under way. */
  readonly shutdown: ShutdownProgress | null;
}

const NAMES: Readonly<Record<Metric, string>> = {
  cpu_percent: 'CPU',
  memory_percent: 'memory',
  disk_percent: 'disk',
  temperature: 'temperature',
};

function reading(metric: Metric, value: Reading): string {
  if (value === null) return `${NAMES[metric]} unavailable`;
  return metric === 'temperature' ? `${value.toFixed(1)} °C` : `${NAMES[metric]} ${value.toFixed(0)} %`;
}

const counted = (count: number, one: string, many: string): string => `${count === 0 ? 'no' : count} ${count === 1 ? one : many}`;

/** One line that a person wants to read: status, the four values, open alerts, ROS 2 transport. */
export function summaryLine({ openAlerts, otherNodes, restartNeeded, shutdown, status, storageError, transport }: Summary): string {
  if (shutdown?.state === 'in_progress') {
    const { message, reason, requested_by, seconds_left } = shutdown;
    return `SHUTTING DOWN for ${reason}, asked for by ${requested_by}, ${Math.ceil(seconds_left)} s left: ${message}`;
  }
  if (status === null) return 'starting: waiting for the first sample';
  const parts = [
    `${status.status}: ${METRICS.map((metric) => reading(metric, status[metric])).join(', ')}`,
    counted(openAlerts, 'open alert', 'open alerts'),
    `ROS 2: ${transport}${otherNodes > 0 ? `, ${counted(otherNodes, 'other node', 'other nodes')}` : ''}`,
  ];
  if (storageError !== null) parts.push(`storage degraded: ${storageError}`);
  if (restartNeeded.length > 0) parts.push(`restart needed for ${restartNeeded.map((text) => text.split(':')[0]).join(', ')}`);
  return parts.join('; ');
}
