import {
  type Alert,
  healthStatusOf,
  isAbout,
  nodeOfAlertId,
  type Status,
  statusOfReading,
  type Threshold,
  type Thresholds,
} from '../core/alerts/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import { METRICS, type Metric, type Reading } from '../core/metrics.ts';
import type { DiagnosticArrayMessage, DiagnosticStatusMessage, KeyValueMessage, TimeMessage } from './interfaces.generated.ts';

/** diagnostic_msgs/msg/DiagnosticStatus: OK, WARN, ERROR, STALE. Unknown is STALE, never OK. */
export const DIAGNOSTIC_LEVELS: Readonly<Record<Status, number>> = { OK: 0, WARNING: 1, ERROR: 2, CRITICAL: 2, UNKNOWN: 3 };

/** Content of /diagnostics in addition to the health status. */
export interface DiagnosticContext {
  /** Becomes `hardware_id`. */
  readonly hostname: string;
  readonly thresholds: Thresholds;
  /** Open alerts; those of other nodes are ignored. */
  readonly openAlerts: readonly Alert[];
  /** Whether a metric should be available: false for that of a sensor that the machine never had. */
  readonly isExpected: (metric: Metric) => boolean;
}

const TITLES: Readonly<Record<Metric, { readonly title: string; readonly unit: string }>> = {
  cpu_percent: { title: 'CPU usage', unit: '%' },
  memory_percent: { title: 'Memory usage', unit: '%' },
  disk_percent: { title: 'Disk usage', unit: '%' },
  temperature: { title: 'Temperature', unit: '°C' },
};

/**
 * A health status for rqt_runtime_monitor, Foxglove and diagnostic_aggregator: one entry for the node and one per metric, named
 * `node: title` as in diagnostic_updater. A level is the worst of the value and of the open alerts. An unavailable
 * metric that is not expected has no entry: one STALE entry makes diagnostic_aggregator report its whole group as an ERROR.
 */
export function diagnosticArray(status: HealthStatus, context: DiagnosticContext): DiagnosticArrayMessage {
  const alerts = context.openAlerts.filter(({ alert_id, resolved }) => !resolved && nodeOfAlertId(alert_id) === status.node_name);
  const shown = METRICS.filter((metric) => status[metric] !== null || context.isExpected(metric));
  return {
    header: { stamp: stampOf(status.timestamp), frame_id: '' },
    status: [overall(status, alerts, context), ...shown.map((metric) => ofMetric(metric, status, alerts, context))],
  };
}

function overall(status: HealthStatus, alerts: readonly Alert[], { hostname, thresholds }: DiagnosticContext): DiagnosticStatusMessage {
  const shares = METRICS.filter(
    (metric) =>
      status.status !== 'OK' &&
      (statusOfReading(status[metric], thresholds[metric]) === status.status ||
        alerts.some((alert) => alert.severity === status.status && isAbout(alert, metric))),
  );
  return {
    level: DIAGNOSTIC_LEVELS[status.status],
    name: `${status.node_name}: Health`,
    message: shares.length === 0 ? status.status : `${status.status}: ${shares.map((metric) => TITLES[metric].title).join(', ')}`,
    hardware_id: hostname,
    values: [
      entry('status', status.status),
      ...METRICS.map((metric) => entry(metric, numberText(status[metric]))),
      entry('timestamp', status.timestamp),
      entry('open alerts', alerts.map(({ alert_id }) => alert_id).join(', ')),
    ],
  };
}

function ofMetric(
  metric: Metric,
  status: HealthStatus,
  alerts: readonly Alert[],
  { hostname, thresholds }: DiagnosticContext,
): DiagnosticStatusMessage {
  const { title, unit } = TITLES[metric];
  const value = status[metric];
  const threshold = thresholds[metric];
  const mine = alerts.filter((alert) => isAbout(alert, metric));
  return {
    level: DIAGNOSTIC_LEVELS[healthStatusOf([statusOfReading(value, threshold)], mine)],
    name: `${status.node_name}: ${title}`,
    message: sentence(value, threshold, unit),
    hardware_id: hostname,
    values: [
      entry('value', numberText(value)),
      entry('unit', unit),
      entry('warning from', threshold === null ? 'off' : String(threshold.warning)),
      entry('critical from', threshold === null ? 'off' : String(threshold.critical)),
      entry('open alerts', mine.map(({ alert_id, severity }) => `${severity} ${alert_id}`).join(', ')),
    ],
  };
}

/** "81.5 %, warning from 80 %". */
function sentence(value: Reading, threshold: Threshold | null, unit: string): string {
  if (value === null) return 'unavailable';
  const reached = statusOfReading(value, threshold);
  const text = `${value} ${unit}`;
  if (threshold === null) return text;
  if (reached === 'CRITICAL') return `${text}, critical from ${threshold.critical} ${unit}`;
  return reached === 'WARNING' ? `${text}, warning from ${threshold.warning} ${unit}` : text;
}

function numberText(value: Reading): string {
  return value === null ? 'unavailable' : String(value);
}

function entry(key: string, value: string): KeyValueMessage {
  return { key, value };
}

/** The largest second of builtin_interfaces/Time, in 2038. */
const MAX_SECONDS = 2 ** 31 - 1;

/** builtin_interfaces/msg/Time of an ISO 8601 time. */
export function stampOf(timestamp: string): TimeMessage {
  const ms = Math.max(0, Date.parse(timestamp));
  const sec = Math.floor(ms / 1000);
  return sec > MAX_SECONDS ? { sec: MAX_SECONDS, nanosec: 0 } : { sec, nanosec: (ms % 1000) * 1_000_000 };
}
