import { type AlertBook, type Elsewhere, type Entry, openAbout } from './alert-book.ts';
import type { Connection } from './connection.ts';
import { decimal, duration, limit, plural, timeOfDay } from './format.ts';
import { type Alert, type HealthStatus, METRICS, type Metric, type ShutdownState, type Status, type StatusDocument } from './types.ts';

/** Everything the page says in sentences. */
export const METRIC_WORDS: Readonly<Record<Metric, { name: string; unit: string }>> = {
  cpu_percent: { name: 'CPU usage', unit: '%' },
  memory_percent: { name: 'Memory usage', unit: '%' },
  disk_percent: { name: 'Disk usage', unit: '%' },
  temperature: { name: 'Temperature', unit: '°C' },
};

const isMetric = (name: string): name is Metric => (METRICS as readonly string[]).includes(name);

/** What an alert is about, in a few words. */
export function alertTitle(alert: Alert, node: string, tense: 'present' | 'past' = 'present'): string {
  const { metric, severity, threshold, value } = alert;
  if (metric === 'health_status') return `No data from ${node}`;
  const name = metricName(metric);
  const isPast = tense === 'past';
  if (severity === 'ERROR') return `${name} ${isPast ? 'could not' : 'cannot'} be read`;
  // Fallen below the critical threshold: not yet settled, but "high" would be wrong.
  if (value < threshold && !isPast) return `${name} is no longer critical`;
  return `${name} ${isPast ? 'was' : 'is'} ${severity === 'CRITICAL' ? 'critically high' : 'high'}`;
}

function metricName(metric: string): string {
  return isMetric(metric) ? METRIC_WORDS[metric].name : metric.replaceAll('_', ' ');
}

/** The value against the threshold: for ERROR those are seconds of silence. */
export function alertFigures({ metric, severity, threshold, value }: Alert): string {
  if (severity === 'ERROR') return `silent for ${duration(value)}, allowed ${duration(threshold)}`;
  const unit = isMetric(metric) ? METRIC_WORDS[metric].unit : '';
  return `${decimal(value)} ${unit}`.trim().concat(`, threshold ${limit(threshold, unit)}`);
}

export type MetricState = 'normal' | 'warning' | 'critical' | 'unavailable';

/** Thresholds are the service's business: a metric is as bad as its open alerts say. */
export function metricState(reading: number | null, alerts: readonly Alert[]): MetricState {
  if (reading === null) return 'unavailable';
  if (alerts.some((alert) => alert.severity === 'CRITICAL')) return 'critical';
  return alerts.some((alert) => alert.severity === 'WARNING') ? 'warning' : 'normal';
}

export interface Headline {
  /** Null: nothing is known yet, and nothing is wrong either. */
  readonly status: Status | null;
  readonly sentence: string;
}

export interface LinkWords {
  readonly state: 'connecting' | 'live' | 'gone';
  readonly first: string;
  readonly second: string;
}

/** How the page is connected, in two short lines. `lastMs`: when the last sample was taken. */
export function linkWords(connection: Connection, lastMs: number | null, nowMs: number): LinkWords {
  const { failures, phase, reason } = connection;
  if (phase === 'live') {
    return { state: 'live', first: 'Live', second: lastMs === null ? '' : `Measured ${timeOfDay(lastMs, nowMs)}` };
  }
  if (lastMs === null && failures === 0 && (phase === 'connecting' || phase === 'loading')) {
    return { state: 'connecting', first: 'Connecting…', second: '' };
  }
  const never = phase === 'silent' || reason !== null ? 'No data yet.' : 'No answer.';
  const first = lastMs === null ? never : `No data since ${timeOfDay(lastMs, nowMs)}.`;
  if (phase === 'silent') {
    const second = connection.answers ? 'The service answers, but measures nothing.' : 'Waiting for the next measurement…';
    return { state: 'gone', first, second };
  }
  return { state: 'gone', first, second: reason === null ? 'Trying to reconnect…' : `${reason} Trying again…` };
}

/** The overall status and why, for somebody who only glances. It holds no values that change, as it is read out loud. */
export function headline(link: LinkWords, health: HealthStatus | null, book: AlertBook | null, node: string | null): Headline {
  if (link.state === 'connecting') return { status: null, sentence: 'Asking the health service…' };
  if (link.state === 'gone') {
    return { status: 'UNKNOWN', sentence: `${link.first} ${health ? 'The numbers below are the last known ones.' : link.second}` };
  }
  if (!health || health.status === 'UNKNOWN') return { status: 'UNKNOWN', sentence: 'Nothing could be measured.' };
  return { status: health.status, sentence: why(health, book, node) };
}

