/** The files in alerts/: one JSON line per alert change, and cursor.json with the state from which the next run resumes. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { type Alert, changeKey, nodeOfAlertId } from '../../src/core/alerts/alert.ts';
import { readIfThere, writeAtomically } from '../../src/core/files/atomic-file.ts';
import { corrected } from '../../src/core/time/clock-watch.ts';
import { DAY_MS, isoUtc } from '../../src/core/time/time.ts';
import { type ClockMark, clockMarkSchema, correctionSince } from '../lib/clock-mark.ts';
import { appendLines, datedFiles, linesOf, type ReadOptions, removeTornLine, utcDay } from '../lib/files.ts';
import type { JobContext } from '../lib/job.ts';
import { BEGINNING } from './alert-pages.ts';

/** `alerts_2026-03-04.ndjson`. */
export const ALERTS_FILE = /^alerts_(\d{4}-\d{2}-\d{2})\.ndjson$/;
const STATE_FILE = 'cursor.json';

/** One line: a change of an alert episode. */
export interface AlertRecord extends Alert {
  readonly node: string;
  /** Start of the episode; null if it was before the first collected change. */
  readonly began: string | null;
  /** From the start to this change; null if that is unknown, or if one of them was stamped by a clock that was not set. */
  readonly duration_seconds: number | null;
  /** Sequence number among all collected changes, in the order in which the service recorded them. */
  readonly sequence: number;
  readonly collected: string;
  /** Present in the last line of a page: the service's cursor after the page. */
  readonly cursor?: string;
  /** Set if collected after the database was replaced; the files may already contain its changes. */
  readonly replay?: true;
}

/** The position up to which alerts were collected. The lines contain everything but `files`; cursor.json only avoids reading them. */
export interface ResumeState {
  readonly cursor: string;
  /** Sequence number of the last line written. */
  readonly sequence: number;
  /** Whether changes that are already in the files may arrive again and must be skipped. */
  readonly replay: boolean;
  /** Start times of the open episodes, by alert id. */
  readonly open: Readonly<Record<string, string | null>>;
  /** Lengths of the files when the state was saved, by name. */
  readonly files: Readonly<Record<string, number>>;
  /** The clocks when the state was saved. */
  readonly clock: ClockMark | null;
}

const INITIAL: ResumeState = { cursor: BEGINNING, sequence: 0, replay: false, open: {}, files: {}, clock: null };

/** A time before this comes from a clock that was never set. */
const EARLIEST = isoUtc(Date.UTC(2020, 0));

/**
 * The file for a change: that of its UTC day, by the clock of its node. A change more than a day in the future, or older than the retention
 * time, goes to the file of the day of collection, so that a wrong clock creates no files.
 */
function fileOfChange({ timestamp }: Alert, nowMs: number, keepDays: number): string {
  const ms = Date.parse(timestamp);
  const isPlausible = ms >= nowMs - keepDays * DAY_MS && ms <= nowMs + DAY_MS;
  return `alerts_${utcDay(isPlausible ? ms : nowMs)}.ndjson`;
}

/** The records of a file; null for each line that is not a record. */
export async function* recordsIn(file: string, options: ReadOptions = {}): AsyncGenerator<AlertRecord | null> {
  for await (const lines of linesOf(file, options)) for (const line of lines) yield parseAs<AlertRecord>(recordSchema, line);
}

const recordSchema = v.looseObject({
  alert_id: v.string(),
  timestamp: v.string(),
  severity: v.string(),
  resolved: v.boolean(),
  sequence: v.pipe(v.number(), v.safeInteger()),
});
const stateSchema = v.looseObject({
  cursor: v.string(),
  sequence: v.pipe(v.number(), v.safeInteger()),
  replay: v.boolean(),
  open: v.looseObject({}),
  files: v.looseObject({}),
  clock: v.optional(v.nullable(clockMarkSchema), null),
});

/** Returns null for torn or damaged text. */
function parseAs<T>(schema: v.GenericSchema, text: string): T | null {
  try {
    const value: unknown = JSON.parse(text);
    return v.is(schema, value) ? (value as T) : null;
  } catch {
    return null;
  }
}

/** Keys of all changes in the files. */
export async function allKeys(folder: string): Promise<Set<string>> {
  const keys = new Set<string>();
  for (const { name } of await datedFiles(folder, ALERTS_FILE)) {
    for await (const record of recordsIn(join(folder, name))) if (record) keys.add(changeKey(record));
  }
  return keys;
}

/**
 * The records of changes that follow `state`, the last one with the cursor after them, and the episodes that are open then. If the clock
 * has stepped since the state was saved, the starts of open episodes are corrected as the service corrected theirs.
 */
