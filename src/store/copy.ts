import { closeSync, fdatasyncSync, openSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { sizeOf } from './database.ts';

/** Half a megabyte of our own pages: so much is copied and brought to the disk in one go; others are served between. */
const PAGES_AT_ONCE = 256;
/** A change that is rolled back has SQLite begin once more, and within one nothing is copied. So many vain pieces beyond that are no accident. */
const VAIN_PIECES = 1000;
/** Between two tries to begin. */
const AGAIN_MS = 5;
/** What stays free on the disk, so that a copy is never what fills it. */
const RESERVE_BYTES = 100_000_000;

/** As the error's name goes from thread to thread. */
export const NO_ROOM = 'NoRoomForCopy';

class NoRoom extends Error {
  override readonly name = NO_ROOM;

  constructor(folder: string, copyBytes: number, reserveBytes: number, freeBytes: number) {
    const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1);
    super(
      `${megabytes(copyBytes + reserveBytes)} MB must be free on the disk of ${folder} (${megabytes(copyBytes)} MB for the copy, ${megabytes(reserveBytes)} MB that stay free), but ${megabytes(freeBytes)} MB are; remove files, or lower storage.max_megabytes`,
    );
  }
}

export interface CopyOptions {
  /** Of an empty file, which is filled; its name is taken away in the end. */
  readonly path: string;
  /** Asked after each piece: whether to go on. */
  readonly isWanted: () => boolean;
  /** Told after each piece. */
  readonly onPiece: () => void;
  readonly reserveBytes?: number;
}

const SIDE_FILES = ['-journal', '-wal', '-shm'];

/**
 * Copies an open database in pieces by SQLite's own backup: what is written meanwhile is in the copy, too. The pieces are brought
 * to the disk as they come: the end, for which SQLite has the database locked, must not wait for all of them. Rejects when there is
 * no room for it, or it is not wanted any more.
 */
export async function copyDatabase(
  db: DatabaseSync,
  { path, isWanted, onPiece, reserveBytes = RESERVE_BYTES }: CopyOptions,
): Promise<void> {
  const folder = dirname(path);
  const freeBytes = (): number => {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  };
  const { totalBytes } = sizeOf(db);
  const noRoom = (): NoRoom => new NoRoom(folder, totalBytes, reserveBytes, freeBytes());
  let leastRemaining = Number.POSITIVE_INFINITY;
  let vain = 0;
  const checkWanted = (): void => {
    if (!isWanted()) throw new Error('the database was closed or replaced while it was copied; try again');
  };
  const checkVain = (most: number): void => {
    if (vain > most) throw new Error('the database changes too fast to be copied; try again');
  };
  const copy = (): Promise<number> =>
    backup(db, path, {
      rate: PAGES_AT_ONCE,
      // Thrown here, it ends the backup.
      progress: ({ remainingPages, totalPages }) => {
        checkWanted();
        vain = remainingPages < leastRemaining ? 0 : vain + 1;
        leastRemaining = Math.min(leastRemaining, remainingPages);
        checkVain(VAIN_PIECES + totalPages / PAGES_AT_ONCE);
        fdatasyncSync(descriptor);
        if (freeBytes() < reserveBytes / 2) throw noRoom();
        onPiece();
      },
    });
  const descriptor = openSync(path, 'r+');
  try {
    if (freeBytes() < totalBytes + reserveBytes) throw noRoom();
    while ((await copy().catch(unlessInChange)) === null) {
      checkWanted();
      vain += 1;
      checkVain(VAIN_PIECES);
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
    endLog(path);
  } catch (error) {
    throw isFull(error) ? noRoom() : error;
  } finally {
    closeSync(descriptor);
    for (const suffix of ['', ...SIDE_FILES]) rmSync(path + suffix, { force: true });
  }
}

/** A database with a write-ahead log, as ours is, could only be read by who may write beside it. */
function endLog(path: string): void {
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
 * Null where the first piece came within a change of the same connection: Node waits for the end of it at any other piece, but takes a first
 * one that is told to wait for the last, and fails with SQLITE_OK, "not an error".
 */
function unlessInChange(error: Error & { readonly errcode?: number }): null {
  if (error.errcode === 0) return null;
  throw error;
}

/** SQLITE_FULL. */
const FULL = 13;

function isFull(error: unknown): boolean {
  return ((error as { errcode?: number }).errcode ?? 0) % 256 === FULL;
}

/** Where the nth copy of this process is made. */
export function copyPath(folder: string, n: number): string {
  return join(folder, `snapshot-${n}.tmp`);
}

/** Removes what a killed process left of its copies. */
export function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) if (/^snapshot-\d+\.tmp(-\w+)?$/.test(name)) rmSync(join(folder, name), { force: true });
}
