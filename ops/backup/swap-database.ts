import { constants } from 'node:fs';
import { chmod, copyFile, link, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { foldInLog } from '../../src/store/inspect.ts';
import { syncFolder } from '../../src/system/atomic-file.ts';
import { FILE_MODE, FOLDER_MODE } from '../lib/folder.ts';
import { DATABASE_FILE } from './database.ts';

/** SQLITE_CORRUPT and SQLITE_NOTADB, without what their extended codes add. */
const DAMAGE = [11, 26];
/** As the service makes its tail. */
const SEGMENT_MODE = 0o600;
const SEGMENT = /^\d{1,15}\.ndjson$/;

export interface SwapOptions {
  readonly dataFolder: string;
  /** The database that takes the place, on the same file system. */
  readonly restored: string;
  /** Where a tail may be. */
  readonly tailFolders: readonly string[];
  readonly stamp: string;
  /** Told before each step that changes what the next start finds; tests end the process there. */
  readonly onStep?: (step: string) => void;
}

export interface Swapped {
  /** The database that was there; null: there was none. */
  readonly setAside: string | null;
  /** Samples that had not reached it; null: all had. */
  readonly tailAside: string | null;
}

/** How to put back what was done, the last first. */
export type Undone = (() => Promise<unknown>)[];

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r');
  await handle.sync().finally(() => handle.close());
}

/** A second name for a file, or, where the file system has no such, a second file. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'ENOSYS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL);
    await syncFile(to);
  }
}

/** Second names that an interrupted run gave to the database that is still in place: they would be written to with it. */
async function removeAliases(dataFolder: string, database: string): Promise<void> {
  const { ino } = await stat(database);
  for (const name of await readdir(dataFolder)) {
    if (!name.startsWith(`${DATABASE_FILE}.set-aside-`)) continue;
    if ((await stat(join(dataFolder, name))).ino === ino) await rm(join(dataFolder, name));
  }
}

/** Whether the database is one that can be used; its log is then part of it, and gone. */
function foldedIn(database: string): boolean {
  try {
    foldInLog(database);
    return true;
  } catch (error) {
    if (DAMAGE.includes(((error as { errcode?: number }).errcode ?? 0) % 256)) return false;
    throw error;
  }
}

async function segmentsIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => SEGMENT.test(name)).map((name) => join(folder, name));
}

/**
 * Puts a restored database in the place of the present one, so that whoever starts next, whenever this is interrupted, finds the old one or
 * the new one whole. The log (-wal) would be taken for the new one's: it is folded into the old one first. Then the old one gets a second
 * name, and the new one takes the first, at once. What was recorded but had not reached the old one goes aside before that: it is of the old one.
 * `undone` gets how each step is put back, also of one that throws.
 */
export async function swapDatabase(options: SwapOptions, undone: Undone): Promise<Swapped> {
  const { dataFolder, onStep = () => undefined, restored, stamp, tailFolders } = options;
  const database = join(dataFolder, DATABASE_FILE);
  const aside = `${database}.set-aside-${stamp}`;
  const tailAside = `${aside}-tail`;
  const there = await exists(database);
  let isWhole = true;
  if (there) {
    await removeAliases(dataFolder, database);
    onStep('fold in the log');
    isWhole = foldedIn(database);
    onStep('second name');
    undone.unshift(() => rm(aside, { force: true }));
    await linkOrCopy(database, aside);
  }
  const { mode } = there ? await stat(database) : { mode: FILE_MODE };
  await chmod(restored, mode & 0o777);
  const segments = (await Promise.all(tailFolders.map(segmentsIn))).flat();
  if (segments.length > 0) {
    undone.unshift(() => bringBack(segments, tailAside));
    await copyAside(segments, tailAside);
  }
  // A damaged database's log; of one that is whole there is none by now.
  const log = `${database}-wal`;
  if (!isWhole && (await exists(log))) {
    undone.unshift(() => bringLogBack(`${aside}-wal`, log));
    await linkOrCopy(log, `${aside}-wal`);
  }
  await syncFolder(dataFolder);
  for (const segment of segments) {
    onStep('tail');
    await rm(segment);
  }
  for (const suffix of ['-wal', '-shm']) {
    onStep(`no ${suffix}`);
    await rm(database + suffix, { force: true });
  }
  onStep('new one');
  undone.unshift(() => putBack(database, there ? aside : null));
  await rename(restored, database);
  onStep('done');
  await syncFolder(dataFolder);
  return { setAside: there ? aside : null, tailAside: segments.length > 0 ? tailAside : null };
}

/** The restored database may have been in use, and have a log of its own by now, which must not be taken for the old one's. */
async function putBack(database: string, aside: string | null): Promise<void> {
  if (await exists(database)) foldedIn(database);
  for (const suffix of ['-wal', '-shm']) await rm(database + suffix, { force: true });
  if (aside === null) await rm(database, { force: true });
  else await rename(aside, database);
  await syncFolder(dirname(database));
}

async function bringLogBack(aside: string, log: string): Promise<void> {
  if (!(await exists(aside))) return;
  await rename(aside, log);
  await rm(aside, { force: true }); // Two names of one file: renaming leaves both.
}

async function bringBack(segments: readonly string[], tailAside: string): Promise<void> {
  for (const segment of segments) {
    if (await exists(segment)) continue;
    const half = `${segment}.half`;
    await copyFile(join(tailAside, nameOf(segment)), half);
    await chmod(half, SEGMENT_MODE);
    await rename(half, segment);
  }
  await rm(tailAside, { recursive: true, force: true });
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

async function copyAside(segments: readonly string[], folder: string): Promise<void> {
  await mkdir(folder, { mode: FOLDER_MODE });
  for (const segment of segments) {
    const copy = join(folder, nameOf(segment));
    await copyFile(segment, copy);
    await syncFile(copy);
  }
  await syncFolder(folder);
}
