import { join } from 'node:path';
import { parseCsvRecord } from '../../src/core/csv.ts';
import { METRICS, type Readings } from '../../src/core/metrics.ts';
import { METRICS_FILE, numberOf } from '../collect/metrics-names.ts';
import { datedFiles, linesOf, utcDay } from '../lib/files.ts';
import type { Period } from './period.ts';

/** What every row tells of its node. */
export interface NodeRow {
  readonly node: string;
  readonly ms: number;
  readonly local: boolean;
  readonly answered: boolean;
  readonly silent: boolean;
  readonly readings: Readings;
}

/** What the row of this machine's own node tells besides. Null: unavailable. */
export interface ServiceRow extends NodeRow {
  readonly reason: string;
  readonly bootId: string | null;
  readonly bootSeconds: number | null;
  readonly monotonicSeconds: number | null;
  readonly version: string | null;
  readonly started: string | null;
  readonly memoryBytes: number | null;
  readonly cpuSeconds: number | null;
  readonly hertz: number | null;
  readonly samples: number | null;
  readonly missed: number | null;
  /** Statuses handed to the ROS 2 graph. */
  readonly published: number | null;
  readonly samplesLost: number | null;
  readonly open: { readonly WARNING: number | null; readonly ERROR: number | null; readonly CRITICAL: number | null };
}

export interface ReadCounts {
  files: number;
  rows: number;
  /** Lines that are no rows of ours, torn ones included. */
  foreign: number;
  /** There are rows from before the period: collecting had begun by then. */
  hasEarlier: boolean;
}

export interface RowReader {
  readonly node: (row: NodeRow) => void;
  readonly service: (row: ServiceRow) => void;
}

const NEEDED = ['time', 'node_name', 'local', 'answered'];

/** Hands over the rows of a period, day by day and within a day in the order of writing. Files of other versions may lack columns. */
export async function readRows(folder: string, { fromMs, toMs }: Period, reader: RowReader, signal: AbortSignal): Promise<ReadCounts> {
  const [first, last] = [utcDay(fromMs), utcDay(toMs)];
  const all = await datedFiles(folder, METRICS_FILE);
  const counts: ReadCounts = { files: 0, rows: 0, foreign: 0, hasEarlier: all.some(({ day }) => day < first) };
  const files = all.filter(({ day }) => day >= first && day <= last);
  files.sort((a, b) => (a.day === b.day ? numberOf(a.name) - numberOf(b.name) : a.day < b.day ? -1 : 1));
  for (const { name } of files) {
    counts.files += 1;
    let columns: Columns | null = null;
    const torn = (): void => {
      counts.foreign += 1;
    };
    for await (const lines of linesOf(join(folder, name), { torn, signal })) {
      for (const line of lines) {
        if (columns === null) {
          columns = columnsOf(line);
          if (columns === null) counts.foreign += 1;
          continue;
        }
        const row = columns.read(line);
        if (row === null) counts.foreign += 1;
        else if (row.ms < fromMs) counts.hasEarlier = true;
        else if (row.ms < toMs) {
          counts.rows += 1;
          reader.node(row);
          if (row.local) reader.service(columns.service(row));
        }
      }
    }
  }
  return counts;
}

/** Null: the line is no header of ours. */
function columnsOf(header: string): Columns | null {
  const names = parseCsvRecord(header) ?? [];
  return NEEDED.every((name) => names.includes(name)) ? new Columns(names) : null;
}

/** Reads rows by the names of a file's own header. */
class Columns {
  /** Texts that are kept: a piece of a line would keep all that was read with it. */
  readonly #kept = new Map<string, string>();
  readonly #at: ReadonlyMap<string, number>;
  readonly #count: number;
  #cells: readonly string[] = [];

  constructor(names: readonly string[]) {
    this.#at = new Map(names.map((name, at) => [name, at]));
    this.#count = names.length;
  }

  /** Null: the line is no row of this file. */
  read(line: string): NodeRow | null {
    const cells = parseCsvRecord(line);
    if (cells?.length !== this.#count) return null;
    this.#cells = cells;
    const ms = Date.parse(this.#text('time') ?? '');
    const node = this.#keep('node_name');
    if (Number.isNaN(ms) || node === null) return null;
    return {
      node,
      ms,
      local: this.#text('local') === 'true',
      answered: this.#text('answered') === 'true',
      silent: this.#text('stale') === 'true',
      readings: Object.fromEntries(METRICS.map((metric) => [metric, this.#number(metric)])) as Readings,
    };
  }

  /** The rest of the row that was read last. */
  service(row: NodeRow): ServiceRow {
    return {
      ...row,
      reason: this.#keep('reason') ?? '',
      bootId: this.#keep('boot_id'),
      bootSeconds: this.#number('boot_seconds'),
      monotonicSeconds: this.#number('monotonic_seconds'),
      version: this.#keep('version'),
      started: this.#keep('service_started'),
      memoryBytes: this.#number('service_memory_bytes'),
      cpuSeconds: this.#number('service_cpu_seconds'),
      hertz: this.#number('configured_hertz'),
      samples: this.#number('samples'),
      missed: this.#number('missed_samples'),
      published: this.#number('published_statuses'),
      samplesLost: this.#number('samples_lost'),
      open: { WARNING: this.#number('open_warning'), ERROR: this.#number('open_error'), CRITICAL: this.#number('open_critical') },
    };
  }

  #text(name: string): string | null {
    const at = this.#at.get(name);
    const text = at === undefined ? '' : (this.#cells[at] ?? '');
    return text === '' ? null : text;
  }

  #keep(name: string): string | null {
    const text = this.#text(name);
    if (text === null) return null;
    const kept = this.#kept.get(text) ?? Buffer.from(text).toString();
    this.#kept.set(kept, kept);
    return kept;
  }

  #number(name: string): number | null {
    const text = this.#text(name);
    const value = text === null ? Number.NaN : Number(text);
    return Number.isFinite(value) ? value : null;
  }
}
