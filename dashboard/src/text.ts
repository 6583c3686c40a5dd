import { type AlertBook, type Entry, type OtherNodes, openAlertsAbout } from './alert-book.ts';
import type { Connection } from './connection.ts';
import type { Tile } from './fleet.ts';
import { decimal, duration, limit, plural, timeOfDay } from './format.ts';
import { type Alert, type HealthStatus, METRICS, type Metric, type ShutdownState, type Status, type StatusDocument } from './types.ts';

export const METRIC_TEXT: Readonly<Record<Metric, { name: string; unit: string }>> = {
  cpu_percent: { name: 'CPU usage', unit: '%' },
  memory_percent: { name: 'Memory usage', unit: '%' },
  disk_percent: { name: 'Disk usage', unit: '%' },
  temperature: { name: 'Temperature', unit: '°C' },
};

const isMetric = (name: string): name is Metric => (METRICS as readonly string[]).includes(name);

export function alertTitle(alert: Alert, node: string, tense: 'present' | 'past' = 'present'): string {
  const { metric, severity, threshold, value } = alert;
  if (metric === 'health_status') return `No data from ${node}`;
  if (metric === 'remote_nodes') return `The list of remote nodes ${tense === 'past' ? 'was' : 'is'} almost full`;
  const name = metricName(metric);
  if (metric.startsWith('disk:')) return `${name} ${tense === 'past' ? 'could not' : 'cannot'} be measured`;
  const isPast = tense === 'past';
  if (severity === 'ERROR') return `${name} ${isPast ? 'could not' : 'cannot'} be read`;
  // The value is below the threshold, but hysteresis keeps the alert open: "high" would be wrong.
  if (value < threshold && !isPast) return `${name} is no longer critical`;
  return `${name} ${isPast ? 'was' : 'is'} ${severity === 'CRITICAL' ? 'critically high' : 'high'}`;
}

function metricName(metric: string): string {
  if (metric.startsWith('disk:')) return `Disk ${metric.slice('disk:'.length)}`;
  return isMetric(metric) ? METRIC_TEXT[metric].name : metric.replaceAll('_', ' ');
}

/** The value and the threshold of an alert. For ERROR both are seconds without data. */
export function alertFigures({ metric, severity, threshold, value }: Alert): string {
  if (metric === 'remote_nodes') return `${value} nodes, threshold ${threshold}`;
  if (severity === 'ERROR') return `no data for ${duration(value)}, timeout ${duration(threshold)}`;
  const unit = isMetric(metric) ? METRIC_TEXT[metric].unit : '';
  return `${decimal(value)} ${unit}`.trim().concat(`, threshold ${limit(threshold, unit)}`);
}

export type MetricState = 'normal' | 'warning' | 'critical' | 'unavailable';

/** The state of a metric follows from its open alerts, because the page does not know the configured thresholds. */
export function metricState(reading: number | null, alerts: readonly Alert[]): MetricState {
  if (reading === null) return 'unavailable';
  if (alerts.some((alert) => alert.severity === 'CRITICAL')) return 'critical';
  return alerts.some((alert) => alert.severity === 'WARNING') ? 'warning' : 'normal';
}

export interface Headline {
  /** Null: still connecting for the first time. */
  readonly status: Status | null;
  readonly sentence: string;
}

export interface LinkText {
  readonly state: 'connecting' | 'live' | 'gone';
  readonly first: string;
  readonly second: string;
}

/** The state of the connection in two short lines. `lastMs`: when the last sample was taken. */
export function linkText(connection: Connection, lastMs: number | null, nowMs: number): LinkText {
  const { failures, phase, reason } = connection;
  if (phase === 'live') {
    return { state: 'live', first: 'Live', second: lastMs === null ? '' : `Measured ${timeOfDay(lastMs, nowMs)}` };
  }
  if (lastMs === null && failures === 0 && (phase === 'connecting' || phase === 'loading')) {
    return { state: 'connecting', first: 'Connecting…', second: '' };
  }
  const never = phase === 'stale' || reason !== null ? 'No data yet.' : 'No answer.';
  const first = lastMs === null ? never : `No data since ${timeOfDay(lastMs, nowMs)}.`;
  if (phase === 'stale') {
    const second = connection.isResponding ? 'The service answers, but measures nothing.' : 'Waiting for the next measurement…';
    return { state: 'gone', first, second };
  }
  return { state: 'gone', first, second: reason === null ? 'Trying to reconnect…' : `${reason} Trying again…` };
}

/** The overall status and its reason. It contains no changing values, because screen readers announce each change. */
export function headline(link: LinkText, health: HealthStatus | null, book: AlertBook | null, node: string | null): Headline {
  if (link.state === 'connecting') return { status: null, sentence: 'Asking the health service…' };
  if (link.state === 'gone') {
    return { status: 'UNKNOWN', sentence: `${link.first} ${health ? 'The numbers below are the last known ones.' : link.second}` };
  }
  if (!health || health.status === 'UNKNOWN') return { status: 'UNKNOWN', sentence: 'Nothing could be measured.' };
  return { status: health.status, sentence: explainStatus(health, book, node) };
}

/** The headline of a remote node that is stale. `lastMs` and `nowMs` are times of that node's clock. */
export function headlineOfStaleNode(link: LinkText, node: string, lastMs: number | null, nowMs: number): Headline {
  if (link.state !== 'live') return headline(link, null, null, node);
  if (lastMs === null) return { status: 'UNKNOWN', sentence: `No data from ${node} since the service started.` };
  return {
    status: 'UNKNOWN',
    sentence: `No data from ${node} since ${timeOfDay(lastMs, nowMs)}. The numbers below are the last known ones.`,
  };
}

