import { DAY_MS, MINUTE_MS } from '../core/time.ts';
import type { Columns } from './chunk.ts';
import type { LagTable } from './lag-table.ts';
import type { RawTable } from './raw-table.ts';
import type { SegmentPart } from './recorded.ts';

/** Segments are sought so many at a time, and where there are none in ever longer stretches. */
const FIRST_STRETCH_MS = 10 * MINUTE_MS;
const LONGEST_STRETCH_MS = 400 * DAY_MS;

/** Samples of one node. */
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
  /** A segment beyond this time is one of a clock that was set back. */
  readonly nowMs: number;
}

/** Parts of the segments from this one on, written and pending, by segment ascending. Null: of every node. */
export function* segmentParts(source: SegmentSource, fromSegment: number, node: string | null): Generator<SegmentPart> {
  const { lags, nowMs, pending, raw } = source;
  const nodes = [...source.nodes].filter(([name, id]) => (node === null || name === node) && raw.firstMs(id) !== null);
  const waiting = pending.flatMap(({ segment, parts }) =>
    parts.filter((part) => node === null || part.node === node).map((part) => ({ segment, node: part.node, read: () => part.columns })),
  );
  let stretch = FIRST_STRETCH_MS;
  for (let from = fromSegment; from < Number.POSITIVE_INFINITY; ) {
    const to = from > nowMs || stretch > LONGEST_STRETCH_MS ? Number.POSITIVE_INFINITY : from + stretch;
    const begin = from;
    const written = nodes.flatMap(([name, id]) =>
      lags.ranges(id, begin, to).flatMap((range) => raw.ofSegments(id, range, begin, to).map((found) => ({ ...found, node: name }))),
    );
    const parts = [...written, ...waiting.filter(({ segment }) => segment >= begin && segment < to)];
    for (const { segment, node: name, read } of parts.sort((a, b) => a.segment - b.segment)) {
      const columns = read();
      if (columns) yield { segment, node: name, columns };
    }
    stretch = parts.length === 0 ? stretch * 4 : FIRST_STRETCH_MS;
    from = to;
  }
}
