import { createReadStream, readdir } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { storedTimes } from '../../src/client/history.ts';
import { type RestClient, ServiceRefused, ServiceUnreachable } from '../../src/client/rest.ts';
import { parseCsvRecord } from '../../src/core/csv.ts';
import { METRICS_FILE, numberOf } from '../../src/core/metrics-files.ts';
import { isoUtc } from '../../src/core/time/time.ts';
import { type Scanner, StampCounter } from './coverage.ts';

/** A longer row of metrics/ is damaged, or the file is of another kind. */
const MAX_ROW_BYTES = 1_000_000;
const LINE_FEED = 0x0a;

/** Scans the samples of /health/history. Returns null if the service or its store does not respond. */
export function storedScanner({ node, rest }: { readonly rest: RestClient; readonly node: string }): Scanner {
  return async (fromMs, toMs) => {
    const counter = new StampCounter('stored', fromMs, toMs);
    try {
      for await (const ms of storedTimes(rest, { node, fromMs, toMs })) counter.add(ms);
    } catch (error) {
      if (error instanceof ServiceUnreachable || error instanceof ServiceRefused) return null;
      throw error;
    }
    return counter.result();
  };
}

/** The position at which a scan ended in a file, and the file's columns. */
interface Cursor {
  /** Byte offset of a row. */
  readonly at: number;
  readonly columns: Columns | null;
}

interface Columns {
  readonly time: number;
  readonly local: number;
  readonly answered: number;
}

/**
 * Scans the rows that collect_metrics wrote about this machine's node to metrics/ below the service's `storage.path`, without rows in which
 * the service did not respond. A scan that follows the previous one continues in the files at the position where that ended. Returns null
 * if the folder does not exist or cannot be read.
 */
export function collectedScanner({ dataFolder }: { readonly dataFolder: string }): Scanner {
  const folder = join(dataFolder, 'metrics');
  let ended: { readonly to: number; readonly cursors: ReadonlyMap<string, Cursor> } | null = null;
  return async (fromMs, toMs) => {
    const counter = new StampCounter('collected', fromMs, toMs);
    if (fromMs >= toMs) return counter.result();
    const known = ended?.to === fromMs ? ended.cursors : null;
    const cursors = new Map<string, Cursor>();
    try {
      for (const name of await filesOf(folder, fromMs, toMs)) {
        const cursor = known?.get(name) ?? { at: 0, columns: null };
        cursors.set(name, await readRows(join(folder, name), cursor, toMs, (ms) => counter.add(ms)));
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
      return null;
    }
    ended = { to: toMs, cursors };
    return counter.result();
  };
}

/** The files of the UTC days in a range, in writing order. */
async function filesOf(folder: string, fromMs: number, toMs: number): Promise<string[]> {
  const [first, last] = [isoUtc(fromMs).slice(0, 10), isoUtc(toMs - 1).slice(0, 10)];
  return (await promisify(readdir)(folder))
    .flatMap((name) => {
      const day = METRICS_FILE.exec(name)?.[1];
      return day !== undefined && day >= first && day <= last ? [{ name, day, number: numberOf(name) }] : [];
    })
    .sort((a, b) => (a.day === b.day ? a.number - b.number : a.day < b.day ? -1 : 1))
    .map(({ name }) => name);
}

/** Reads the rows from a cursor. Returns the cursor of the first row at or after `toMs`, or else of the end of the last complete row. */
async function readRows(file: string, { at, columns }: Cursor, toMs: number, onRow: (ms: number) => void): Promise<Cursor> {
  let header = columns;
  let end = at;
  let next: number | null = null;
  for await (const line of readLines(createReadStream(file, { start: at }))) {
    // An incomplete row is still being written and is read by the next scan.
    if (!line.isWhole) break;
    end = at + line.end;
    if (header === null) {
      header = columnsOf(line.text);
      continue;
    }
    const ms = timeOf(line.text, header);
    if (ms === null) continue;
    onRow(ms);
    if (ms >= toMs) next ??= at + line.start;
  }
  return { at: next ?? end, columns: header };
}

/** Returns null if the line is not a header; a later line may be one. */
function columnsOf(line: string): Columns | null {
  const names = parseCsvRecord(line) ?? [];
  const [time, local, answered] = ['time', 'local', 'answered'].map((name) => names.indexOf(name)) as [number, number, number];
  return time < 0 || local < 0 || answered < 0 ? null : { time, local, answered };
}

/** The time of a row with data about this machine's node; null for any other row. */
function timeOf(line: string, { answered, local, time }: Columns): number | null {
  const cells = parseCsvRecord(line);
  return cells?.[local] === 'true' && cells[answered] === 'true' ? msOf(cells[time] ?? '') : null;
}

/** Parses an ISO 8601 time in UTC; Date.parse alone accepts too many formats. */
function msOf(text: string): number | null {
  const ms = text[10] === 'T' && text.endsWith('Z') ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? null : ms;
}

interface Line {
  readonly text: string;
  /** Byte offsets of the line and of the next one in the stream. */
  readonly start: number;
  readonly end: number;
  /** False if the stream ended without a line feed. */
  readonly isWhole: boolean;
}

/** Splits a stream into lines. Rejects if a line exceeds the limit. */
async function* readLines(stream: AsyncIterable<Buffer>): AsyncGenerator<Line> {
  let rest: Buffer = Buffer.alloc(0);
  let start = 0;
  for await (const chunk of stream) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let from = 0;
    for (let to = bytes.indexOf(LINE_FEED); to >= 0; to = bytes.indexOf(LINE_FEED, from)) {
      const end = start + to + 1 - from;
      yield { text: bytes.toString('utf8', from, to), start, end, isWhole: true };
      from = to + 1;
      start = end;
    }
    rest = bytes.subarray(from);
    if (rest.length > MAX_ROW_BYTES) throw Object.assign(new Error('a row without an end'), { code: 'EFTYPE' });
  }
  if (rest.length > 0) yield { text: rest.toString('utf8'), start, end: start + rest.length, isWhole: false };
}
