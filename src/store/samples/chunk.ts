import { STATUSES } from '../../core/alerts/alert.ts';
import { METRICS } from '../../core/metrics.ts';

/** Samples of one node as columns, ascending in time. NaN: unavailable. */
export interface Columns {
  readonly count: number;
  /** Wall-clock milliseconds. */
  readonly timestampMs: Float64Array;
  /** In the order of METRICS. */
  readonly metrics: readonly Float64Array[];
  /** Index into STATUSES. */
  readonly status: Uint8Array;
  /** Sequence number of the record within its segment, from 1: the order of arrival over all nodes. */
  readonly sequence: Uint32Array;
}

/** As HistoryPage has them: without sequence numbers. */
export function emptyPage(capacity: number): Omit<Columns, 'sequence'> {
  return {
    count: 0,
    timestampMs: new Float64Array(capacity),
    metrics: METRICS.map(() => new Float64Array(capacity)),
    status: new Uint8Array(capacity),
  };
}

export function emptyColumns(capacity: number): Columns {
  return { ...emptyPage(capacity), sequence: new Uint32Array(capacity) };
}

/** Columns of `count` rows to be filled. */
export function columnsOf(count: number): Columns {
  return { ...emptyColumns(count), count };
}

/** What every typed array offers; T is the array's type. */
interface Sliceable<T> {
  slice(start: number, end: number): T;
  subarray(start: number, end: number): T;
}

/** Columns of `count` rows, each of which `map` takes from the same column of `columns`. */
export function mapColumns(columns: Columns, count: number, map: <T>(column: Sliceable<T>) => T): Columns {
  return {
    count,
    timestampMs: map(columns.timestampMs),
    metrics: columns.metrics.map((column) => map(column)),
    status: map(columns.status),
    sequence: map(columns.sequence),
  };
}

/** Copies every row of `from` into rows `offset` and following of `into`. */
export function copyRows(into: Columns, offset: number, { count, metrics, sequence, status, timestampMs }: Columns): void {
  into.timestampMs.set(timestampMs.subarray(0, count), offset);
  for (const [m, column] of metrics.entries()) into.metrics[m]?.set(column.subarray(0, count), offset);
  into.status.set(status.subarray(0, count), offset);
  into.sequence.set(sequence.subarray(0, count), offset);
}

const FORMAT = 1;
const AS_HUNDREDTHS = 0;
const AS_DOUBLES = 1;

function writeColumn(out: ByteWriter, column: Float64Array, count: number): void {
  // Local samples are whole hundredths and take one or two bytes as differences; other values are stored exactly as doubles.
  let exact = true;
  for (let i = 0; i < count && exact; i += 1) {
    const value = column[i] as number;
    const scaled = Math.round(value * 100);
    exact = Number.isNaN(value) || (Math.abs(scaled) < 2 ** 40 && scaled / 100 === value && !Object.is(value, -0));
  }
  out.unsigned(exact ? AS_HUNDREDTHS : AS_DOUBLES);
  let before = 0;
  for (let i = 0; i < count; i += 1) {
    const value = column[i] as number;
    if (!exact) {
      out.double(value);
    } else if (Number.isNaN(value)) {
      out.unsigned(0);
    } else {
      const scaled = Math.round(value * 100);
      const difference = scaled - before;
      out.unsigned((difference < 0 ? -2 * difference - 1 : 2 * difference) + 1);
      before = scaled;
    }
  }
}

function readColumn(input: ByteReader, into: Float64Array, count: number): void {
  const kind = input.unsigned();
  if (kind !== AS_HUNDREDTHS && kind !== AS_DOUBLES) throw new RangeError('unknown form of a column');
  let before = 0;
  for (let i = 0; i < count; i += 1) {
    if (kind === AS_DOUBLES) {
      into[i] = input.double();
      continue;
    }
    const folded = input.unsigned();
    if (folded === 0) {
      into[i] = Number.NaN;
      continue;
    }
    const zigzag = folded - 1;
    before += zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
    into[i] = before / 100;
  }
}

/** First number and spacing, then the differences to that spacing unless all are zero, as with a single node. */
function writeSequence(out: ByteWriter, sequence: Uint32Array, count: number): void {
  if (count === 0) return;
  const first = sequence[0] as number;
  const spacing = count > 1 ? Math.max(0, Math.round(((sequence[count - 1] as number) - first) / (count - 1))) : 0;
  let even = true;
  for (let i = 1; i < count && even; i += 1) even = (sequence[i] as number) - (sequence[i - 1] as number) === spacing;
  out.unsigned(first);
  out.unsigned(spacing * 2 + (even ? 0 : 1));
  for (let i = 1; i < count && !even; i += 1) out.signed((sequence[i] as number) - (sequence[i - 1] as number) - spacing);
}

function readSequence(input: ByteReader, into: Uint32Array): void {
  if (into.length === 0) return;
  let at = input.unsigned();
  const form = input.unsigned();
  const spacing = Math.floor(form / 2);
  into[0] = at;
  for (let i = 1; i < into.length; i += 1) {
    at += spacing + (form % 2 === 0 ? 0 : input.signed());
    into[i] = at;
  }
}

