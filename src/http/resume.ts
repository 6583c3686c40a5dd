import { nodeOfAlertId } from '../core/alert.ts';
import { METRICS } from '../core/metrics.ts';
import type { AlertCursor, HistoryPage, HistoryReader } from '../core/ports.ts';
import { STATUSES } from '../core/thresholds.ts';
import { isoUtc } from '../core/time.ts';

export type EventKind = 'health' | 'alert' | 'shutdown';

export interface StreamFilter {
  readonly kinds: readonly EventKind[];
  /** Null: all nodes. */
  readonly node: string | null;
}

/** How far a stream has come in what is stored of one kind: the time of the last one, and how many of that very millisecond. */
export interface Mark {
  readonly ms: number;
  readonly count: number;
}

/** Everything stored up to both marks was sent. An alert is published when it is durable: after later health statuses, it may be. */
export interface Position {
  readonly health: Mark;
  readonly alert: Mark;
}

/** The mark after one more of this time. It never goes back, even where the clock does. */
export function advance(mark: Mark, ms: number): Mark {
  return ms > mark.ms ? { ms, count: 1 } : { ms: mark.ms, count: mark.count + 1 };
}

export function isBeyond(mark: Mark, reached: Mark): boolean {
  return mark.ms > reached.ms || (mark.ms === reached.ms && mark.count > reached.count);
}

/** The position is what lets a client resume after a restart of the service; the number tells events of one position apart. */
export function formatId({ health, alert }: Position, number: number): string {
  return `${health.ms}.${health.count}-${alert.ms}.${alert.count}-${number}`;
}

export function parseId(id: string): Position | null {
  const match = /^(\d{1,15})\.(\d{1,9})-(\d{1,15})\.(\d{1,9})-\d{1,15}$/.exec(id);
  if (!match) return null;
  const [healthMs, healthCount, alertMs, alertCount] = match.slice(1).map(Number) as [number, number, number, number];
  return { health: { ms: healthMs, count: healthCount }, alert: { ms: alertMs, count: alertCount } };
}

/** An event as it is in the store. */
export interface MissedEvent {
  readonly kind: 'health' | 'alert';
  readonly node: string;
  readonly json: string;
  /** Where the stream is once it was sent. */
  readonly position: Position;
}

export interface MissedEvents {
  readonly events: readonly MissedEvent[];
  readonly more: boolean;
}

/** Health statuses that are brought from the store in one go, of each node. */
const ROWS_AT_ONCE = 1000;

interface Found {
  readonly kind: 'health' | 'alert';
  readonly node: string;
  readonly ms: number;
  readonly json: string;
}

/** What the store has after a position, oldest first; not all at once. */
export async function missedSince(
  history: HistoryReader,
  nodes: readonly string[],
  since: Position,
  filter: StreamFilter,
  untilMs: number,
): Promise<MissedEvents> {
  const statuses: Found[] = [];
  // Where one node has more, the others wait for its next part.
  let endMs = Math.max(untilMs, since.health.ms + 1);
  let more = false;
  for (const node of filter.kinds.includes('health') ? nodes : []) {
    const query = { node, fromMs: since.health.ms, toMs: endMs, stepMs: null, order: 'asc', limit: ROWS_AT_ONCE } as const;
    const page = await history.history(query);
    for (let row = 0; row < page.count; row += 1) statuses.push(statusOf(page, row, node));
    if (!page.more) continue;
    more = true;
    endMs = (page.timestampMs[page.count - 1] as number) + 1;
  }
  const alerts = filter.kinds.includes('alert') ? await alertsSince(history, since.alert, filter.node, more ? endMs : null) : [];
  return { events: inOrder([...statuses.filter(({ ms }) => ms < endMs), ...alerts], since), more };
}

/** Changes of alerts from a mark on, oldest first. */
async function alertsSince(history: HistoryReader, since: Mark, node: string | null, endMs: number | null): Promise<Found[]> {
  const range = { fromMs: since.ms, toMs: Math.max(endMs ?? Number.MAX_SAFE_INTEGER, since.ms) };
  const query = { node, severity: null, metric: null, resolved: null, changes: true, limit: ROWS_AT_ONCE, range, nowMs: 0 };
  const found: Found[] = [];
  let after: AlertCursor | null = null;
  do {
    const page = await history.alerts({ ...query, after });
    for (const alert of page.alerts) {
      found.push({ kind: 'alert', node: nodeOfAlertId(alert.alert_id), ms: Date.parse(alert.timestamp), json: JSON.stringify(alert) });
    }
    after = page.next;
  } while (after);
  return found.reverse();
}

function inOrder(found: readonly Found[], since: Position): MissedEvent[] {
  const wasSent = alreadySent(found, since);
  let position = since;
  const sorted = found.filter((event) => !wasSent.has(event)).sort((a, b) => a.ms - b.ms);
  return sorted.map(({ kind, node, ms, json }) => {
    position = { ...position, [kind]: advance(position[kind], ms) };
    return { kind, node, json, position };
  });
}

/**
 * Of the millisecond at which the client stopped, it may have some. Statuses are stored in the order in which they were published;
 * alerts are not, so that when it has only a part of them they come again rather than not at all.
 */
function alreadySent(found: readonly Found[], { health, alert }: Position): Set<Found> {
  const statuses = found.filter(({ kind, ms }) => kind === 'health' && ms === health.ms);
  const alerts = found.filter(({ kind, ms }) => kind === 'alert' && ms === alert.ms);
  return new Set([...statuses.slice(0, health.count), ...(alert.count >= alerts.length ? alerts : [])]);
}

function statusOf(page: HistoryPage, row: number, node: string): Found {
  const readings = METRICS.map((metric, m) => {
    const value = page.metrics[m]?.[row];
    return [metric, Number.isFinite(value) ? value : null];
  });
  const ms = page.timestampMs[row] as number;
  const status = { ...Object.fromEntries(readings), status: STATUSES[page.status[row] as number], node_name: node, timestamp: isoUtc(ms) };
  return { kind: 'health', node, ms, json: JSON.stringify(status) };
}
