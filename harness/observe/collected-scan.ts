import { createReadStream, readdir } from 'node:fs';
import { join } from 'node:path';
import { METRICS_FILE, numberOf } from '../../ops/collect/metrics-names.ts';
import { parseCsvRecord } from '../../src/core/csv.ts';
import { isoUtc } from '../../src/core/time.ts';
import { type Scanner, StampCounter } from './coverage.ts';

const LINE_END = 0x0a;
/** A longer row is damage. */
const MAX_ROW_BYTES = 1_000_000;

/** Where a scan ended in a file, and the file's columns. */
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
 * Scans the rows of metrics/ below `storage.path` of the service that collect_metrics wrote about this machine's node, without those in
 * which the service did not respond. A scan that follows the previous one continues in the files where it ended. Null: the folder does
 * not exist or cannot be read.
 */
export function collectedScanner({ dataFolder }: { readonly dataFolder: string }): Scanner {
  const folder = join(dataFolder, 'metrics');
  let ended: { readonly to: number; readonly cursors: ReadonlyMap<string, Cursor> } | null = null;
  return async (fromMs, toMs) => {
    const count = new StampCounter('collected', fromMs, toMs);
    if (fromMs >= toMs) return count.result();
    const known = ended?.to === fromMs ? ended.cursors : null;
    const cursors = new Map<string, Cursor>();
    try {
      for (const name of await filesOf(folder, fromMs, toMs))
        cursors.set(name, await readRows(join(folder, name), known?.get(name) ?? { at: 0, columns: null }, toMs, (ms) => count.add(ms)));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
      return null;
    }
    ended = { to: toMs, cursors };
    return count.result();
  };
}

/** The files of the UTC days of a range, in the order of writing. */
async function filesOf(folder: string, fromMs: number, toMs: number): Promise<string[]> {
  const names = await new Promise<string[]>((resolve, reject) => {
    readdir(folder, (error, found) => (error ? reject(error) : resolve(found)));
  });
  const [first, last] = [isoUtc(fromMs).slice(0, 10), isoUtc(toMs - 1).slice(0, 10)];
  return names
    .flatMap((name) => {
      const day = METRICS_FILE.exec(name)?.[1];
      return day !== undefined && day >= first && day <= last ? [{ name, day, number: numberOf(name) }] : [];
    })
    .sort((a, b) => (a.day === b.day ? a.number - b.number : a.day < b.day ? -1 : 1))
    .map(({ name }) => name);
}

/** Reads the rows from a cursor on. Returns that of the first row at or after `toMs`, else the end of the last complete row. */
async function readRows(file: string, { at, columns }: Cursor, toMs: number, onRow: (ms: number) => void): Promise<Cursor> {
  let header = columns;
  let rest: Buffer = Buffer.alloc(0);
  /** Byte offset of `rest`. */
  let position = at;
  let next: number | null = null;
  for await (const chunk of createReadStream(file, { start: at }) as AsyncIterable<Buffer>) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let from = 0;
    for (let end = bytes.indexOf(LINE_END); end >= 0; end = bytes.indexOf(LINE_END, from)) {
      const line = bytes.toString('utf8', from, end);
      if (header === null) header = columnsOf(line);
      else {
        const ms = timeOf(line, header);
        if (ms !== null) onRow(ms);
        if (ms !== null && ms >= toMs) next ??= position + from;
      }
      from = end + 1;
    }
    position += from;
    // A row that is being written is read by the next scan.
    rest = bytes.subarray(from);
    if (rest.length > MAX_ROW_BYTES) throw Object.assign(new Error(`${file} is no CSV`), { code: 'EFTYPE' });
  }
  return { at: next ?? position, columns: header };
}

/** Null: it is no header; a later line may be. */
function columnsOf(line: string): Columns | null {
  const names = parseCsvRecord(line) ?? [];
  const [time, local, answered] = ['time', 'local', 'answered'].map((name) => names.indexOf(name)) as [number, number, number];
  return time < 0 || local < 0 || answered < 0 ? null : { time, local, answered };
}

/** The time of a row about this machine's node with data; null: it is another row. */
function timeOf(line: string, { answered, local, time }: Columns): number | null {
  const cells = parseCsvRecord(line);
  if (cells?.[local] !== 'true' || cells[answered] !== 'true') return null;
  const text = cells[time] ?? '';
  const ms = text.endsWith('Z') ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? null : ms;
}
