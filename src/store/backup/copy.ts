import { closeSync, fdatasyncSync, openSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { sizeOf } from '../database/database.ts';

/** Half a megabyte per step, at 2048 bytes per page. Each step is synced to the disk, and other requests are served between steps. */
const PAGES_PER_STEP = 256;
/**
 * A rollback makes SQLite restart the backup, and a step during a transaction copies nothing. More steps without progress than this (plus
 * one per copied piece) mean that writers starve the backup.
 */
const MAX_STEPS_WITHOUT_PROGRESS = 1000;
/** Interval between attempts to begin. */
const RETRY_MS = 5;
/** Space that must stay free, so that a copy never fills the disk: this much, at most a tenth of the disk. */
const RESERVE_BYTES = 100_000_000;

/** The error's name; only name and message cross the thread boundary. */
export const NOT_ENOUGH_SPACE = 'NotEnoughSpaceForCopy';

class NotEnoughSpace extends Error {
  override readonly name = NOT_ENOUGH_SPACE;

  constructor(folder: string, copyBytes: number, reserveBytes: number, freeBytes: number) {
    const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1);
    super(
      `${megabytes(copyBytes + reserveBytes)} MB must be free on the disk of ${folder} (${megabytes(copyBytes)} MB for the copy, ${megabytes(reserveBytes)} MB that stay free), but ${megabytes(freeBytes)} MB are; remove files, or lower storage.max_megabytes`,
    );
  }
}

interface CopyOptions {
  /** An existing empty file, which is filled and then unlinked. */
  readonly path: string;
  /** Checked after each step; false ends the copy with an error. */
  readonly isWanted: () => boolean;
  /** Called after each step. */
  readonly onPiece: () => void;
  readonly reserveBytes?: number;
}

const SIDE_FILES = ['-journal', '-wal', '-shm'];

/**
 * Copies an open database step by step with SQLite's backup API; changes made meanwhile are in the copy. Every step is synced, because
 * the final step holds a lock on the database and must not wait for all data to reach the disk. Rejects when there is not enough disk
 * space or `isWanted` returns false.
 */
export async function copyDatabase(db: DatabaseSync, { path, isWanted, onPiece, reserveBytes: reserve }: CopyOptions): Promise<void> {
  const folder = dirname(path);
  const freeBytes = (): number => {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  };
  const { blocks, bsize } = statfsSync(folder);
  const reserveBytes = reserve ?? Math.min(RESERVE_BYTES, (blocks * bsize) / 10);
  const { totalBytes } = sizeOf(db);
  const notEnoughSpace = (): NotEnoughSpace => new NotEnoughSpace(folder, totalBytes, reserveBytes, freeBytes());
  let leastRemaining = Number.POSITIVE_INFINITY;
  let stepsWithoutProgress = 0;
  const checkWanted = (): void => {
    if (!isWanted()) throw new Error('the database was closed or replaced while it was copied; try again');
  };
  const checkProgress = (most: number): void => {
    if (stepsWithoutProgress > most) throw new Error('the database changes too fast to be copied; try again');
  };
  const copy = (): Promise<number> =>
    backup(db, path, {
      rate: PAGES_PER_STEP,
      // An exception thrown here ends the backup.
      progress: ({ remainingPages, totalPages }) => {
        checkWanted();
        stepsWithoutProgress = remainingPages < leastRemaining ? 0 : stepsWithoutProgress + 1;
        leastRemaining = Math.min(leastRemaining, remainingPages);
        checkProgress(MAX_STEPS_WITHOUT_PROGRESS + totalPages / PAGES_PER_STEP);
        fdatasyncSync(descriptor);
        if (freeBytes() < reserveBytes / 2) throw notEnoughSpace();
        onPiece();
      },
    });
  const descriptor = openSync(path, 'r+');
  try {
    if (freeBytes() < totalBytes + reserveBytes) throw notEnoughSpace();
    while ((await copy().catch(nullIfInTransaction)) === null) {
      checkWanted();
      stepsWithoutProgress += 1;
      checkProgress(MAX_STEPS_WITHOUT_PROGRESS);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
    leaveWalMode(path);
  } catch (error) {
    throw isFull(error) ? notEnoughSpace() : error;
  } finally {
    closeSync(descriptor);
    for (const suffix of ['', ...SIDE_FILES]) rmSync(path + suffix, { force: true });
  }
}

/** Readers of a database in WAL mode need write access to its folder, so the copy is switched to journal mode DELETE. */
function leaveWalMode(path: string): void {
  const copy = new DatabaseSync(path);
  try {
    copy.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF');
    const { journal_mode: mode } = copy.prepare('PRAGMA journal_mode = DELETE').get() as { journal_mode: string };
    if (mode !== 'delete') throw new Error(`the copy stays in journal mode ${mode}`);
  } finally {
    copy.close();
  }
}

/**
 * Null if the first step coincided with a transaction of the same connection. Node retries a busy step except when the first step is to
 * copy all pages; then it fails with SQLITE_OK, "not an error".
 */
function nullIfInTransaction(error: Error & { readonly errcode?: number }): null {
  if (error.errcode === 0) return null;
  throw error;
}

/** SQLITE_FULL. */
const FULL = 13;

function isFull(error: unknown): boolean {
  return ((error as { errcode?: number }).errcode ?? 0) % 256 === FULL;
}

/** Path of the nth copy made by this process. */
export function copyPath(folder: string, n: number): string {
  return join(folder, `snapshot-${n}.tmp`);
}

/** Removes incomplete copies of a killed process. */
export function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) if (/^snapshot-\d+\.tmp(-\w+)?$/.test(name)) rmSync(join(folder, name), { force: true });
}
