import { DatabaseSync } from 'node:sqlite';

/** SQLITE_BUSY, without what its extended codes add. */
const BUSY = 5;

/**
 * Takes the data folder for this process, or throws DataFolderInUse. An exclusive transaction on an empty SQLite file is a
 * kernel lock: it is gone with the process however that ends, holds across containers, and leaves no stale file.
 */
export function lockDataFolder(folder: string): DatabaseSync {
  const db = new DatabaseSync(`${folder}/lock`, { timeout: 0 });
  try {
    db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE'); // A journal file would need room on the disk.
    return db;
  } catch (error) {
    db.close();
    throw ((error as { errcode?: number }).errcode ?? 0) % 256 === BUSY ? new DataFolderInUse(folder) : error;
  }
}

export class DataFolderInUse extends Error {
  override readonly name = 'DataFolderInUse';

  constructor(folder: string) {
    super(`another edge-health is using the data folder ${folder}; stop that one, or set another storage.path`);
  }
}
