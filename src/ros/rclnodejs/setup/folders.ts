import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../../../core/files/data-folder.ts';
import { MANIFEST } from '../prepared.ts';

const UNFINISHED = /^\.(?:preparing|replaced)-(\d+)-/;
/** An unfinished folder of this age is abandoned, even if its process id is in use again. */
const ABANDONED_MS = 6 * 3600 * 1000;

/** Creates a folder on the file system of its final location. Its name contains the process id of its owner. */
export function beginFolder(preparedRoot: string): string {
  makeFolder(preparedRoot);
  return mkdtempSync(join(preparedRoot, `.preparing-${process.pid}-`));
}

/** Renames a prepared folder to its final name, replacing an existing one. */
export function publishFolder(made: string, preparedRoot: string, key: string): void {
  const target = join(preparedRoot, key);
  if (!existsSync(target)) {
    renameSync(made, target);
    return;
  }
  const old = mkdtempSync(join(preparedRoot, `.replaced-${process.pid}-`));
  renameSync(target, join(old, key));
  renameSync(made, target);
  rmSync(old, { recursive: true });
}

/** Removes the unfinished folders of this process. */
export function abandon(preparedRoot: string): void {
  for (const name of entries(preparedRoot)) {
    if (UNFINISHED.exec(name)?.[1] === String(process.pid)) rmSync(join(preparedRoot, name), { recursive: true, force: true });
  }
}

/** Removes the folders left by killed runs. Returns their number. */
export function removeUnfinished(preparedRoot: string): number {
  let removed = 0;
  for (const name of entries(preparedRoot)) {
    const owner = UNFINISHED.exec(name)?.[1];
    if (owner === undefined) continue;
    const folder = join(preparedRoot, name);
    if (isAlive(Number(owner)) && Date.now() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0) < ABANDONED_MS) continue;
    rmSync(folder, { recursive: true, force: true });
    removed += 1;
  }
  return removed;
}

/**
 * Removes prepared folders of other versions of rclnodejs or of the interfaces. Those of the same versions for other distributions are
 * kept, since a machine may have several. Returns the removed keys.
 */
export function removeOutdated(preparedRoot: string, key: string): string[] {
  const versions = withoutDistro(key);
  const outdated = entries(preparedRoot).filter(
    (name) => existsSync(join(preparedRoot, name, MANIFEST)) && name !== key && !name.startsWith('.') && withoutDistro(name) !== versions,
  );
  for (const name of outdated) rmSync(join(preparedRoot, name), { recursive: true, force: true });
  return outdated;
}

/** `2.2.0-1a2b3c4d` of `jazzy-2.2.0-1a2b3c4d`. */
function withoutDistro(key: string): string {
  return key.slice(key.indexOf('-') + 1);
}

function entries(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function isAlive(pid: number): boolean {
  if (pid === process.pid) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