/**
 * Packs samples into the blob of one row: format, count, first timestamp, differences of the timestamps to an even spacing, the four
 * metrics, the statuses as runs, and the sequence numbers. About 6 bytes per sample at 1 Hz, and one more where remote nodes are
 * received.
 */
export function encodeChunk(columns: Columns): Uint8Array {
  const { count, timestampMs, metrics, status, sequence } = columns;
  const out = new ByteWriter();
  out.unsigned(FORMAT);
  out.unsigned(count);
  const first = timestampMs[0] ?? 0;
  const spacing = count > 1 ? Math.round(((timestampMs[count - 1] as number) - first) / (count - 1)) : 0;
  out.signed(first);
  out.unsigned(Math.max(0, spacing));
  let before = first;
  for (let i = 1; i < count; i += 1) {
    const now = timestampMs[i] as number;
    out.signed(now - before - Math.max(0, spacing));
    before = now;
  }
  for (const column of metrics) writeColumn(out, column, count);
  for (let i = 0; i < count; ) {
    let end = i + 1;
    while (end < count && status[end] === status[i]) end += 1;
    out.unsigned(status[i] as number);
    out.unsigned(end - i);
    i = end;
  }
  writeSequence(out, sequence, count);
  return out.take();
}

/** Far more than a blob of MAX_CHUNK_ROWS samples or of an hour's summaries has; a forged one could expand to any size. */
export const MAX_BLOB_BYTES = 4 * 1024 * 1024;

/** Number of samples in the blob that begins with these bytes; twelve bytes are enough. */
export function countIn(head: Uint8Array): number {
  const input = new ByteReader(head);
  input.unsigned(); // Format.
  return input.unsigned();
}

/** Unpacks a blob into the columns that `allocate` returns for a count, or into new ones. Throws RangeError for a damaged blob. */
export function decodeChunk(blob: Uint8Array, allocate: (count: number) => Columns = columnsOf): Columns {
  const input = new ByteReader(blob);
  if (input.unsigned() !== FORMAT) throw new RangeError('unknown chunk format');
  const count = input.unsigned();
  // Each sample takes at least about five bytes, so a forged count cannot force a large allocation.
  if (count > blob.length) throw new RangeError('count beyond the blob');
  const columns = allocate(count);
  const { timestampMs, metrics, status, sequence } = columns;
  let at = input.signed();
  const spacing = input.unsigned();
  for (let i = 0; i < count; i += 1) {
    if (i > 0) at += spacing + input.signed();
    timestampMs[i] = at;
  }
  for (const column of metrics) readColumn(input, column, count);
  for (let i = 0; i < count; ) {
    const value = input.unsigned();
    const run = input.unsigned();
    if (run === 0 || i + run > count || value >= STATUSES.length) throw new RangeError('damaged status runs');
    status.fill(value, i, i + run);
    i += run;
  }
  readSequence(input, sequence);
  input.end();
  return columns;
}

/** Null: the blob is damaged, which counts as missing, so that everything around it stays readable. */
export function tryDecode<T>(decode: () => T): T | null {
  try {
    return decode();
  } catch {
    return null;
  }
}

/** Writes the compact formats of database blobs: variable-length integers, little-endian doubles, UTF-8. */
export class ByteWriter {
  #bytes = new Uint8Array(1024);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  /** An integer from 0 to 2^53 − 1, seven bits per byte, lowest first. */
  unsigned(value: number): void {
    this.#reserve(8);
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest % 0x80) + 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.#length++] = rest;
  }

  /** A signed integer of up to 52 bits, zigzag-encoded so that small values of either sign stay short. */
  signed(value: number): void {
    this.unsigned(value < 0 ? -2 * value - 1 : 2 * value);
  }

  double(value: number): void {
    this.#reserve(8);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  take(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const larger = new Uint8Array(this.#bytes.length * 2);
    larger.set(this.#bytes);
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}

/** Reads the formats of ByteWriter. Throws RangeError beyond the end, so that a truncated blob is detected. */
export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #offset = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  unsigned(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.#bytes[this.#offset];
      if (byte === undefined || scale > 2 ** 49) throw new RangeError('truncated or overlong integer');
      this.#offset += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (value > Number.MAX_SAFE_INTEGER) throw new RangeError('integer beyond 53 bits');
        return value;
      }
      scale *= 0x80;
    }
  }

  signed(): number {
    const folded = this.unsigned();
    return folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2;
  }

  double(): number {
    const value = this.#view.getFloat64(this.#offset, true);
    this.#offset += 8;
    return value;
  }

  skipDoubles(count: number): void {
    this.#offset += 8 * count;
  }

  /** Must be called after the last value: remaining bytes mean a damaged blob. */
  end(): void {
    if (this.#offset !== this.#bytes.length) throw new RangeError('bytes after the end');
  }
}
