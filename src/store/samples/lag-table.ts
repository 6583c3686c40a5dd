import type { DatabaseSync } from 'node:sqlite';
import type { TimeRange } from '../../core/ports.ts';
import { DAY_MS, MINUTE_MS } from '../../core/time/time.ts';
import type { Columns } from './chunk.ts';
import type { RawTable } from './raw-table.ts';
import type { SegmentPart } from './recorded.ts';

/** Tolerance between a chunk's start and its node's lag. A smaller one writes more rows, a larger one makes searches longer. */
export const LAG_SLACK_MS = 5 * MINUTE_MS;

interface Lag {
  /** Holds from this segment on until the next one listed. Lags with the same segment hold together. */
  readonly segment: number;
  /** Segment number minus the time of its samples. */
  readonly lagMs: number;
}

/** Default: the node's clock agrees with this machine's. */
const NO_LAG: Lag = { segment: 0, lagMs: 0 };

/**
 * Maps segments to the times of their samples. Raw samples are indexed by node and time, but records after a cursor are searched by
 * segment. An index by segment would write 4 MB to flash per day; a node's clock is rarely set, and only that is stored here. The ranges
 * contain every chunk ever written, regardless of clock steps.
 */
export class LagTable {
  readonly #db: DatabaseSync;
  /** Ascending by segment. */
  #lags: Map<number, Lag[]> | null = null;
  /** The last segment of each node written by this process. */
  readonly #last = new Map<number, number>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Must be called for every chunk written, in its transaction. */
  record(nodeId: number, segment: number, fromMs: number): void {
    const lagMs = segment - fromMs;
    const inForce = inForceAt(this.#of(nodeId), segment);
    const last = this.#last.get(nodeId) ?? 0;
    this.#last.set(nodeId, Math.max(last, segment));
    if (inForce.some((lag) => Math.abs(lag.lagMs - lagMs) <= LAG_SLACK_MS)) return;
    // Chunks already written of this or later segments depend on the previous lags.
    const stay = segment <= last ? inForce.filter((lag) => lag.segment < segment) : [];
    for (const lag of [...stay, { segment, lagMs }]) this.#insert(nodeId, { ...lag, segment });
  }

  /** Disjoint time ranges in which every chunk of the segments from `from` up to but excluding `to` begins. */
  ranges(nodeId: number, from: number, to: number): TimeRange[] {
    const lags = this.#of(nodeId);
    const starts = [...new Set([from, ...lags.map(({ segment }) => segment).filter((segment) => segment > from && segment < to)])];
    const ranges = starts.flatMap((start, i) =>
      inForceAt(lags, start).map(({ lagMs }) => ({
        fromMs: start - lagMs - LAG_SLACK_MS,
        toMs: (starts[i + 1] ?? to) - lagMs + LAG_SLACK_MS,
      })),
    );
    return joined(ranges);
  }

  /** Discards the cache after rows were removed or a transaction was rolled back. */
  reload(): void {
    this.#lags = null;
  }

  #of(nodeId: number): readonly Lag[] {
    if (!this.#lags) {
      this.#lags = new Map();
      const rows = this.#db.prepare('SELECT node_id, segment, lag_ms FROM lag ORDER BY segment').all();
      for (const { node_id, segment, lag_ms } of rows as { node_id: number; segment: number; lag_ms: number }[]) {
        const lags = this.#lags.get(node_id) ?? [];
        lags.push({ segment, lagMs: lag_ms });
        this.#lags.set(node_id, lags);
      }
    }
    return this.#lags.get(nodeId) ?? [];
  }

  #insert(nodeId: number, lag: Lag): void {
    this.#db.prepare('INSERT OR IGNORE INTO lag VALUES (?, ?, ?)').run(nodeId, lag.segment, lag.lagMs);
    const lags = [...this.#of(nodeId), lag].sort((a, b) => a.segment - b.segment);
    this.#lags?.set(nodeId, lags);
  }
}

function inForceAt(lags: readonly Lag[], segment: number): readonly Lag[] {
  const since = lags.findLast((lag) => lag.segment <= segment)?.segment;
  return since === undefined ? [NO_LAG] : lags.filter((lag) => lag.segment === since);
}

function joined(ranges: readonly TimeRange[]): TimeRange[] {
  const apart: TimeRange[] = [];
  for (const range of ranges.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const last = apart.at(-1);
    if (last && range.fromMs <= last.toMs) apart[apart.length - 1] = { fromMs: last.fromMs, toMs: Math.max(last.toMs, range.toMs) };
    else apart.push(range);
  }
  return apart;
}

/** Segments are searched in windows of this length, which quadruples after each empty window. */
const FIRST_WINDOW_MS = 10 * MINUTE_MS;
const LONGEST_WINDOW_MS = 400 * DAY_MS;

export interface PendingPart {
  readonly node: string;
  readonly columns: Columns;
}

export interface PendingSegment {
  readonly segment: number;
  readonly parts: readonly PendingPart[];
}

export interface SegmentSource {
  /** Ids by name. */
  readonly nodes: ReadonlyMap<string, number>;
  readonly raw: RawTable;
  readonly lags: LagTable;
  readonly pending: readonly PendingSegment[];
  /** A segment number later than this dates from before the clock was set back. */
  readonly nowMs: number;
}

/** Parts of the segments from `fromSegment` on, written and pending, ascending by segment. `node` null: of every node. */
export function* segmentParts(source: SegmentSource, fromSegment: number, node: string | null): Generator<SegmentPart> {
  const { lags, nowMs, pending, raw } = source;
  const nodes = [...source.nodes].filter(([name, id]) => (node === null || name === node) && raw.firstMs(id) !== null);
  const waiting = pending.flatMap(({ segment, parts }) =>
    parts.filter((part) => node === null || part.node === node).map((part) => ({ segment, node: part.node, read: () => part.columns })),
  );
  let windowMs = FIRST_WINDOW_MS;
  for (let from = fromSegment; from < Number.POSITIVE_INFINITY; ) {
    const to = from > nowMs || windowMs > LONGEST_WINDOW_MS ? Number.POSITIVE_INFINITY : from + windowMs;
    const begin = from;
    const written = nodes.flatMap(([name, id]) =>
      lags.ranges(id, begin, to).flatMap((range) => raw.ofSegments(id, range, begin, to).map((found) => ({ ...found, node: name }))),
    );
    const parts = [...written, ...waiting.filter(({ segment }) => segment >= begin && segment < to)];
    for (const { segment, node: name, read } of parts.sort((a, b) => a.segment - b.segment)) {
      const columns = read();
      if (columns) yield { segment, node: name, columns };
    }
    windowMs = parts.length === 0 ? windowMs * 4 : FIRST_WINDOW_MS;
    from = to;
  }
}