const SEVERITY_ORDER: readonly Status[] = ['CRITICAL', 'ERROR', 'WARNING'];

function explainStatus(health: HealthStatus, book: AlertBook | null, node: string | null): string {
  const nodeAlerts = (book?.open ?? []).filter((entry) => entry.node === node);
  if (health.status === 'OK' || nodeAlerts.every(({ alert }) => isBelowThreshold(alert, health))) {
    const names = [...new Set(nodeAlerts.map(({ alert }) => metricName(alert.metric)))];
    if (names.length > 0) return `Within the limits again, not settled yet: ${joinNames(names)}.`;
    if (health.status === 'OK') {
      const measured = METRICS.filter((metric) => health[metric] !== null).length;
      return `${measured === METRICS.length ? 'All four' : 'All'} measurements are within their limits.`;
    }
  }
  const worst = (entry: Entry): number => SEVERITY_ORDER.indexOf(entry.alert.severity);
  const titles = nodeAlerts.sort((a, b) => worst(a) - worst(b)).map(({ alert, node: of }) => `${alertTitle(alert, of)}.`);
  // The status changes immediately, its alert is raised a few seconds later.
  if (!nodeAlerts.some(({ alert }) => alert.severity === health.status)) titles.unshift(STATUS_WITHOUT_ALERT[health.status] ?? '');
  return titles.join(' ').trim();
}

const STATUS_WITHOUT_ALERT: Readonly<Partial<Record<Status, string>>> = {
  WARNING: 'A measurement has crossed its warning threshold.',
  ERROR: 'A measurement cannot be taken.',
  CRITICAL: 'A measurement has crossed its critical threshold.',
};

function isBelowThreshold({ metric, severity, threshold }: Alert, health: HealthStatus): boolean {
  const reading = isMetric(metric) ? health[metric] : null;
  return severity !== 'ERROR' && reading !== null && reading < threshold;
}

/** The headline of the local node if it is OK and a remote node is not. */
export function headlineOfOther(other: Tile, head: Headline): Headline {
  const what = other.isStale ? `No data from ${other.node}` : `${other.node} is ${other.status}`;
  return { status: other.status, sentence: `${what}. This machine is OK. ${head.sentence}` };
}

export function otherNodesText({ count }: OtherNodes): string {
  return `Other nodes: ${plural(count, 'open alert')}`;
}

function joinNames(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** A larger difference between two clocks is reported. */
const CLOCK_DIFFERENCE_LIMIT_MS = 60_000;

/** Notices about shutdown, power, storage and clocks, one line each. `clockDifferenceMs`: the machine's clock minus the browser's. */
export function notices(status: StatusDocument | null, clockDifferenceMs: number | null, nowMs: number): string[] {
  const lines: string[] = [];
  const shutdown = status && shutdownNotice(status.shutdown, nowMs);
  if (shutdown) lines.push(shutdown);
  if (status?.power.undervoltage) {
    lines.push('The power supply is too weak (undervoltage). Use a stronger supply or a shorter cable.');
  }
  if (status?.storage.state === 'degraded') {
    const since = status.storage.since === null ? '' : ` since ${timeOfDay(Date.parse(status.storage.since), nowMs)}`;
    const error = status.storage.error === null ? '' : ` (${status.storage.error})`;
    lines.push(`Measurements cannot be saved${since}${error}. They are still shown here.`);
  }
  if (clockDifferenceMs !== null && Math.abs(clockDifferenceMs) > CLOCK_DIFFERENCE_LIMIT_MS) {
    const by = duration(Math.abs(clockDifferenceMs) / 1000);
    lines.push(
      `This machine's clock is ${by} ${clockDifferenceMs > 0 ? 'ahead of' : 'behind'} yours. Times on this page are the machine's.`,
    );
  }
  return lines;
}

/** `node`: the remote node that is shown, or null. `differenceMs`: its clock minus the machine's. */
export function clockNotices(node: string | null, differenceMs: number): string[] {
  if (node === null || Math.abs(differenceMs) <= CLOCK_DIFFERENCE_LIMIT_MS) return [];
  const by = duration(Math.abs(differenceMs) / 1000);
  return [
    `The clock of ${node} is ${by} ${differenceMs > 0 ? 'ahead of' : 'behind'} this machine's. The times of its measurements are its own.`,
  ];
}

/** A shutdown that was aborted or interrupted is reported for this long. */
const SHUTDOWN_NOTICE_MS = 3_600_000;

function shutdownNotice(
  { action, ended, message, reason, requested_by, seconds_left, state }: ShutdownState,
  nowMs: number,
): string | null {
  const what = action === 'dry-run' ? 'dry run of a safe shutdown' : 'safe shutdown';
  const origin = `(${reason}, requested by ${requested_by})`;
  if (state === 'in_progress') return `This machine: ${what} in progress ${origin}, ${duration(seconds_left ?? 0)} left: ${message}.`;
  const endedMs = Date.parse(ended ?? '');
  if ((state !== 'aborted' && state !== 'interrupted') || !(nowMs - endedMs < SHUTDOWN_NOTICE_MS)) return null;
  return `The ${what} ${origin} ended at ${timeOfDay(endedMs, nowMs)}: ${message}.`;
}

/** The thresholds of open alerts, for the chart. An ERROR's threshold is a time, not a value of the metric. */
export function thresholdsOf(book: AlertBook | null, node: string | null, metric: Metric): number[] {
  const alerts = openAlertsAbout(book, node, metric).filter((alert) => alert.severity !== 'ERROR');
  return [...new Set(alerts.map((alert) => alert.threshold))];
}
