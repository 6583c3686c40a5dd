import type { HealthStatus } from './health-status.ts';
import { METRICS, type Metric, type Reading } from './metrics.ts';
import type { ShutdownProgress } from './shutdown/shutdown.ts';

/** The service manager's notification interface: sd_notify(3). */
export interface ServiceManager {
  /** Address of the notification socket. */
  readonly via: string;
  /** Sends one or more assignments, one per line. Never throws: supervision must not harm what it supervises. */
  notify(state: string): void;
}

/** Slightly longer than a sample that waits for its slowest source until the next one is due. */
const GRACE_SECONDS = 1;
const PERIODS = 2;

/**
 * Why the watchdog ping must be withheld, or null. The disk is not considered: unwritten records wait in memory, and a restart would not
 * repair it. `lastSampleSeconds`: when the last sample was taken, evaluated, stored and published, on the same monotonic clock as
 * `nowSeconds`; null: none yet.
 */
export function stall(lastSampleSeconds: number | null, periodSeconds: number, nowSeconds: number): string | null {
  if (lastSampleSeconds === null) return 'no sample yet';
  const age = nowSeconds - lastSampleSeconds;
  return age <= PERIODS * periodSeconds + GRACE_SECONDS ? null : `the last sample is ${age.toFixed(1)} s old`;
}

/** Input of the line for `systemctl status`. */
export interface StatusSummary {
  /** This machine's status; null: no sample yet. */
  readonly status: HealthStatus | null;
  readonly openAlerts: number;
  readonly otherNodes: number;
  readonly transport: string;
  /** Why REST does not listen, or this node is not on the ROS 2 graph although it is configured to be; null: no such problem. */
  readonly restProblem: string | null;
  readonly rosProblem: string | null;
  /** Error of a degraded storage. */
  readonly storageError: string | null;
  /** Changed configuration keys that need a restart, one sentence each that begins with the key. */
  readonly restartNeeded: readonly string[];
  /** A shutdown in progress. */
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

/** One human-readable line: status, the four values, open alerts, ROS 2 transport. */
export function summaryLine(summary: StatusSummary): string {
  const { openAlerts, otherNodes, restartNeeded, restProblem, rosProblem, shutdown, status, storageError, transport } = summary;
  if (shutdown?.state === 'in_progress') {
    const { message, reason, requested_by, seconds_left } = shutdown;
    return `SHUTTING DOWN for ${reason}, requested by ${requested_by}, ${Math.ceil(seconds_left)} s left: ${message}`;
  }
  if (status === null) return 'starting: waiting for the first sample';
  const parts = [
    `${status.status}: ${METRICS.map((metric) => reading(metric, status[metric])).join(', ')}`,
    counted(openAlerts, 'open alert', 'open alerts'),
    `ROS 2: ${transport}${otherNodes > 0 ? `, ${counted(otherNodes, 'other node', 'other nodes')}` : ''}`,
  ];
  if (restProblem !== null) parts.push(`REST API not listening: ${restProblem}`);
  if (rosProblem !== null) parts.push(`not on the ROS 2 graph: ${rosProblem}`);
  if (storageError !== null) parts.push(`storage degraded: ${storageError}`);
  if (restartNeeded.length > 0) parts.push(`restart needed for ${restartNeeded.map((text) => text.split(':')[0]).join(', ')}`);
  return parts.join('; ');
}