export function recordsOf(changes: readonly Alert[], state: ResumeState, cursor: string, clock: ClockMark) {
  const correction = correctionSince(state.clock, clock);
  let open: ResumeState['open'] = Object.fromEntries(
    Object.entries(state.open).map(([id, began]) => [id, correction && began ? isoUtc(corrected(Date.parse(began), correction)) : began]),
  );
  const records = changes.map((change, i): AlertRecord => {
    // If the first change seen of an episode resolves it, the start of the episode was not collected.
    let begun = open[change.alert_id];
    // Resolved before the clock was set forward: all its times are by the old clock.
    if (begun && begun > change.timestamp) begun = state.open[change.alert_id] ?? begun;
    const began = begun !== undefined ? begun : change.resolved ? null : change.timestamp;
    const isSet = began !== null && (began >= EARLIEST || change.timestamp < EARLIEST);
    const seconds = isSet ? (Date.parse(change.timestamp) - Date.parse(began)) / 1000 : -1;
    const record = {
      ...change,
      node: nodeOfAlertId(change.alert_id),
      began,
      duration_seconds: seconds >= 0 ? seconds : null,
      sequence: state.sequence + i + 1,
      collected: isoUtc(clock.wall_ms),
      ...(i === changes.length - 1 ? { cursor } : {}),
      ...(state.replay ? { replay: true as const } : {}),
    };
    open = openAfter(open, record);
    return record;
  });
  return { records, open };
}

/**
 * Appends each record to the file of its day and returns the names of these files. The line with the cursor is written last, because it
 * marks all of them as written.
 */
export async function appendRecords(folder: string, records: readonly AlertRecord[], nowMs: number, keepDays: number): Promise<string[]> {
  const byFile = Map.groupBy(records, (record) => fileOfChange(record, nowMs, keepDays));
  const files = [...byFile].sort(([, a], [, b]) => (a.at(-1)?.sequence ?? 0) - (b.at(-1)?.sequence ?? 0));
  for (const [file, of] of files) {
    await appendLines(join(folder, file), of.map((record) => `${JSON.stringify(record)}\n`).join(''), { durable: true });
  }
  return [...byFile.keys()];
}

/** The open episodes after a change. */
function openAfter(open: ResumeState['open'], { alert_id, began, resolved }: AlertRecord): ResumeState['open'] {
  const { [alert_id]: _, ...others } = open;
  return resolved ? others : { ...others, [alert_id]: began };
}

export async function saveState(folder: string, state: Omit<ResumeState, 'files'>): Promise<ResumeState> {
  const saved = { ...state, files: await fileLengths(folder) };
  await writeAtomically(join(folder, STATE_FILE), `${JSON.stringify(saved)}\n`);
  return saved;
}

export interface FoundState {
  readonly state: ResumeState;
  /** Keys of changes after the cursor that are already in the files: a run ended after writing them and before saving the cursor. */
  readonly known: ReadonlySet<string>;
}

/**
 * Finds the position up to which alerts were collected, however the last run ended: from the saved state, and from lines of files that have
 * changed since. Removes torn last lines unless it is a dry run; their changes are after the cursor.
 */
export async function findState(folder: string, log: JobContext['log'], dryRun: boolean): Promise<FoundState> {
  const saved = parseAs<ResumeState>(stateSchema, (await readIfThere(join(folder, STATE_FILE))) ?? '') ?? INITIAL;
  const lengths = await fileLengths(folder);
  const changed = Object.keys(lengths).filter((name) => lengths[name] !== saved.files[name]);
  let { open, sequence: last } = saved;
  let reached: Pick<ResumeState, 'cursor' | 'replay' | 'sequence'> = saved;
  const known = new Map<string, number>();
  for (const name of changed.sort()) {
    const file = join(folder, name);
    const cut = dryRun ? 0 : await removeTornLine(file);
    if (cut > 0) log('warning', 'torn last line removed', { file, bytes: cut });
    for await (const record of recordsIn(file)) {
      if (record === null || record.sequence <= saved.sequence) continue;
      const { cursor, replay = false, sequence } = record;
      last = Math.max(last, sequence);
      open = openAfter(open, record);
      if (sequence > reached.sequence) known.set(changeKey(record), sequence);
      if (cursor === undefined || sequence < reached.sequence) continue;
      reached = { cursor, replay, sequence };
      for (const [key, at] of known) if (at <= sequence) known.delete(key);
    }
  }
  const { cursor, replay } = reached;
  return {
    state: { cursor, replay, sequence: last, open, files: await fileLengths(folder), clock: saved.clock ?? null },
    known: new Set(known.keys()),
  };
}

async function fileLengths(folder: string): Promise<Record<string, number>> {
  const files = await datedFiles(folder, ALERTS_FILE);
  return Object.fromEntries(await Promise.all(files.map(async ({ name }) => [name, (await stat(join(folder, name))).size] as const)));
}
