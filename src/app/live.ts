import { type Alert, healthStatusOf, nodeOfAlertId, type Severity } from '../core/alerts/alert.ts';
import { currentStatus, type HealthStatus } from '../core/health-status.ts';
import { isNodeName } from '../core/node-name.ts';

interface LiveNode {
  /** Null: listed because of its alerts or an earlier run, without a status since the start. */
  status: HealthStatus | null;
  /** Time of the last arrival, possibly in an earlier run. */
  lastSeenSeconds: number;
  periodSeconds: number;
  clockAheadSeconds: number | null;
  stale: boolean;
  leftMs: number | null;
  conflict: readonly string[];
}

/** Current state of a node. */
export interface NodeNow {
  /** The last status, UNKNOWN once it is stale; null: none since the start. */
  readonly status: HealthStatus | null;
  readonly ageSeconds: number | null;
  readonly periodSeconds: number | null;
  /** Monotonic time of the last arrival, possibly in an earlier run; null: unknown. */
  readonly lastSeenSeconds: number | null;
  /** Whether no status arrived within the allowed time. */
  readonly stale: boolean;
  /** When it left the graph in an orderly way, wall-clock milliseconds; null: it is present or disappeared. */
  readonly leftMs: number | null;
  /** By how much its clock is ahead of this machine's; null: not by more than a delay could hide. */
  readonly clockAheadSeconds: number | null;
  /** The addresses of several publishers of its name, the one that counts first; empty: there is one. */
  readonly conflict: readonly string[];
}

/** What is known of a listed node without a status. */
const NOTHING = { lastSeenSeconds: null, leftMs: null, stale: false, clockAheadSeconds: null, conflict: [] } as const;

/** Current state: the last status of every node and the open alerts. Times are monotonic seconds. */
export class Live {
  /** Listed nodes; those with a status are in the order of their first one. */
  readonly #nodes = new Map<string, LiveNode>();
  /** Names of all nodes seen or with stored data. */
  readonly #known = new Set<string>();
  readonly #open = new Map<string, Map<string, Alert>>();

  /** Adds known names; invalid ones are skipped. */
  addNames(names: Iterable<string>): void {
    for (const name of names) if (isNodeName(name)) this.#known.add(name);
  }

  isKnown(name: string): boolean {
    return this.#known.has(name);
  }

  setStatus(status: HealthStatus, receivedSeconds: number, periodSeconds: number, clockAheadSeconds: number | null = null): void {
    const name = status.node_name;
    const live = this.#nodes.get(name);
    if (live?.status) {
      live.status = status;
      live.lastSeenSeconds = receivedSeconds;
      live.periodSeconds = periodSeconds;
      live.clockAheadSeconds = clockAheadSeconds;
      return;
    }
    this.#known.add(name);
    this.#nodes.delete(name);
    this.#nodes.set(name, { ...NOTHING, ...live, status, lastSeenSeconds: receivedSeconds, periodSeconds, clockAheadSeconds });
  }

  /** Records a repeated status; false: no status of the node is shown yet. */
  refresh(name: string, receivedSeconds: number): boolean {
    const live = this.#nodes.get(name);
    if (!live?.status) return false;
    live.lastSeenSeconds = receivedSeconds;
    return true;
  }

  /** Lists a node without a status since the start, because of its alerts or an earlier run. */
  expect(name: string, lastSeenSeconds: number): void {
    this.#known.add(name);
    const live = this.#nodes.get(name);
    if (!live) this.#nodes.set(name, { ...NOTHING, status: null, lastSeenSeconds, periodSeconds: 0 });
    else if (!live.status) live.lastSeenSeconds = lastSeenSeconds;
  }

  setStale(name: string, stale: boolean): void {
    const live = this.#nodes.get(name);
    if (live) live.stale = stale;
  }

  setLeft(name: string, leftMs: number | null): void {
    const live = this.#nodes.get(name);
    if (live) live.leftMs = leftMs;
  }

  setConflict(name: string, conflict: readonly string[]): void {
    const live = this.#nodes.get(name);
    if (live) live.conflict = conflict;
  }

  /** Removes a node from the list. With `isStored` its name stays known, since its history can be queried. */
  forget(name: string, isStored: boolean): void {
    if (!isStored) this.#known.delete(name);
    this.#nodes.delete(name);
  }

  setAlert(alert: Alert): void {
    const node = nodeOfAlertId(alert.alert_id);
    const open = this.#open.get(node) ?? new Map<string, Alert>();
    if (alert.resolved) open.delete(alert.alert_id);
    else open.set(alert.alert_id, alert);
    if (open.size > 0) this.#open.set(node, open);
    else this.#open.delete(node);
  }

  /** Listed nodes: those with a status since the start, then those expected. */
  nodes(): string[] {
    const names = [...this.#nodes.keys()];
    const hasStatus = (name: string): boolean => this.#nodes.get(name)?.status !== null;
    return [...names.filter(hasStatus), ...names.filter((name) => !hasStatus(name))];
  }

  node(name: string, nowSeconds: number): NodeNow {
    const live = this.#nodes.get(name);
    if (!live?.status) return { ...NOTHING, ...live, status: null, ageSeconds: null, periodSeconds: null };
    const { periodSeconds } = live;
    const ageSeconds = nowSeconds - live.lastSeenSeconds;
    const current = currentStatus(live.status, ageSeconds, periodSeconds);
    const status = healthStatusOf([current.status], this.openAlertsOf(name));
    return { ...live, status: { ...current, status }, ageSeconds };
  }

  openAlerts(): Alert[] {
    return [...this.#open.values()].flatMap((open) => [...open.values()]);
  }

  openAlertsOf(name: string): Alert[] {
    return [...(this.#open.get(name)?.values() ?? [])];
  }

  openBySeverity(): Record<Severity, number> {
    const counts: Record<Severity, number> = { WARNING: 0, ERROR: 0, CRITICAL: 0 };
    for (const { severity } of this.openAlerts()) counts[severity] += 1;
    return counts;
  }
}

const WINDOW_SECONDS = 60;

/** Events per second over the last minute, counted in buckets of a second, so that the cost is the same at any rate. */
export class RateMeter {
  readonly #buckets = new Uint32Array(WINDOW_SECONDS + 1);
  #firstSeconds: number | null = null;
  #lastBucket = 0;
  #lastSeconds = 0;

  count(atSeconds: number): void {
    this.#firstSeconds ??= atSeconds;
    this.#advance(atSeconds);
    const bucket = Math.floor(atSeconds) % this.#buckets.length;
    this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
    this.#lastSeconds = atSeconds;
  }

  /** Events per second over the last whole minute, or since the first event; null during the first two seconds. */
  hertz(nowSeconds: number): number | null {
    if (this.#firstSeconds === null) return null;
    const span = Math.min(WINDOW_SECONDS, Math.floor(nowSeconds) - Math.ceil(this.#firstSeconds));
    if (span < 2) return null;
    this.#advance(Math.max(nowSeconds, this.#lastSeconds));
    let sum = 0;
    const last = Math.floor(nowSeconds) - 1;
    for (let second = last; second > last - span; second -= 1) sum += this.#buckets[second % this.#buckets.length] ?? 0;
    return sum / span;
  }

  #advance(atSeconds: number): void {
    const bucket = Math.floor(atSeconds);
    for (let second = Math.max(this.#lastBucket + 1, bucket - WINDOW_SECONDS); second <= bucket; second += 1) {
      this.#buckets[second % this.#buckets.length] = 0;
    }
    this.#lastBucket = Math.max(this.#lastBucket, bucket);
  }
}
