import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../src/core/ports.ts';
import { readIfThere, writeAtomically } from '../../src/system/atomic-file.ts';
import { cutTornLine } from '../lib/append.ts';
import { datedFiles } from '../lib/dated-files.ts';
import { linesOf } from '../lib/lines.ts';
import { ALERTS_FILE, type AlertRecord, changeKey, parseAlertRecord } from './alert-record.ts';

const NAME = 'cursor.json';
/** The service's place before everything that its database has. */
export const BEGINNING = '0';

/** How far alerts were collected. All of it can be told from the files of alerts; cursor.json only spares reading them. */
export interface AlertCursor {
  /** Where the service goes on. */
  readonly place: string;
  /** Of the last line written. */
  readonly sequence: number;
  /** Whether what is in the files already may come again and must be left out: another database was put in place. */
  readonly replay: boolean;
  /** Beginnings of the open episodes, by alert id. */
  readonly open: Readonly<Record<string, string | null>>;
  /** Lengths of the files at that time, by name. */
  readonly files: Readonly<Record<string, number>>;
}

const NOTHING: AlertCursor = { place: BEGINNING, sequence: 0, replay: false, open: {}, files: {} };

export interface FoundCursor {
  readonly cursor: AlertCursor;
  /** Keys of changes after the place which are in the files all the same: a run was ended between writing them and saying so. */
  readonly known: ReadonlySet<string>;
}

/** How far alerts were collected into a folder, whatever ended the last run. `repairs`: a torn last line is cut off; it comes again. */
export async function findCursor(folder: string, log: Log, repairs: boolean): Promise<FoundCursor> {
  const saved = parseCursor(await readIfThere(join(folder, NAME)));
  const files = await fileLengths(folder);
  const changed = Object.keys(files).filter((name) => files[name] !== saved.files[name]);
  if (changed.length === 0) return { cursor: { ...saved, files }, known: new Set() };
  const reading = new Reading(saved);
  for (const name of changed.sort()) {
    const file = join(folder, name);
    const cut = repairs ? await cutTornLine(file) : 0;
    if (cut > 0) log('warning', 'cut off a torn last line, as a power cut leaves it', { file, bytes: cut });
    const before = saved.files[name] ?? 0;
    const start = before <= (files[name] as number) - cut ? before : 0;
    for await (const lines of linesOf(file, { start })) for (const line of lines) reading.add(parseAlertRecord(line));
  }
  return reading.result(await fileLengths(folder));
}

export async function saveCursor(folder: string, cursor: AlertCursor): Promise<void> {
  await writeAtomically(join(folder, NAME), `${JSON.stringify(cursor)}\n`);
}

/** Keys of all changes in the files of a folder. */
export async function allKeys(folder: string): Promise<Set<string>> {
  const keys = new Set<string>();
  for (const { name } of await datedFiles(folder, ALERTS_FILE)) {
    for await (const lines of linesOf(join(folder, name))) {
      for (const record of lines.map(parseAlertRecord)) if (record) keys.add(changeKey(record));
    }
  }
  return keys;
}

/** The open episodes after a change. */
export function openAfter(open: AlertCursor['open'], { alert_id, began, resolved }: AlertRecord): AlertCursor['open'] {
  const { [alert_id]: _, ...others } = open;
  return resolved ? others : { ...others, [alert_id]: began };
}

export async function fileLengths(folder: string): Promise<Record<string, number>> {
  const files = await datedFiles(folder, ALERTS_FILE);
  return Object.fromEntries(await Promise.all(files.map(async ({ name }) => [name, (await stat(join(folder, name))).size] as const)));
}

/** Goes through the lines written after a cursor was saved; they may come in any order, but mostly come in theirs. */
class Reading {
  readonly #saved: AlertCursor;
  #reached: Pick<AlertCursor, 'place' | 'replay' | 'sequence'>;
  #last: number;
  #open: AlertCursor['open'];
  /** Sequence by key of the changes after the place reached. */
  #beyond = new Map<string, number>();

  constructor(saved: AlertCursor) {
    this.#saved = saved;
    this.#reached = saved;
    this.#last = saved.sequence;
    this.#open = saved.open;
  }

  add(record: AlertRecord | null): void {
    if (record === null || record.sequence <= this.#saved.sequence) return;
    const { place, replay = false, sequence } = record;
    this.#last = Math.max(this.#last, sequence);
    this.#open = openAfter(this.#open, record);
    if (sequence > this.#reached.sequence) this.#beyond.set(changeKey(record), sequence);
    if (place === undefined || sequence < this.#reached.sequence) return;
    this.#reached = { place, replay, sequence };
    for (const [key, at] of this.#beyond) if (at <= sequence) this.#beyond.delete(key);
  }

  result(files: Readonly<Record<string, number>>): FoundCursor {
    const { place, replay } = this.#reached;
    return { cursor: { place, replay, sequence: this.#last, open: this.#open, files }, known: new Set(this.#beyond.keys()) };
  }
}

function parseCursor(text: string | null): AlertCursor {
  try {
    const cursor = JSON.parse(text ?? '') as Partial<AlertCursor>;
    const isOurs =
      typeof cursor.place === 'string' &&
      Number.isSafeInteger(cursor.sequence) &&
      typeof cursor.replay === 'boolean' &&
      [cursor.open, cursor.files].every((part) => typeof part === 'object' && part !== null);
    return isOurs ? (cursor as AlertCursor) : NOTHING;
  } catch {
    return NOTHING;
  }
}
