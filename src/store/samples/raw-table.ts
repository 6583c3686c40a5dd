import type { DatabaseSync } from 'node:sqlite';
import type { Order, TimeRange } from '../../core/ports.ts';
import { HOUR_MS, MINUTE_MS } from '../../core/time/time.ts';
import { hourOf } from '../rollups/tiers.ts';
import { type Columns, decodeChunk, emptyColumns, encodeChunk } from './chunk.ts';

/** A chunk, written or pending, that is decoded on demand. */
interface Piece {
  readonly fromMs: number;
  readonly toMs: number;
  readonly read: (scratch: Scratch) => Columns | null;
}

/** Raw samples, one row per chunk. A chunk lies within one hour; chunks of different segments may overlap after the clock was set back. */
export class RawTable {
  readonly #db: DatabaseSync;

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Writes a node's part of a segment; repeating it with the same samples has no effect. `onChunk` receives the start of each chunk. */
  write(nodeId: number, segment: number, parts: readonly Columns[], onChunk: (fromMs: number) => void): void {
    const insert = this.#db.prepare('INSERT OR IGNORE INTO raw VALUES (?, ?, ?, ?, ?)');
    for (const chunk of splitIntoChunks(joinSorted(parts))) {
      const from = chunk.timestampMs[0] as number;
      onChunk(from);
      insert.run(nodeId, from, segment, chunk.timestampMs[chunk.count - 1] as number, encodeChunk(chunk));
    }
  }

  /** Whether a node's part of a segment is stored, given the times of some of its samples. Parts are written as a whole. */
  hasSegment(nodeId: number, segment: number, timestampMs: Float64Array): boolean {
    const from = timestampMs.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY) - MAX_CHUNK_MS;
    const to = timestampMs.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
    const row = this.#db
      .prepare('SELECT 1 FROM raw WHERE node_id = ? AND from_ms >= ? AND from_ms <= ? AND segment = ?')
      .get(nodeId, from, to, segment);
    return row !== undefined;
  }

  /** Chunks that begin in a time range (both ends included) and belong to the segments from `from` up to but excluding `to`. */
  ofSegments(nodeId: number, { fromMs, toMs }: TimeRange, from: number, to: number): { segment: number; read: () => Columns | null }[] {
    const last = Math.min(to, Number.MAX_SAFE_INTEGER);
    const rows = this.#db
      .prepare('SELECT from_ms, segment FROM raw WHERE node_id = ? AND from_ms BETWEEN ? AND ? AND segment >= ? AND segment < ?')
      .all(nodeId, fromMs, Math.min(toMs, Number.MAX_SAFE_INTEGER), from, last) as { from_ms: number; segment: number }[];
    const select = this.#db.prepare('SELECT samples FROM raw WHERE node_id = ? AND from_ms = ? AND segment = ?');
    return rows.map(({ from_ms, segment }) => ({
      segment,
      read: () => tryDecode((select.get(nodeId, from_ms, segment) as { samples: Uint8Array }).samples),
    }));
  }

  /** Segment of the latest chunk that begins by `untilMs`. */
  lastSegment(nodeId: number, untilMs = Number.MAX_SAFE_INTEGER): number | null {
    const row = this.#db
      .prepare('SELECT segment FROM raw WHERE node_id = ? AND from_ms <= ? ORDER BY from_ms DESC LIMIT 1')
      .get(nodeId, Math.min(untilMs, Number.MAX_SAFE_INTEGER)) as { segment: number } | undefined;
    return row?.segment ?? null;
  }

  /** Segment of the earliest chunk. */
  firstSegment(nodeId: number): number | null {
    const row = this.#db.prepare('SELECT segment FROM raw WHERE node_id = ? ORDER BY from_ms LIMIT 1').get(nodeId);
    return (row as { segment: number } | undefined)?.segment ?? null;
  }

  /** The greatest of all segments. Scans every row. */
  searchLastSegment(): number {
    return (this.#db.prepare('SELECT max(segment) AS segment FROM raw').get() as { segment: number | null }).segment ?? 0;
  }

  firstMs(nodeId: number): number | null {
    const row = this.#db.prepare('SELECT min(from_ms) AS ms FROM raw WHERE node_id = ?').get(nodeId) as { ms: number | null };
    return row.ms;
  }

  /** Hours with samples, ascending; one index seek per hour. */
  hours(nodeId: number): number[] {
    const hours: number[] = [];
    for (
      let next = this.firstMs(nodeId);
      next !== null;
      next = this.#next(nodeId, hourOf(next) + HOUR_MS, Number.MAX_SAFE_INTEGER, 'asc')
    ) {
      hours.push(hourOf(next));
    }
    return hours;
  }

  /**
   * Samples that may lie in the range, including pending ones, ordered by time: overlapping chunks are merged. In `desc` the last chunk
   * comes first; rows within a chunk are always ascending. A yielded chunk is valid until the next one is requested.
   */
  *chunks(nodeId: number | null, pending: readonly Columns[], fromMs: number, toMs: number, order: Order): Generator<Columns> {
    const waiting = pending.flatMap((columns) => [...splitIntoChunks(columns)].map(toPiece));
    const scratch = new Scratch();
    let low = Math.max(hourOf(fromMs), fromMs - MAX_CHUNK_MS);
    let high = toMs;
    while (low < high) {
      const inRange = ({ fromMs: at }: Piece): boolean => at >= low && at < high;
      const candidates = waiting.filter(inRange).map((piece) => piece.fromMs);
      const written = nodeId === null ? null : this.#next(nodeId, low, high, order);
      if (written !== null) candidates.push(written);
      if (candidates.length === 0) return;
      const hourMs = hourOf(candidates.reduce((a, b) => (order === 'asc' ? Math.min(a, b) : Math.max(a, b))));
      const begin = Math.max(low, hourMs);
      const end = Math.min(high, hourMs + HOUR_MS);
      const pieces = [
        ...(nodeId === null ? [] : this.#pieces(nodeId, begin, end)),
        ...waiting.filter((piece) => piece.fromMs >= begin && piece.fromMs < end),
      ];
      const groups = overlapping(pieces.filter((piece) => piece.toMs >= fromMs));
      for (const group of order === 'asc' ? groups : groups.reverse()) {
        const columns = group.map(({ read }) => read(scratch)).filter((chunk) => chunk !== null);
        if (columns.length > 0) yield joinSorted(columns);
        scratch.release();
      }
      if (order === 'asc') low = hourMs + HOUR_MS;
      else high = hourMs;
    }
  }

  /** Start of the first (or last) chunk in the range. */
  #next(nodeId: number, fromMs: number, toMs: number, order: Order): number | null {
    const row = this.#db
      .prepare(`SELECT ${order === 'asc' ? 'min' : 'max'}(from_ms) AS ms FROM raw WHERE node_id = ? AND from_ms >= ? AND from_ms < ?`)
      .get(nodeId, fromMs, toMs) as { ms: number | null };
    return row.ms;
  }

  #pieces(nodeId: number, fromMs: number, toMs: number): Piece[] {
    const rows = this.#db
      .prepare('SELECT from_ms, to_ms, segment FROM raw WHERE node_id = ? AND from_ms >= ? AND from_ms < ? ORDER BY from_ms, segment')
      .all(nodeId, fromMs, toMs) as { from_ms: number; to_ms: number; segment: number }[];
    const select = this.#db.prepare('SELECT samples FROM raw WHERE node_id = ? AND from_ms = ? AND segment = ?');
    return rows.map(({ from_ms, to_ms, segment }) => ({
      fromMs: from_ms,
      toMs: to_ms,
      read: (scratch) =>
        tryDecode((select.get(nodeId, from_ms, segment) as { samples: Uint8Array }).samples, (count) => scratch.take(count)),
    }));
  }
}

