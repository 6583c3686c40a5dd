import { MINUTE_MS } from '../../src/core/time.ts';

/** `edge-health_20260304T050607Z.tar.zst`: a backup by the UTC time at which it was begun. */
const BACKUP = /^edge-health_(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z\.tar\.zst$/;
/** What an interrupted run leaves: such a name and anything between, with what SQLite puts beside a file. */
const PARTIAL = /^\.?edge-health_\d{8}T\d{6}Z\.[a-z.]*partial(-journal|-wal|-shm)?$/;
const SUFFIX = '.tar.zst';

export function stamp(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replaceAll(/[-:]|\.\d+/g, '');
}

export function backupName(milliseconds: number): string {
  return `edge-health_${stamp(milliseconds)}${SUFFIX}`;
}

/** When the backup of this name was made, in milliseconds since the epoch; null: it is not the name of one. */
export function timeOfBackup(name: string): number | null {
  const match = BACKUP.exec(name);
  if (!match) return null;
  const [year, month, day, hour, minute, second] = match.slice(1).map(Number) as [number, number, number, number, number, number];
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

export function isPartial(name: string): boolean {
  return PARTIAL.test(name);
}

/** A name that is not taken, for a backup made now: one second has one backup. */
export function freeName(taken: readonly string[], nowMs: number): string {
  let name = backupName(nowMs);
  for (let ms = nowMs; taken.includes(name); name = backupName(ms)) ms += 1000;
  return name;
}

/** What newestFirst needs to find the newest backup now; one made a moment ago may have the name of the next free second. */
export function newestNow(nowMs: number): string {
  return backupName(nowMs + MINUTE_MS);
}

/**
 * Backups of a folder's names, the newest first. A name later than `newest` (the one just made, or now) was made before it, under a
 * clock that was wrong then or is wrong now: it counts as older than all others. So a clock that jumps costs no more than one place
 * in the order: never is more than the surplus given up, nor what was made last.
 */
export function newestFirst(names: readonly string[], newest: string): string[] {
  const backups = names
    .filter((name) => timeOfBackup(name) !== null)
    .sort()
    .reverse();
  return [...backups.filter((name) => name <= newest), ...backups.filter((name) => name > newest)];
}

/** What is beyond the number to keep; `newest` is never among it. */
export function surplus(names: readonly string[], newest: string, keep: number): string[] {
  return newestFirst(names, newest).slice(Math.max(1, keep));
}
