import { CHANNEL_METRICS, type ChannelMetric, worstFirst } from '../../src/core/alerts/alert.ts';
import { markLookAlike } from '../../src/core/look-alike.ts';
import { decimal, duration, limit, timeOfDay } from './format.ts';
import { messages } from './messages/messages.ts';
import type { AlertBook, OtherNodes } from './model/alert-book.ts';
import type { Connection } from './model/connection.ts';
import { type Tile, worstOther } from './model/fleet.ts';
import {
  type Alert,
  type HealthStatus,
  METRICS,
  type Metric,
  type NodeState,
  type ShutdownState,
  type Status,
  type StatusDocument,
} from './types.ts';

export const isMetric = (name: string): name is Metric => (METRICS as readonly string[]).includes(name);

const isChannel = (name: string): name is ChannelMetric => (CHANNEL_METRICS as readonly string[]).includes(name);
const OTHER_ALERTS = ['health_status', 'name_conflict', 'remote_nodes', ...CHANNEL_METRICS] as const;
const isOtherAlert = (metric: string): metric is (typeof OTHER_ALERTS)[number] => (OTHER_ALERTS as readonly string[]).includes(metric);

export function alertTitle(alert: Alert, node: string, tense: 'present' | 'past' = 'present'): string {
  const { metric, severity, threshold, value } = alert;
  const { alerts } = messages;
  const isPast = tense === 'past';
  if (metric === 'health_status') return alerts.noData(markLookAlike(node));
  if (metric === 'name_conflict') return isPast ? alerts.nameWasNotUnique : alerts.nameNotUnique;
  if (metric === 'remote_nodes') return isPast ? alerts.listWasFull : alerts.listFull;
  const name = metricName(metric);
  if (isChannel(metric)) return (isPast ? alerts.wasNotConnected : alerts.notConnected)(name);
  if (metric.startsWith('disk:')) return (isPast ? alerts.wasNotMeasured : alerts.notMeasured)(name);
  if (severity === 'ERROR') return (isPast ? alerts.wasNotRead : alerts.notRead)(name);
  // The value is below the threshold, but hysteresis keeps the alert open: "high" would be wrong.
  if (value < threshold && !isPast) return alerts.noLongerCritical(name);
  if (severity === 'CRITICAL') return (isPast ? alerts.wasCritical : alerts.critical)(name);
  return (isPast ? alerts.wasHigh : alerts.high)(name);
}

export function metricName(metric: string): string {
  if (metric.startsWith('disk:')) return messages.alerts.disk(metric.slice('disk:'.length));
  if (isOtherAlert(metric)) return messages.otherAlerts[metric].name;
  return isMetric(metric) ? messages.metrics[metric].name : metric.replaceAll('_', ' ');
}

/** What an alert means and what to do, for someone who is not an engineer. Only heat is a reason to stop a robot. */
export function alertHelp({ metric, severity }: Pick<Alert, 'metric' | 'severity'>): { readonly meaning: string; readonly action: string } {
  const { metrics, otherAlerts } = messages;
  if (isMetric(metric) && severity === 'ERROR') return otherAlerts.notRead;
  if (metric === 'temperature' && severity === 'CRITICAL') return { ...metrics.temperature, action: metrics.temperature.actionIfCritical };
  if (isMetric(metric)) return metrics[metric];
  if (metric.startsWith('disk:')) return otherAlerts.disk;
  if (isOtherAlert(metric)) return otherAlerts[metric];
  return otherAlerts.other;
}

/** The value and the threshold of an alert. For ERROR both are seconds without data. */
export function alertFigures({ metric, severity, threshold, value }: Alert): string {
  if (metric === 'remote_nodes') return messages.alerts.nodesOf(value, threshold);
  if (metric === 'name_conflict') return messages.alerts.machinesOf(value);
  if (severity === 'ERROR') return messages.alerts.noDataFor(duration(value), duration(threshold));
  const unit = isMetric(metric) ? messages.metrics[metric].unit : '';
  return messages.alerts.valueOf(`${decimal(value)} ${unit}`.trim(), limit(threshold, unit));
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
  /** What to do about a CRITICAL alert; by default what to do in that status. */
  readonly action?: string;
}