/** As headline, of another node from which nothing comes although the service is there. `lastMs` and `nowMs` by its own clock. */
export function missed(link: LinkWords, node: string, lastMs: number | null, nowMs: number): Headline {
  if (link.state !== 'live') return headline(link, null, null, node);
  if (lastMs === null) return { status: 'UNKNOWN', sentence: `No data from ${node} since the service started.` };
  return {
    status: 'UNKNOWN',
    sentence: `No data from ${node} since ${timeOfDay(lastMs, nowMs)}. The numbers below are the last known ones.`,
  };
}

function why(health: HealthStatus, book: AlertBook | null, node: string | null): string {
  const mine = (book?.open ?? []).filter((entry) => entry.node === node);
  const unread = METRICS.filter((metric) => health[metric] === null);
  const silent = unread.length > 0 ? `${listed(unread.map((metric) => METRIC_WORDS[metric].name))} cannot be read.` : '';
  const crossed = mine.filter((entry) => entry.alert.severity !== 'ERROR');
  if (health.status === 'OK') {
    const names = crossed.map(({ alert }) => metricName(alert.metric));
    if (names.length > 0) return `Within the limits again, not settled yet: ${listed([...new Set(names)])}. ${silent}`.trim();
    return silent === '' ? 'All four measurements are within their limits.' : `${silent} Everything else is within its limits.`;
  }
  const titles = crossed.sort(worstFirst).map(({ alert, node: of }) => `${alertTitle(alert, of)}.`);
  // A status comes at once, its alert a few seconds later.
  const isToldBy = health.status === 'CRITICAL' ? crossed.some(({ alert }) => alert.severity === 'CRITICAL') : crossed.length > 0;
  if (!isToldBy) titles.unshift(`A measurement has crossed its ${health.status === 'CRITICAL' ? 'critical' : 'warning'} threshold.`);
  return [...titles, silent].join(' ').trim();
}

function worstFirst(a: Entry, b: Entry): number {
  return Number(b.alert.severity === 'CRITICAL') - Number(a.alert.severity === 'CRITICAL');
}

/** In a few words; a sentence of its own, since it does not change the status beside which it stands. */
export function elsewhereWords({ count }: Elsewhere): string {
  return `Other nodes: ${plural(count, 'open alert')}`;
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** Two clocks further apart than this are worth a word. */
const CLOCKS_APART_MS = 60_000;

/** What else a teacher should know, a line each. `clockDifferenceMs`: the machine's clock minus this device's. */
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
  if (clockDifferenceMs !== null && Math.abs(clockDifferenceMs) > CLOCKS_APART_MS) {
    const by = duration(Math.abs(clockDifferenceMs) / 1000);
    lines.push(
      `This machine's clock is ${by} ${clockDifferenceMs > 0 ? 'ahead of' : 'behind'} yours. Times on this page are the machine's.`,
    );
  }
  return lines;
}

/** That another node's clock disagrees with that of the machine; null: none is shown. */
export function clockNotices(node: string | null, differenceMs: number): string[] {
  if (node === null || Math.abs(differenceMs) <= CLOCKS_APART_MS) return [];
  const by = duration(Math.abs(differenceMs) / 1000);
  return [
    `The clock of ${node} is ${by} ${differenceMs > 0 ? 'ahead of' : 'behind'} this machine's. The times of its measurements are its own.`,
  ];
}

/** A shutdown that did not come to its end is told of for this long. */
const TOLD_FOR_MS = 3_600_000;

function shutdownNotice(
  { action, ended, message, reason, requested_by, seconds_left, state }: ShutdownState,
  nowMs: number,
): string | null {
  const what = action === 'dry-run' ? 'dry run of a safe shutdown' : 'safe shutdown';
  const who = `(${reason}, asked for by ${requested_by})`;
  if (state === 'in_progress') return `This machine: ${what} in progress ${who}, ${duration(seconds_left ?? 0)} left: ${message}.`;
  const endedMs = Date.parse(ended ?? '');
  if ((state !== 'aborted' && state !== 'interrupted') || !(nowMs - endedMs < TOLD_FOR_MS)) return null;
  return `The ${what} ${who} ended at ${timeOfDay(endedMs, nowMs)}: ${message}.`;
}

/** The thresholds that open alerts tell, for the chart. */
export function thresholdsOf(book: AlertBook | null, node: string | null, metric: Metric): number[] {
  const told = openAbout(book, node, metric).filter((alert) => alert.severity !== 'ERROR');
  return [...new Set(told.map((alert) => alert.threshold))];
}
