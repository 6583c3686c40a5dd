import { constants } from 'node:fs';
import { chmod, copyFile, link, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { foldInLog } from '../../src/store/inspect.ts';
import { tailBesideDatabase, tailInMemory, tailInRuntimeFolder } from '../../src/store/tail-folder.ts';
import { syncFolder } from '../../src/system/atomic-file.ts';
import { FILE_MODE, FOLDER_MODE } from '../lib/folder.ts';
import { DATABASE_FILE } from './database.ts';

/** SQLITE_CORRUPT and SQLITE_NOTADB, without what their extended codes add. */
const DAMAGE = [11, 26];
/** As the service makes its spool: a write-ahead buffer in tmpfs of samples that have not reached the database. */
const SEGMENT_MODE = 0o600;
const SEGMENT = /^\d{1,15}\.ndjson$/;

/** How to undo what was done, the last step first. */
export type Rollback = (() => Promise<unknown>)[];

export interface SwapOptions {
  readonly dataFolder: string;
  /** The database that takes the place, on the same file system. */
  readonly restored: string;
  /** Runtime folders of systemd in which the service may have its spool. */
  readonly runtimeFolders: readonly string[];
  readonly stamp: string;
  /** Called before each step that changes what the next start finds; tests end the process there. */
  readonly onStep?: (step: string) => void;
}

/** What the restored database replaced; null: there was none. */
export interface Previous {
  readonly database: string | null;
  /** The folder of samples that had not reached it. */
  readonly spool: string | null;
}

/**
 * Swaps the database for a restored one, so that the next start, whenever this is interrupted, finds the previous one or the restored one,
 * complete. A log (-wal) would be taken for that of the restored one, so it is folded into the previous one first. That one then gets a second
 * name, and the restored one takes the first, in one rename. Samples in the spool belong to the previous one: they are moved beside it before.
 * `rollback` receives how each step is undone, also of one that throws.
 */
export async function swapDatabase(options: SwapOptions, rollback: Rollback): Promise<Previous> {
  const { dataFolder, onStep = () => undefined, restored, runtimeFolders, stamp } = options;
  const database = join(dataFolder, DATABASE_FILE);
  const previous = `${database}.previous-${stamp}`;
  const previousSpool = `${previous}-spool`;
  const isPresent = await exists(database);
  let isUsable = true;
  if (isPresent) {
    await removeAliases(dataFolder, database);
    onStep('fold in the log');
    isUsable = foldedIn(database);
    onStep('second name');
    rollback.unshift(() => rm(previous, { force: true }));
    await linkOrCopy(database, previous);
  }
  const { mode } = isPresent ? await stat(database) : { mode: FILE_MODE };
  await chmod(restored, mode & 0o777);
  const uid = process.getuid?.() ?? 0;
  const spools = [...runtimeFolders.map(tailInRuntimeFolder), tailInMemory(dataFolder, uid), tailBesideDatabase(dataFolder)];
  const segments = (await Promise.all(spools.map(segmentsIn))).flat();
  if (segments.length > 0) {
    rollback.unshift(() => returnSegments(segments, previousSpool));
    await copySegments(segments, previousSpool);
  }
  // Only a damaged database still has a log.
  const log = `${database}-wal`;
  if (!isUsable && (await exists(log))) {
    rollback.unshift(() => returnLog(`${previous}-wal`, log));
    await linkOrCopy(log, `${previous}-wal`);
  }
  await syncFolder(dataFolder);
  for (const segment of segments) {
    onStep('spool');
    await rm(segment);
  }
  for (const suffix of ['-wal', '-shm']) {
    onStep(`no ${suffix}`);
    await rm(database + suffix, { force: true });
  }
  onStep('swap');
  rollback.unshift(() => returnDatabase(database, isPresent ? previous : null));
  await rename(restored, database);
  onStep('done');
  await syncFolder(dataFolder);
  return { database: isPresent ? previous : null, spool: segments.length > 0 ? previousSpool : null };
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r');
  await handle.sync().finally(() => handle.close());
}

/** A second name for a file, or a copy where the file system has no hard links. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'ENOSYS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL);
    await syncFile(to);
  }
}

/** Removes second names that an interrupted run gave to the database that is still in place: what is written to it would change them too. */
async function removeAliases(dataFolder: string, database: string): Promise<void> {
  const { ino } = await stat(database);
  for (const name of await readdir(dataFolder)) {
    if (!name.startsWith(`${DATABASE_FILE}.previous-`)) continue;
    if ((await stat(join(dataFolder, name))).ino === ino) await rm(join(dataFolder, name));
  }
}

/** Folds the log into the database; false: the database is damaged. */
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

async function copySegments(segments: readonly string[], folder: string): Promise<void> {
  await mkdir(folder, { mode: FOLDER_MODE });
  for (const segment of segments) {
    const copy = join(folder, basename(segment));
    await copyFile(segment, copy);
    await syncFile(copy);
  }
  await syncFolder(folder);
}

async function returnSegments(segments: readonly string[], folder: string): Promise<void> {
  for (const segment of segments) {
    if (await exists(segment)) continue;
    const partial = `${segment}.partial`;
    await copyFile(join(folder, basename(segment)), partial);
    await chmod(partial, SEGMENT_MODE);
    await rename(partial, segment);
  }
  await rm(folder, { recursive: true, force: true });
}

async function returnLog(previous: string, log: string): Promise<void> {
  if (!(await exists(previous))) return;
  await rename(previous, log);
  await rm(previous, { force: true }); // rename leaves both names where they are of one file.
}

/** The restored database may have been in use and have a log by now, which must not be taken for that of the previous one. */
async function returnDatabase(database: string, previous: string | null): Promise<void> {
  if (await exists(database)) foldedIn(database);
  for (const suffix of ['-wal', '-shm']) await rm(database + suffix, { force: true });
  if (previous === null) await rm(database, { force: true });
  else await rename(previous, database);
  await syncFolder(dirname(database));
}

/** Processes that hold a lock on a file, as far as the kernel shows them. */
export async function lockHolders(file: string): Promise<number[]> {
  try {
    const { ino } = await stat(file);
    const lines = (await readFile('/proc/locks', 'utf8')).split('\n');
    const holders = lines.map((line) => /\s(\d+)\s+[0-9a-f]+:[0-9a-f]+:(\d+)\s/.exec(line)).filter((match) => match?.[2] === String(ino));
    return [...new Set(holders.map((match) => Number(match?.[1])))];
  } catch {
    return [];
  }
}