export interface LinkText {
  readonly state: 'connecting' | 'live' | 'gone';
  readonly first: string;
  readonly second: string;
}

/** The state of the connection in two short lines. `lastMs`: when the last sample was taken. */
export function linkText(connection: Connection, lastMs: number | null, nowMs: number): LinkText {
  const { failures, phase, reason } = connection;
  const { connection: text } = messages;
  if (phase === 'live')
    return { state: 'live', first: text.live, second: lastMs === null ? '' : text.measuredAt(timeOfDay(lastMs, nowMs)) };
  // The event stream delivers measurements before everything is loaded.
  if (failures === 0 && (phase === 'connecting' || phase === 'loading')) {
    return { state: 'connecting', first: text.connecting, second: '' };
  }
  const never = phase === 'stale' || reason !== null ? text.noDataYet : text.noResponse;
  const first = lastMs === null ? never : text.noDataSince(timeOfDay(lastMs, nowMs));
  if (phase === 'stale') return { state: 'gone', first, second: connection.isResponding ? text.takesNoSamples : text.waiting };
  return { state: 'gone', first, second: reason === null ? text.reconnecting : text.tryingAgain(reason) };
}

/** The overall status and its reason. It contains no changing values, because screen readers announce each change. */
export function headline(link: LinkText, health: HealthStatus | null, book: AlertBook | null, node: string | null): Headline {
  const { headline: text } = messages;
  if (link.state === 'connecting' && !health) return { status: null, sentence: text.connecting };
  if (link.state === 'gone') return { status: 'UNKNOWN', sentence: `${link.first} ${health ? text.lastKnown : link.second}` };
  if (!health || health.status === 'UNKNOWN') return { status: 'UNKNOWN', sentence: text.nothingMeasured };
  const causes = (book?.open ?? []).filter((entry) => entry.node === node && entry.alert.severity === 'CRITICAL');
  const cause = causes.find(({ alert }) => alert.metric === 'temperature') ?? causes[0];
  return { status: health.status, sentence: explainStatus(health, book, node), ...(cause && { action: alertHelp(cause.alert).action }) };
}

/** The headline of a remote node that is stale. `lastMs` and `nowMs` are times of that node's clock. */
export function headlineOfStaleNode(link: LinkText, { node, status }: Tile, lastMs: number | null, nowMs: number): Headline {
  const { headline: text } = messages;
  if (link.state !== 'live') return headline(link, null, null, node);
  const name = markLookAlike(node);
  if (lastMs === null) return { status, sentence: text.noDataSinceStart(name) };
  return { status, sentence: `${text.noDataSince(name, timeOfDay(lastMs, nowMs))} ${text.lastKnown}` };
}

function explainStatus(health: HealthStatus, book: AlertBook | null, node: string | null): string {
  const { headline: text } = messages;
  const nodeAlerts = (book?.open ?? []).filter((entry) => entry.node === node);
  if (health.status === 'OK' || nodeAlerts.every(({ alert }) => isBelowThreshold(alert, health))) {
    const names = [...new Set(nodeAlerts.map(({ alert }) => metricName(alert.metric)))];
    if (names.length > 0) return text.notSettled(names);
    if (health.status === 'OK') return METRICS.every((metric) => health[metric] !== null) ? text.allFour : text.all;
  }
  const titles = nodeAlerts
    .sort((a, b) => worstFirst(a.alert.severity, b.alert.severity))
    .map(({ alert, node: of }) => `${alertTitle(asOfNow(alert, health), of)}.`);
  // The status changes immediately; its alert is raised a few seconds later.
  const withoutAlert: Partial<Record<Status, string>> = { WARNING: text.warning, ERROR: text.error, CRITICAL: text.critical };
  if (!nodeAlerts.some(({ alert }) => alert.severity === health.status)) titles.unshift(withoutAlert[health.status] ?? '');
  return titles.join(' ').trim();
}

/** Whether the reading is within the limits: below the threshold of WARNING, which an alert that is CRITICAL does not name. */
function isBelowThreshold({ metric, severity, threshold }: Alert, health: HealthStatus): boolean {
  const reading = isMetric(metric) ? health[metric] : null;
  return severity === 'WARNING' && reading !== null && reading < threshold;
}

