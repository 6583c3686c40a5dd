import { DatabaseSync } from 'node:sqlite';

/** SQLITE_BUSY, without what its extended codes add. */
const BUSY = 5;

/**
 * Takes a lock for this process until it is closed; null: somebody has it. An exclusive transaction on an empty SQLite file is a
 * kernel lock: it is gone with the process however that ends, holds across containers, and leaves no stale file.
 */
export function takeLock(file: string): DatabaseSync | null {
  const db = new DatabaseSync(file, { timeout: 0 });
  try {
    db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE'); // A journal file would need room on the disk.
    return db;
  } catch (error) {
    db.close();
    if (((error as { errcode?: number }).errcode ?? 0) % 256 === BUSY) return null;
    throw error;
  }
}

/** Takes the data folder for this process, or throws DataFolderInUse. */
export function lockDataFolder(folder: string): DatabaseSync {
  const lock = takeLock(`${folder}/lock`);
  if (!lock) throw new DataFolderInUse(folder);
  return lock;
}

export class DataFolderInUse extends Error {
  override readonly name = 'DataFolderInUse';

  constructor(folder: string) {
    super(`another edge-health is using the data folder ${folder}; stop that one, or set another storage.path`);
  }
}
