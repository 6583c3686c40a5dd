import { fingerprint, type KnownNode, type Stamp } from '../../core/alerts/node-watch.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time.ts';
import { compareMarks } from './recorded.ts';
import { type SegmentSource, segmentParts } from './segments.ts';

/** Number of a node's latest statuses that are loaded, to recognize repetitions by its DDS writer. */
const RECENT = 64;
/** How far before the last segment these statuses are searched. */
const RECENT_MS = 5 * MINUTE_MS;

/** First and last receive times of the remote nodes. `lastHourMs` returns a node's newest hour; null: there is none. */
export function findRemoteNodes(
  source: SegmentSource,
  remoteNodes: Iterable<string>,
  lastHourMs: (node: string) => number | null,
): KnownNode[] {
  return [...remoteNodes].map((name) => {
    const segment = lastSegment(source, name);
    const hourMs = lastHourMs(name);
    const lastSeenMs = segment ?? (hourMs === null ? null : hourMs + HOUR_MS);
    // This is the earliest sample by the node's own clock. If that clock was set, an earlier-received sample may exist, and the span
    // comes out shorter.
    const id = source.nodes.get(name);
    const firstSeenMs = (id === undefined ? null : source.raw.firstSegment(id)) ?? lastSeenMs;
    return { name, firstSeenMs, lastSeenMs, recent: segment === null ? [] : recentStamps(source, name, segment) };
  });
}

function lastSegment({ nodes, raw, lags, pending, nowMs }: SegmentSource, name: string): number | null {
  const waiting = pending.filter(({ parts }) => parts.some(({ node }) => node === name)).map(({ segment }) => segment);
  const id = nodes.get(name);
  if (id === undefined) return waiting.length === 0 ? null : Math.max(...waiting);
  // After a clock was set back, the latest sample in time is not the last one received.
  const lately = lags.ranges(id, nowMs - DAY_MS, Number.POSITIVE_INFINITY).map(({ toMs }) => raw.lastSegment(id, toMs));
  const segments = [...waiting, ...lately, raw.lastSegment(id)].filter((segment) => segment !== null);
  return segments.length === 0 ? null : Math.max(...segments);
}

function recentStamps(source: SegmentSource, name: string, segment: number): Stamp[] {
  const rows: { segment: number; sequence: number; stamp: Stamp }[] = [];
  for (const { segment: at, columns } of segmentParts(source, segment - RECENT_MS, name)) {
    for (let row = 0; row < columns.count; row += 1) {
      const values = columns.metrics.map((column) => column[row] as number);
      const stamp = { ms: columns.timestampMs[row] as number, print: fingerprint(values, columns.status[row] as number) };
      rows.push({ segment: at, sequence: columns.sequence[row] as number, stamp });
    }
  }
  return rows
    .sort(compareMarks)
    .slice(-RECENT)
    .map(({ stamp }) => stamp);
}
