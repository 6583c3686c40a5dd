import { STATUSES } from '../../core/alerts/thresholds.ts';
import { METRICS } from '../../core/metrics.ts';
import { ByteReader, ByteWriter } from './bytes.ts';

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
 * Packs samples into the blob of one row: format, count, first time stamp, differences of the time stamps to an even spacing, the four
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

/** Number of samples in the blob that begins with these bytes; twelve bytes are enough. */
export function countIn(head: Uint8Array): number {
  const input = new ByteReader(head);
  input.unsigned(); // Format.
  return input.unsigned();
}

function columnsOf(count: number): Columns {
  return { ...emptyColumns(count), count };
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
