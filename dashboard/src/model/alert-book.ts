import { healthStatusOf, worstFirst } from '../../../src/core/alerts/alert.ts';
import type { Alert, Metric, Severity, Status } from '../types.ts';

/** An alert as the page lists it. */
export interface Entry {
  /** The alert as of its latest change. */
  readonly alert: Alert;
  /** Time of the earliest known change. */
  readonly sinceMs: number;
  readonly node: string;
}

export interface AlertBook {
  /** Newest first. */
  readonly open: readonly Entry[];
  /** The most recently resolved ones, newest first. */
  readonly resolved: readonly Entry[];
}

const RESOLVED_SHOWN = 5;

export const EMPTY_BOOK: AlertBook = { open: [], resolved: [] };

/** Names of nodes may hold slashes, and so may the metric of a disk path. */
export function nodeOfAlert(alertId: string): string {
  const disk = alertId.indexOf('/disk:');
  return disk < 0 ? alertId.split('/').slice(0, -2).join('/') : alertId.slice(0, disk);
}

const timeOf = (alert: Alert): number => Date.parse(alert.timestamp);
const newestRaisedFirst = (a: Entry, b: Entry): number => b.sinceMs - a.sinceMs;
const newestChangedFirst = (a: Entry, b: Entry): number => timeOf(b.alert) - timeOf(a.alert);

/** Returns the book after one change of an alert. A change older than the known state can only move `sinceMs` back. */
export function withAlert(book: AlertBook, alert: Alert): AlertBook {
  const id = alert.alert_id;
  const known = [...book.open, ...book.resolved].find((entry) => entry.alert.alert_id === id);
  const sinceMs = Math.min(known?.sinceMs ?? Number.POSITIVE_INFINITY, timeOf(alert));
  // A resolved alert stays resolved, because the service never reuses an id.
  const isNewer = !known || (timeOf(alert) >= timeOf(known.alert) && !known.alert.resolved);
  const entry: Entry = { alert: isNewer ? alert : known.alert, sinceMs, node: nodeOfAlert(id) };
  const others = (entries: readonly Entry[]): Entry[] => entries.filter((other) => other.alert.alert_id !== id);
  const open = others(book.open);
  const resolved = others(book.resolved);
  (entry.alert.resolved ? resolved : open).push(entry);
  return { open: open.sort(newestRaisedFirst), resolved: resolved.sort(newestChangedFirst).slice(0, RESOLVED_SHOWN) };
}

/** Builds the book from the API's lists. `changes` gives the time at which each alert was raised. */
export function buildBook(open: readonly Alert[], resolved: readonly Alert[], changes: readonly Alert[]): AlertBook {
  const ids = new Set([...open, ...resolved].map((alert) => alert.alert_id));
  const earlier = changes.filter((alert) => ids.has(alert.alert_id));
  return [...open, ...resolved, ...earlier].reduce(withAlert, EMPTY_BOOK);
}

/** When an alert was raised: the earliest of its changes in the book and in `changes`, in milliseconds since the epoch. */
export function raisedMs({ alert, sinceMs }: Entry, changes: readonly Alert[]): number {
  return Math.min(sinceMs, ...changes.filter(({ alert_id }) => alert_id === alert.alert_id).map(timeOf));
}

/** Open alerts of the nodes that are not shown. */
export interface OtherNodes {
  readonly count: number;
  /** Severity and node of the worst alert; of several equally severe ones the newest. */
  readonly severity: Severity;
  readonly node: string;
}

const worstEntryFirst = (a: Entry, b: Entry): number => worstFirst(a.alert.severity, b.alert.severity);

/** Null: no such alert is open, or the alerts are not loaded yet. */
export function openOnOtherNodes(book: AlertBook | null, node: string | null): OtherNodes | null {
  const others = (book?.open ?? []).filter((entry) => entry.node !== node);
  const [worst] = others.toSorted(worstEntryFirst);
  return worst ? { count: others.length, severity: worst.alert.severity, node: worst.node } : null;
}

/** The worst open alert of each node, of several equally severe ones the newest, and how many it has. */
export function worstOpenByNode(book: AlertBook): Map<string, { readonly entry: Entry; readonly count: number }> {
  const byNode = Map.groupBy(book.open, ({ node }) => node);
  return new Map(
    [...byNode].map(([node, entries]) => [node, { entry: entries.toSorted(worstEntryFirst)[0] as Entry, count: entries.length }]),
  );
}

/** The worse of a node's status and its open alerts, because other programs may publish a status that ignores their alerts. */
export function statusWithAlerts(status: Status, book: AlertBook | null, node: string): Status {
  const entries = (book?.open ?? []).filter((entry) => entry.node === node);
  return healthStatusOf(
    [status],
    entries.map(({ alert }) => alert),
  );
}

/** Open alerts about one metric of one node. Alerts about disk paths count as alerts about the disk. */
export function openAlertsAbout(book: AlertBook | null, node: string | null, metric: Metric): Alert[] {
  const isAbout = (name: string): boolean => name === metric || (metric === 'disk_percent' && name.startsWith('disk:'));
  return (book?.open ?? []).filter((entry) => entry.node === node && isAbout(entry.alert.metric)).map((entry) => entry.alert);
}
