import { DatabaseSync } from 'node:sqlite';

/** SQLITE_BUSY without its extended code. */
const BUSY = 5;

/**
 * Takes a lock that this process holds until it is closed; null: another process has it. An exclusive transaction on an empty SQLite file
 * is a kernel lock: the kernel releases it however the process ends, it works across containers, and it leaves no stale lock file.
 */
export function takeLock(file: string): DatabaseSync | null {
  const db = new DatabaseSync(file, { timeout: 0 });
  try {
    db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE'); // A journal file would need space on the disk.
    return db;
  } catch (error) {
    db.close();
    if (((error as { errcode?: number }).errcode ?? 0) % 256 === BUSY) return null;
    throw error;
  }
}

/** Locks the data folder for this process, or throws DataFolderInUse. */
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
