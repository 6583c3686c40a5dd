import { MINUTE_MS } from '../../core/time/time.ts';
import { hourOf } from '../rollups/tiers.ts';
import type { Columns } from './chunk.ts';

/** Longest time span of a chunk, which bounds how far back a range query must search. */
export const MAX_CHUNK_MS = MINUTE_MS;
/** Upper limit of rows in a chunk; exceeded only by rows that share one time. */
const MAX_CHUNK_ROWS = 4096;

function pick(columns: Columns, rows: Uint32Array): Columns {
  const take = (column: Float64Array): Float64Array => Float64Array.from(rows, (row) => column[row] as number);
  return {
    count: rows.length,
    timestampMs: take(columns.timestampMs),
    metrics: columns.metrics.map(take),
    status: Uint8Array.from(rows, (row) => columns.status[row] as number),
    sequence: Uint32Array.from(rows, (row) => columns.sequence[row] as number),
  };
}

/** Concatenates columns and sorts them by time; rows of the same time keep their order. */
export function joinSorted(list: readonly Columns[]): Columns {
  const joined = list.length === 1 ? (list[0] as Columns) : concatenate(list);
  const { count, timestampMs } = joined;
  let sorted = true;
  for (let i = 1; i < count && sorted; i += 1) sorted = (timestampMs[i] as number) >= (timestampMs[i - 1] as number);
  if (sorted) return joined;
  const rows = Uint32Array.from({ length: count }, (_, i) => i);
  return pick(
    joined,
    rows.sort((a, b) => (timestampMs[a] as number) - (timestampMs[b] as number) || a - b),
  );
}

function concatenate(list: readonly Columns[]): Columns {
  const count = list.reduce((sum, columns) => sum + columns.count, 0);
  const join = (pickColumn: (columns: Columns) => Float64Array): Float64Array => {
    const joined = new Float64Array(count);
    let offset = 0;
    for (const columns of list) {
      joined.set(pickColumn(columns).subarray(0, columns.count), offset);
      offset += columns.count;
    }
    return joined;
  };
  const status = new Uint8Array(count);
  const sequence = new Uint32Array(count);
  let offset = 0;
  for (const columns of list) {
    status.set(columns.status.subarray(0, columns.count), offset);
    sequence.set(columns.sequence.subarray(0, columns.count), offset);
    offset += columns.count;
  }
  const metrics = (list[0]?.metrics ?? []).map((_, m) => join((columns) => columns.metrics[m] as Float64Array));
  return { count, timestampMs: join((columns) => columns.timestampMs), metrics, status, sequence };
}

/** Splits where a chunk would exceed its limits, where the hour changes, and where time runs backwards. */
export function* splitIntoChunks(columns: Columns): Generator<Columns> {
  let start = 0;
  for (let i = 1; i <= columns.count; i += 1) {
    const first = columns.timestampMs[start] as number;
    const now = columns.timestampMs[i] as number;
    const before = columns.timestampMs[i - 1] as number;
    // Two chunks of a segment must not begin at the same time, because node, start and segment are the primary key.
    const long = (i - start >= MAX_CHUNK_ROWS && now > first) || now - first > MAX_CHUNK_MS;
    if (i < columns.count && !long && now >= before && hourOf(now) === hourOf(first)) continue;
    yield {
      count: i - start,
      timestampMs: columns.timestampMs.subarray(start, i),
      metrics: columns.metrics.map((column) => column.subarray(start, i)),
      status: columns.status.subarray(start, i),
      sequence: columns.sequence.subarray(start, i),
    };
    start = i;
  }
}
