import { chmod, copyFile, link, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { foldInLog } from '../../src/client/inspect-database.ts';
import { syncFolder as sync } from '../../src/core/files/atomic-file.ts';
import { spoolBesideDatabase, spoolInMemory, spoolInRuntimeFolder } from '../../src/core/files/spool-folder.ts';
import { DATABASE_FILE } from '../backup/database.ts';
import { FILE_MODE, FOLDER_MODE } from '../lib/files.ts';
import { type Rollback, returnFile } from './restore-files.ts';

/** SQLITE_CORRUPT and SQLITE_NOTADB as primary codes, without the bits of extended codes. */
const DAMAGE = [11, 26];
/** Error codes of `link` on file systems without hard links. */
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'ENOSYS'];
/** Same as in the service's spool, the tmpfs write-ahead buffer of samples that have not reached the database. */
const SEGMENT_MODE = 0o600;
const SEGMENT = /^\d{1,15}\.ndjson$/;

interface SwapOptions {
  readonly dataFolder: string;
  /** The restored database, on the same file system as the current one. */
  readonly restored: string;
  /** Runtime folders of systemd that may contain the service's spool. */
  readonly runtimeFolders: readonly string[];
  readonly stamp: string;
  /** Called before each step that affects the next start; tests end the process there. */
  readonly onStep: ((step: string) => void) | undefined;
}

/** What the restored database replaced; null where there was nothing. */
export interface Previous {
  readonly database: string | null;
  /** The folder of samples that had not reached the previous database. */
  readonly spool: string | null;
}

/**
 * Swaps the database for a restored one. If this is interrupted at any point, the next start finds either the previous or the restored
 * database, complete. SQLite would apply an existing log (-wal) to the restored database, so the log is first checkpointed into the
 * previous one. The previous one then gets a second name, and one rename gives the first name to the restored one. Samples in the
 * spool belong to the previous one, so they are moved beside it before the rename. `rollback` receives how to undo each step,
 * including a step that throws.
 */
export async function swapDatabase(options: SwapOptions, rollback: Rollback): Promise<Previous> {
  const { dataFolder, onStep = () => undefined, restored, runtimeFolders, stamp } = options;
  const database = join(dataFolder, DATABASE_FILE);
  const log = `${database}-wal`;
  const previous = `${database}.previous-${stamp}`;
  const previousSpool = `${previous}-spool`;
  const present = await stat(database).catch(() => null);
  let isUsable = true;
  if (present) {
    await removeAliases(dataFolder, present.ino);
    onStep('fold in the log');
    isUsable = foldedIn(database);
    onStep('second name');
    rollback.unshift(() => rm(previous, { force: true }));
    await linkOrCopy(database, previous);
  }
  await chmod(restored, (present?.mode ?? FILE_MODE) & 0o777);
  const segments = await spoolSegments(dataFolder, runtimeFolders);
  if (segments.length > 0) {
    rollback.unshift(() => returnSegments(segments, previousSpool));
    await mkdir(previousSpool, { mode: FOLDER_MODE });
    for (const segment of segments) await copyDurably(segment, join(previousSpool, basename(segment)));
    await sync(previousSpool);
  }
  // Only a damaged database still has a log here.
  if (!isUsable && (await exists(log))) {
    rollback.unshift(async () => (await exists(`${previous}-wal`)) && returnFile(`${previous}-wal`, log));
    await linkOrCopy(log, `${previous}-wal`);
  }
  await sync(dataFolder);
  for (const segment of segments) {
    onStep('spool');
    await rm(segment);
  }
  for (const suffix of ['-wal', '-shm']) {
    onStep(`no ${suffix}`);
    await rm(database + suffix, { force: true });
  }
  onStep('swap');
  rollback.unshift(() => returnDatabase(database, present && previous));
  await rename(restored, database);
  onStep('done');
  await sync(dataFolder);
  return { database: present && previous, spool: segments.length > 0 ? previousSpool : null };
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

async function copyDurably(from: string, to: string): Promise<void> {
  await copyFile(from, to);
  await sync(to);
}

/** Creates a second name for a file, or a copy if the file system has no hard links. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch((error: NodeJS.ErrnoException) => {
    if (!NO_LINKS.includes(error.code ?? '')) throw error;
    return copyDurably(from, to);
  });
}

/** Removes second names that an interrupted run gave to the database that is still in place, because writes to it would change them too. */
async function removeAliases(dataFolder: string, ino: number): Promise<void> {
  for (const name of await readdir(dataFolder)) {
    const path = join(dataFolder, name);
    if (name.startsWith(`${DATABASE_FILE}.previous-`) && (await stat(path)).ino === ino) await rm(path);
  }
}

/** Checkpoints the log into the database. Returns false if the database is damaged. */
function foldedIn(database: string): boolean {
  try {
    foldInLog(database);
    return true;
  } catch (error) {
    if (DAMAGE.includes(((error as { errcode?: number }).errcode ?? 0) % 256)) return false;
    throw error;
  }
}

/** The files of the spool, in each of its possible locations. */
async function spoolSegments(dataFolder: string, runtimeFolders: readonly string[]): Promise<string[]> {
  const inMemory = spoolInMemory(dataFolder, process.getuid?.() ?? 0);
  const segments: string[] = [];
  for (const folder of [...runtimeFolders.map(spoolInRuntimeFolder), inMemory, spoolBesideDatabase(dataFolder)]) {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    segments.push(...entries.filter((entry) => entry.isFile() && SEGMENT.test(entry.name)).map(({ name }) => join(folder, name)));
  }
  return segments;
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

/** The restored database may have been used and have a log by now, which must not be applied to the previous one. */
async function returnDatabase(database: string, previous: string | null): Promise<void> {
  if (await exists(database)) foldedIn(database);
  for (const suffix of ['-wal', '-shm']) await rm(database + suffix, { force: true });
  if (previous === null) await rm(database, { force: true });
  else await rename(previous, database);
  await sync(dirname(database));
}
