import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MINUTE_MS } from '../../src/core/time/time.ts';

/** `edge-health_20260304T050607Z.tar.zst`: the name of a backup gives the UTC time at which it was started. */
const BACKUP = /^edge-health_(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z\.tar\.zst$/;
/** Files left by an interrupted run: a partial archive or copy of the database, and SQLite's files beside it. */
const PARTIAL = /^\.?edge-health_\d{8}T\d{6}Z\.[a-z.]*partial(-journal|-wal|-shm)?$/;
const SUFFIX = '.tar.zst';

export function stamp(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replaceAll(/[-:]|\.\d+/g, '');
}

export function backupName(milliseconds: number): string {
  return `edge-health_${stamp(milliseconds)}${SUFFIX}`;
}

/** The start time of the backup of this name, in milliseconds since the epoch, or null if it is not the name of a backup. */
export function timeOfBackup(name: string): number | null {
  const match = BACKUP.exec(name);
  if (!match) return null;
  const [year, month, day, hour, minute, second] = match.slice(1).map(Number) as [number, number, number, number, number, number];
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

export function isPartial(name: string): boolean {
  return PARTIAL.test(name);
}

/** A free name for a backup made now. Two backups of the same second get names of successive seconds. */
export function freeName(taken: readonly string[], nowMs: number): string {
  let name = backupName(nowMs);
  for (let ms = nowMs; taken.includes(name); name = backupName(ms)) ms += 1000;
  return name;
}

/** The backups of a data folder. */
export function backupFolder(dataFolder: string): string {
  return join(dataFolder, 'backups');
}

/** Names of the backups in a folder; empty where the folder does not exist. */
export async function backupsIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.filter((name) => timeOfBackup(name) !== null);
}

/** The `newest` of newestFirst when no backup was just made. A backup made a moment ago may have the name of the next free second. */
export function newestNow(nowMs: number): string {
  return backupName(nowMs + MINUTE_MS);
}

/**
 * The backups among these names, newest first. A name later than `newest` (the one just made, or now) counts as older than all others: it
 * was made earlier, while the clock was wrong, or the clock is wrong now. A clock step therefore costs at most one position in the order:
 * only the surplus is removed, and never the backup that was made last.
 */
export function newestFirst(names: readonly string[], newest: string): string[] {
  const backups = names
    .filter((name) => timeOfBackup(name) !== null)
    .sort()
    .reverse();
  return [...backups.filter((name) => name <= newest), ...backups.filter((name) => name > newest)];
}

/** The backups beyond the number to keep; never includes `newest`. */
export function surplus(names: readonly string[], newest: string, keep: number): string[] {
  return newestFirst(names, newest).slice(Math.max(1, keep));
}

/** Removes the backups beyond the number to keep, and returns their names. */
export async function prune(folder: string, newest: string, keep: number): Promise<string[]> {
  const old = surplus(await backupsIn(folder), newest, keep);
  for (const name of old) await rm(join(folder, name), { force: true });
  return old;
}

/** Removes files left by interrupted runs. No other backup may be running. */
export async function removePartials(folder: string): Promise<void> {
  for (const name of await readdir(folder)) if (isPartial(name)) await rm(join(folder, name), { force: true });
}
