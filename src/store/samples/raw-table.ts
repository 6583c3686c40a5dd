import type { DatabaseSync } from 'node:sqlite';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { Order } from '../../core/ports.ts';
import { HOUR_MS, hourOf, MINUTE_MS } from '../../core/time/time.ts';
import {
  type Columns,
  columnsOf,
  copyRows,
  decodeChunk,
  emptyColumns,
  encodeChunk,
  MAX_BLOB_BYTES,
  mapColumns,
  tryDecode,
} from './chunk.ts';
import { RawHours, type SegmentRange } from './raw-hours.ts';

/** A chunk, written or pending, that is decoded on demand. */
interface Piece {
  readonly fromMs: number;
  readonly toMs: number;
  readonly read: (scratch: Scratch) => Columns | null;
}

/**
 * Raw samples, one row per chunk, in order of arrival: the statuses of a minute are written to adjacent pages, however many nodes there
 * are. A chunk is within one hour; chunks of different segments may overlap after the clock was set back.
 */
export class RawTable {
  readonly #db: DatabaseSync;
  readonly #hours: RawHours;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#hours = new RawHours(db);
  }

  /** Writes a node's part of a segment; repeating it with the same samples has no effect. */
  write(nodeId: number, segment: number, parts: readonly Columns[]): void {
    const insert = this.#db.prepare('INSERT OR IGNORE INTO raw VALUES (?, ?, ?, ?, ?)');
    for (const chunk of splitIntoChunks(joinSorted(parts))) {
      this.#hours.record(nodeId, segment, hourOf(chunk.timestampMs[0] as number));
      for (const { fromMs, toMs, samples } of toRows(chunk)) insert.run(segment, nodeId, fromMs, toMs, samples);
    }
  }

  /** Must be called after the segments of a commit were written. */
  endCommit(segment: number): void {
    this.#hours.closeOld(segment);
  }

  /** Must be called after a transaction was rolled back. */
  reload(): void {
    this.#hours.reload();
  }

  /** Whether a node's part of a segment is stored. Parts are written as a whole. */
  hasSegment(nodeId: number, segment: number): boolean {
    return this.#db.prepare('SELECT 1 FROM raw WHERE segment = ? AND node_id = ? LIMIT 1').get(segment, nodeId) !== undefined;
  }

  /** The first segment at or after this one; null: there is none. */
  nextSegment(from: number): number | null {
    return (this.#db.prepare('SELECT min(segment) AS segment FROM raw WHERE segment >= ?').get(from) as { segment: number | null }).segment;
  }

  /** The greatest of all segments; 0: there is none. */
  lastSegment(): number {
    return (this.#db.prepare('SELECT max(segment) AS segment FROM raw').get() as { segment: number | null }).segment ?? 0;
  }

  /** The segment that comes `count` segments before this one, or the first. */
  segmentBefore(segment: number, count: number): number {
    const row = this.#db
      .prepare(
        `WITH RECURSIVE earlier(segment, n) AS (SELECT ?, 0 UNION ALL
           SELECT (SELECT max(raw.segment) FROM raw WHERE raw.segment < earlier.segment), n + 1 FROM earlier
           WHERE earlier.segment IS NOT NULL AND n < ?)
         SELECT min(segment) AS segment FROM earlier`,
      )
      .get(segment, count) as { segment: number };
    return row.segment;
  }

  /** Samples of a segment by node; `nodeId` null: of every node. A chunk that cannot be decoded is skipped. */
  *ofSegment(segment: number, nodeId: number | null): Generator<{ readonly nodeId: number; readonly columns: Columns }> {
    const rows = this.#db
      .prepare('SELECT node_id, samples FROM raw WHERE segment = ? AND (?2 IS NULL OR node_id = ?2)')
      .all(segment, nodeId) as { node_id: number; samples: Uint8Array }[];
    for (const { node_id, samples } of rows) {
      const columns = readChunk(samples);
      if (columns) yield { nodeId: node_id, columns };
    }
  }

  /** First and last segment of each node. */
  spans(): Map<number, SegmentRange> {
    return this.#hours.spans();
  }

  /** Time of the node's first sample. */
  firstMs(nodeId: number): number | null {
    for (let fromMs = 0; ; ) {
      const hourMs = this.#hours.next(nodeId, fromMs, Number.MAX_SAFE_INTEGER, 'asc');
      if (hourMs === null) return null;
      const pieces = this.#pieces(nodeId, hourMs, hourMs + HOUR_MS);
      if (pieces.length > 0) return pieces.reduce((first, piece) => Math.min(first, piece.fromMs), Number.POSITIVE_INFINITY);
      fromMs = hourMs + HOUR_MS;
    }
  }

  /** Whether the hour has samples, of which none were removed to save space. */
  isWhole(nodeId: number, hourMs: number): boolean {
    const range = this.#hours.range(nodeId, hourMs);
    return range !== null && range.first >= (this.nextSegment(0) ?? Number.POSITIVE_INFINITY);
  }

  /**
   * Samples that may be in the range, including pending ones, ordered by time: overlapping chunks are merged. In `desc` the last chunk
   * comes first; rows within a chunk are always ascending. A yielded chunk is valid until the next one is requested.
   */
  *chunks(nodeId: number | null, pending: readonly Columns[], fromMs: number, toMs: number, order: Order): Generator<Columns> {
    const waiting = pending.flatMap((columns) => [...splitIntoChunks(columns)].map(toPiece));
    const scratch = new Scratch();
    let low = Math.max(hourOf(fromMs), fromMs - MAX_CHUNK_MS);
    let high = toMs;
    while (low < high) {
      const inRange = ({ fromMs: at }: Piece): boolean => at >= low && at < high;
      const candidates = waiting.filter(inRange).map((piece) => hourOf(piece.fromMs));
      const written = nodeId === null ? null : this.#hours.next(nodeId, hourOf(low), high, order);
      if (written !== null) candidates.push(written);
      if (candidates.length === 0) return;
      const hourMs = candidates.reduce((a, b) => (order === 'asc' ? Math.min(a, b) : Math.max(a, b)));
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

  /** Chunks that begin in a range within one hour. Visits each segment of the hour once, however many nodes it has. */
  #pieces(nodeId: number, fromMs: number, toMs: number): Piece[] {
    const range = this.#hours.range(nodeId, hourOf(fromMs));
    if (!range) return [];
    const rows = this.#db
      .prepare(
        `WITH RECURSIVE later(segment) AS (SELECT min(segment) FROM raw WHERE segment >= ?1 UNION ALL
           SELECT (SELECT min(raw.segment) FROM raw WHERE raw.segment > later.segment) FROM later WHERE later.segment < ?2)
         SELECT raw.segment, from_ms, to_ms FROM later CROSS JOIN raw
         WHERE raw.segment = later.segment AND node_id = ?3 AND from_ms >= ?4 AND from_ms < ?5`,
      )
      .all(range.first, range.last, nodeId, fromMs, toMs) as { segment: number; from_ms: number; to_ms: number }[];
    const select = this.#db.prepare('SELECT samples FROM raw WHERE segment = ? AND node_id = ? AND from_ms = ?');
    return rows.map(({ from_ms, to_ms, segment }) => ({
      fromMs: from_ms,
      toMs: to_ms,
      read: (scratch) =>
        readChunk((select.get(segment, nodeId, from_ms) as { samples: Uint8Array }).samples, (count) => scratch.take(count)),
    }));
  }
}

/** SQLite stores a row of up to 488 bytes within a page of 2048; a longer one takes an extra page. 20 bytes are for the other columns. */
const ROW_BYTES = 468;
/** At or above this length, the pages of a row are well filled. */
const LONG_ROW_BYTES = 4 * ROW_BYTES;

/** The rows of a chunk. A row that would not fill its pages is divided. */
function* toRows(chunk: Columns): Generator<{ fromMs: number; toMs: number; samples: Uint8Array }> {
  const samples = compressed(chunk);
  const rows = samples.length > LONG_ROW_BYTES ? 1 : Math.ceil(samples.length / ROW_BYTES);
  if (rows === 1) {
    yield { fromMs: chunk.timestampMs[0] as number, toMs: chunk.timestampMs[chunk.count - 1] as number, samples };
    return;
  }
  for (const part of splitIntoChunks(chunk, Math.ceil(chunk.count / rows))) {
    yield {
      fromMs: part.timestampMs[0] as number,
      toMs: part.timestampMs[part.count - 1] as number,
      samples: compressed(part),
    };
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

/** With Node's defaults, 280 kB per chunk would be allocated: with those of 300 nodes, the service stayed 15 MB larger. */
const COMPRESSION = { windowBits: 12, memLevel: 5, chunkSize: 4096 };

/** Compresses a chunk, by about a fifth. */
function compressed(chunk: Columns): Uint8Array {
  return deflateRawSync(encodeChunk(chunk), COMPRESSION);
}

/** A chunk that cannot be decoded is skipped: it holds one minute, and the rest of the range stays readable. */
function readChunk(samples: Uint8Array, allocate?: (count: number) => Columns): Columns | null {
  return tryDecode(() => decodeChunk(inflateRawSync(samples, { maxOutputLength: MAX_BLOB_BYTES }), allocate));
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
    return mapColumns(columns, count, (column) => column.subarray(0, count));
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
  const joined = columnsOf(list.reduce((sum, columns) => sum + columns.count, 0));
  let offset = 0;
  for (const columns of list) {
    copyRows(joined, offset, columns);
    offset += columns.count;
  }
  return joined;
}

/** Splits where a chunk would exceed its limits, where the hour changes, and where time runs backwards. */
export function* splitIntoChunks(columns: Columns, maxRows = MAX_CHUNK_ROWS): Generator<Columns> {
  let start = 0;
  for (let i = 1; i <= columns.count; i += 1) {
    const first = columns.timestampMs[start] as number;
    const now = columns.timestampMs[i] as number;
    const before = columns.timestampMs[i - 1] as number;
    // Two chunks of a segment must not begin at the same time, because segment, node and start are the primary key.
    const long = (i - start >= maxRows && now > first) || now - first > MAX_CHUNK_MS;
    if (i < columns.count && !long && now >= before && hourOf(now) === hourOf(first)) continue;
    yield mapColumns(columns, i - start, (column) => column.subarray(start, i));
    start = i;
  }
}
