import { DAY_MS, MINUTE_MS } from '../../core/time/time.ts';
import type { Columns } from './chunk.ts';
import type { LagTable } from './lag-table.ts';
import type { RawTable } from './raw-table.ts';
import type { SegmentPart } from './recorded.ts';

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