/** A CRITICAL alert with the present reading, which may no longer be critical. */
function asOfNow(alert: Alert, health: HealthStatus): Alert {
  const reading = isMetric(alert.metric) ? health[alert.metric] : null;
  return alert.severity === 'CRITICAL' && reading !== null ? { ...alert, value: reading } : alert;
}

/** The headline of the local node, or that of the worst remote node if that is worse. */
export function headlineOfAll(head: Headline, tiles: readonly Tile[]): Headline {
  const other = worstOther(tiles);
  if (head.status === null || other === null || worstFirst(other.status, head.status) >= 0) return head;
  const { headline: text } = messages;
  const isSilent = other.isStale && other.status === 'UNKNOWN';
  const name = markLookAlike(other.node);
  const what = isSilent ? messages.alerts.noData(name) : text.isOther(name, messages.status[other.status].word);
  return { status: other.status, sentence: `${what}. ${text.thisIs(messages.status[head.status].word)} ${head.sentence}` };
}

export function otherNodesText({ count }: OtherNodes): string {
  return messages.alerts.others(count);
}

/** A difference between two clocks is reported if it is larger than this. */
const CLOCK_DIFFERENCE_LIMIT_MS = 60_000;

/** Notices about shutdown, power, storage and clocks, one line each. `clockDifferenceMs`: the machine's clock minus the browser's. */
export function notices(status: StatusDocument | null, clockDifferenceMs: number | null, nowMs: number): string[] {
  const lines: string[] = [];
  const { notices: text } = messages;
  const shutdown = status && shutdownNotice(status.shutdown, nowMs);
  if (shutdown) lines.push(shutdown);
  if (status?.power.undervoltage) lines.push(text.undervoltage);
  if (status?.storage.state === 'degraded') {
    const { error, since } = status.storage;
    lines.push(since === null ? text.notSaved : text.notSavedSince(timeOfDay(Date.parse(since), nowMs), error ?? ''));
  }
  if (clockDifferenceMs !== null && Math.abs(clockDifferenceMs) > CLOCK_DIFFERENCE_LIMIT_MS) {
    const by = duration(Math.abs(clockDifferenceMs) / 1000);
    lines.push((clockDifferenceMs > 0 ? text.clockAhead : text.clockBehind)(by));
  }
  return lines;
}

/** Notices about the remote node that is shown; null: none is. `differenceMs`: the times of its statuses minus the machine's. */
export function nodeNotices(node: NodeState | null, differenceMs: number): string[] {
  if (node === null) return [];
  const { clock_ahead_seconds: ahead, conflict_addresses: addresses, node_name } = node;
  const name = markLookAlike(node_name);
  const { notices: text } = messages;
  const lines = addresses.length === 0 ? [] : [text.nameNotUnique(name, addresses)];
  if (ahead !== null) lines.push(text.nodeClockAhead(name, duration(ahead)));
  else if (differenceMs < -CLOCK_DIFFERENCE_LIMIT_MS) lines.push(text.nodeClockBehind(name, duration(-differenceMs / 1000)));
  return lines;
}

/** A shutdown that was aborted or interrupted is reported for this long. */
const SHUTDOWN_NOTICE_MS = 3_600_000;

function shutdownNotice(
  { action, ended, message, reason, requested_by, seconds_left, state }: ShutdownState,
  nowMs: number,
): string | null {
  const { notices: text } = messages;
  const what = action === 'dry-run' ? text.dryRun : text.shutdown;
  const origin = text.requestedBy(reason ?? '', requested_by ?? '');
  if (state === 'in_progress') return text.shutdownRuns(what, origin, duration(seconds_left ?? 0), message ?? '');
  const endedMs = Date.parse(ended ?? '');
  if ((state !== 'aborted' && state !== 'interrupted') || !(nowMs - endedMs < SHUTDOWN_NOTICE_MS)) return null;
  return text.shutdownEnded(what, origin, timeOfDay(endedMs, nowMs), message ?? '');
}