function toPiece(columns: Columns): Piece {
  return {
    fromMs: columns.timestampMs[0] as number,
    toMs: columns.timestampMs[columns.count - 1] as number,
    read: () => columns,
  };
}

/** Groups pieces so that every sample of a group is later than all samples of the previous group. */
function overlapping(pieces: readonly Piece[]): Piece[][] {
  const groups: Piece[][] = [];
  let end = Number.NEGATIVE_INFINITY;
  for (const piece of [...pieces].sort((a, b) => a.fromMs - b.fromMs)) {
    if (piece.fromMs < end) groups.at(-1)?.push(piece);
    else groups.push([piece]);
    end = Math.max(end, piece.toMs);
  }
  return groups;
}

/** A chunk that cannot be decoded is skipped: it holds one minute, and the rest of the range stays readable. */
function tryDecode(samples: Uint8Array, allocate?: (count: number) => Columns): Columns | null {
  try {
    return decodeChunk(samples, allocate);
  } catch {
    return null;
  }
}

/** Capacities are rounded up to this many rows, so that chunks of similar length can share a buffer. */
const STEP_ROWS = 64;

/**
 * A pool of columns reused from chunk to chunk: a range of several days has thousands of chunks, and allocating each would burden the
 * garbage collector.
 */
export class Scratch {
  #free: Columns[] = [];
  #lent: Columns[] = [];

  /** Columns of `count` rows with undefined contents, valid until release(). */
  take(count: number): Columns {
    const columns =
      this.#free.find(({ timestampMs }) => timestampMs.length >= count) ?? emptyColumns(Math.ceil(count / STEP_ROWS) * STEP_ROWS);
    this.#free = this.#free.filter((candidate) => candidate !== columns);
    this.#lent.push(columns);
    return {
      count,
      timestampMs: columns.timestampMs.subarray(0, count),
      metrics: columns.metrics.map((column) => column.subarray(0, count)),
      status: columns.status.subarray(0, count),
      sequence: columns.sequence.subarray(0, count),
    };
  }

  /** Returns all columns to the pool. */
  release(): void {
    this.#free.push(...this.#lent);
    this.#lent = [];
  }
}

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
