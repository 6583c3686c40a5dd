/**
 * Files and folders of jobs: modes, files of lines per UTC day (durable appends, torn ends, reading, retention), and
 * reasons for failed writes.
 */
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncFolder } from '../../src/core/files/atomic-file.ts';
import { levelsOf } from '../../src/core/files/data-folder.ts';
import { permissionRemedy } from '../../src/core/platform/permission.ts';
import { DAY_MS, isoUtc } from '../../src/core/time/time.ts';
import type { JobContext } from './job.ts';

/** Modes below the data folder: its group has read access. */
export const FILE_MODE = 0o640;
export const FOLDER_MODE = 0o750;

/**
 * Like makeFolder of src/system, but without blocking the process on a disk that hangs. Returns the uppermost folder
 * created, or null if all existed.
 */
export async function makeFolder(folder: string): Promise<string | null> {
  let made: string | null = null;
  for (const level of levelsOf(folder)) {
    try {
      await mkdir(level, { mode: FOLDER_MODE });
      made ??= level;
    } catch (error) {
      const there = await stat(level).catch(() => null);
      if (!there?.isDirectory()) throw error;
    }
  }
  return made;
}

const BLOCK_BYTES = 65_536;
const NEWLINE = 0x0a;
/** A longer line is damaged. It is skipped to bound memory. */
const MAX_LINE_CHARACTERS = 1_000_000;

export interface AppendOptions {
  /** First line or lines of a new file, written together with the first append. */
  readonly head?: string;
  /**
   * Whether the lines survive a power cut once this returns. Otherwise a cut loses what the kernel has not yet written,
   * about the last half minute.
   */
  readonly durable?: boolean;
}

export interface Appended {
  /** Bytes of a torn last line that were removed first. A power cut, or a process killed during a write, leaves such a line. */
  readonly cut: number;
  /** Length of the file after the append. */
  readonly size: number;
}

/**
 * Appends whole lines in one write: all of them or, if it throws (a full disk), none. Creates the file if needed, and removes a torn last
 * line first. Only one process may append to a file at a time.
 */
export async function appendLines(file: string, lines: string, { head = '', durable = false }: AppendOptions = {}): Promise<Appended> {
  const handle = await open(file, 'a+', FILE_MODE);
  try {
    const { size } = await handle.stat();
    const whole = await endOfLastLine(handle, size);
    if (whole < size) await handle.truncate(whole);
    const text = whole === 0 ? head + lines : lines;
    try {
      await handle.appendFile(text);
      if (durable) await handle.datasync();
      if (durable && size === 0) await syncFolder(dirname(file));
    } catch (error) {
      await handle.truncate(whole).catch(() => undefined); // The next append removes a torn remainder.
      throw error;
    }
    return { cut: size - whole, size: whole + Buffer.byteLength(text) };
  } finally {
    await handle.close();
  }
}

/** Removes a torn last line; returns its length in bytes. */
export async function removeTornLine(file: string): Promise<number> {
  const handle = await open(file, 'r+');
  try {
    const { size } = await handle.stat();
    const whole = await endOfLastLine(handle, size);
    if (whole < size) await handle.truncate(whole);
    return size - whole;
  } finally {
    await handle.close();
  }
}

/** Offset of the end of the last whole line in a file of this size, or 0 if there is none. */
async function endOfLastLine(handle: FileHandle, size: number): Promise<number> {
  let block = Buffer.alloc(1); // The last byte is nearly always a newline, so one byte is read first.
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - block.length);
    const { bytesRead } = await handle.read(block, 0, end - start, start);
    const at = block.subarray(0, bytesRead).lastIndexOf(NEWLINE);
    if (at >= 0) return start + at + 1;
    end = start;
    if (block.length === 1) block = Buffer.alloc(BLOCK_BYTES);
  }
  return 0;
}

export interface ReadOptions {
  /** Called for text that is not a whole line: a torn end, or a stretch without a newline that is longer than any valid line. */
  readonly torn?: (characters: number) => void;
  readonly signal?: AbortSignal;
}

/** The whole lines of a file in batches, without their newlines. */
export async function* linesOf(file: string, { signal, torn = () => undefined }: ReadOptions = {}): AsyncGenerator<string[]> {
  let rest = '';
  let skipped = 0;
  const stream = createReadStream(file, { encoding: 'utf8', highWaterMark: BLOCK_BYTES, ...(signal ? { signal } : {}) });
  for await (const block of stream as AsyncIterable<string>) {
    const lines = (rest + block).split('\n');
    rest = lines.pop() ?? '';
    if (skipped > 0 && lines.length > 0) {
      torn(skipped + (lines.shift() ?? '').length);
      skipped = 0;
    }
    if (rest.length > MAX_LINE_CHARACTERS) {
      skipped += rest.length;
      rest = '';
    }
    if (lines.length > 0) yield lines;
  }
  if (skipped + rest.length > 0) torn(skipped + rest.length);
}

