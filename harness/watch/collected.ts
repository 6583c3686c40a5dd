import { createReadStream, readdir } from 'node:fs';
import { join } from 'node:path';
import { METRICS_FILE, numberOf } from '../../ops/collect/metrics-names.ts';
import { parseCsvRecord } from '../../src/core/csv.ts';
import { isoUtc } from '../../src/core/time.ts';
import { HoldingCount } from './holding.ts';
import type { HoldingSource } from './ports.ts';

const LINE_END = 0x0a;
/** What is longer is no row but damage. */
const MAX_ROW_BYTES = 1_000_000;

export interface CollectedOptions {
  /** `storage.path` of the service; operations collect into its folder metrics/. */
  readonly dataFolder: string;
}

/** Where in a file a look ended, and what its columns are. */
interface Place {
  /** A row begins there. */
  readonly at: number;
  readonly columns: Columns | null;
}

interface Columns {
  readonly time: number;
  readonly local: number;
  readonly answered: number;
}

/**
 * The rows that operations collected of this machine's own node, those in which the service answered: the others hold no data. A look
 * that follows the one before goes on in the files where that one ended. Null: there is no folder of such files, or it cannot be read.
 */
export function collectedSource({ dataFolder }: CollectedOptions): HoldingSource {
  const folder = join(dataFolder, 'metrics');
  let ended: { readonly to: number; readonly places: ReadonlyMap<string, Place> } | null = null;
  return async (fromMs, toMs) => {
    const count = new HoldingCount('collected', fromMs, toMs);
    if (fromMs >= toMs) return count.result();
    const known = ended?.to === fromMs ? ended.places : null;
    const places = new Map<string, Place>();
    try {
      for (const name of await filesOf(folder, fromMs, toMs))
        places.set(name, await readRows(join(folder, name), known?.get(name) ?? { at: 0, columns: null }, toMs, (ms) => count.add(ms)));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
      return null;
    }
    ended = { to: toMs, places };
    return count.result();
  };
}

/** Of the UTC days of a range, in the order of writing. */
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

/** Tells the times of the rows from a place on; the place of the first row at or after `toMs`, else of the end of what is whole. */
async function readRows(file: string, { at, columns }: Place, toMs: number, onRow: (ms: number) => void): Promise<Place> {
  let header = columns;
  let rest: Buffer = Buffer.alloc(0);
  /** Of the beginning of `rest`. */
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
    // A row that is just being written is read the next time.
    rest = bytes.subarray(from);
    if (rest.length > MAX_ROW_BYTES) throw Object.assign(new Error(`${file} is no CSV`), { code: 'EFTYPE' });
  }
  return { at: next ?? position, columns: header };
}

/** Null: it is no header of ours, and a later line may be. */
function columnsOf(line: string): Columns | null {
  const names = parseCsvRecord(line) ?? [];
  const [time, local, answered] = ['time', 'local', 'answered'].map((name) => names.indexOf(name)) as [number, number, number];
  return time < 0 || local < 0 || answered < 0 ? null : { time, local, answered };
}

/** Of a row of this machine's own node that holds an answer; null: it is another. */
function timeOf(line: string, { answered, local, time }: Columns): number | null {
  const cells = parseCsvRecord(line);
  if (cells?.[local] !== 'true' || cells[answered] !== 'true') return null;
  const text = cells[time] ?? '';
  const ms = text.endsWith('Z') ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? null : ms;
}