/** `2026-03-04`: the UTC day of a time in milliseconds since the epoch. */
export function utcDay(ms: number): string {
  return isoUtc(ms).slice(0, 10);
}

export interface DatedFile {
  readonly name: string;
  readonly day: string;
}

/** Files of a folder whose names match; the first group of `pattern` is the day. Empty if the folder does not exist. */
export async function datedFiles(folder: string, pattern: RegExp): Promise<DatedFile[]> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  return names.flatMap((name) => {
    const day = pattern.exec(name)?.[1];
    return day === undefined ? [] : [{ name, day }];
  });
}

/**
 * The days whose files are to be removed: those older than `keepDays` by this clock that are not among the newest `keepDays` days with
 * files. This way, neither a clock that is years ahead nor a machine that was off for months empties the folder.
 */
export function expiredDays(days: readonly string[], keepDays: number, nowMs: number): string[] {
  const distinct = [...new Set(days)].sort();
  const oldest = utcDay(Math.max(0, nowMs - keepDays * DAY_MS));
  return distinct.slice(0, Math.max(0, distinct.length - keepDays)).filter((day) => day < oldest);
}

/** Removes the files of expired days; returns their names. */
export async function pruneDatedFiles(folder: string, pattern: RegExp, keepDays: number, nowMs: number): Promise<string[]> {
  const files = await datedFiles(folder, pattern);
  const days = files.map(({ day }) => day);
  const expired = expiredDays(days, keepDays, nowMs);
  const names = files.filter(({ day }) => expired.includes(day)).map(({ name }) => name);
  for (const name of names) await rm(join(folder, name), { force: true });
  return names;
}

/**
 * Removes files older than ops.keep_days. A failure is logged and does not fail the job: the removal is retried with the next day's file.
 */
export async function prune({ config, log, nowMs }: JobContext, folder: string, pattern: RegExp): Promise<readonly string[]> {
  try {
    const names = await pruneDatedFiles(folder, pattern, config.ops.keep_days, nowMs());
    if (names.length > 0) log('info', 'files older than ops.keep_days removed', { folder, files: names.join(' ') });
    return names;
  } catch (error) {
    log('warning', 'files older than ops.keep_days not removed', { folder, error: (error as Error).message });
    return [];
  }
}

const inTheWay = (folder: string): string => `a file is in the way of a folder in ${folder}; move it away`;
const REMEDIES: Readonly<Record<string, (folder: string) => string>> = {
  ENOSPC: (folder) => `the disk of ${folder} is full; remove what is not needed there, or lower storage.max_megabytes and ops.keep_days`,
  EDQUOT: (folder) => `the quota of ${folder} is used up; remove what is not needed there, or raise it`,
  EROFS: (folder) => `${folder} is mounted read-only; see dmesg for the disk's errors, then mount it for writing again`,
  EACCES: (folder) => `permission denied: ${folder}; ${permissionRemedy('run it with sudo')}`,
  EPERM: (folder) => `permission denied: ${folder}; ${permissionRemedy('run it with sudo')}`,
  EIO: (folder) => `the disk of ${folder} cannot be written (input/output error); see dmesg, and replace it`,
  ENOTDIR: inTheWay,
  EEXIST: inTheWay,
  EMFILE: () => 'too many files are open; restart the scheduler: systemctl restart edge-health-ops',
};

/** The codes of SQLite (its `errcode` without the extended part) that mean the same. */
const OF_SQLITE: Readonly<Record<number, string>> = { 8: 'EROFS', 10: 'EIO', 13: 'ENOSPC' };

/** Why writing below a folder failed, with the remedy, or null if it is not a file system error. */
export function diskProblem(error: unknown, folder: string): string | null {
  const { code, errcode, message, path } = error as NodeJS.ErrnoException & { errcode?: number };
  const remedy = REMEDIES[(errcode === undefined ? code : OF_SQLITE[errcode & 0xff]) ?? ''];
  if (remedy) return remedy(isPermission(error) ? (path ?? folder) : folder);
  return path === undefined ? null : `${message}; look at ${folder}`;
}

/** Whether an error is a missing permission. */
export function isPermission(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EACCES' || code === 'EPERM';
}
