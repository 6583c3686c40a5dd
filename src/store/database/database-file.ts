import { closeSync, openSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { isoUtc } from '../../core/time/time.ts';
import { checkStillThere, isDamage, openDatabase, quarantined, standInDatabase } from './database.ts';

export interface DatabaseFileOptions {
  readonly path: string;
  readonly nowMs: () => number;
  /** Called when a database was quarantined, at the start or later. */
  readonly onQuarantined: (path: string, reason: string) => void;
}

/** The tables' owner, which moves from one database to the next. */
export interface DatabaseUser {
  /** Switches to another database, before anything is read from it. The previous one is closed. */
  use(db: DatabaseSync): void;
  /** Loads the in-memory state from a database just opened; throws when it is damaged. */
  load(): void;
  /** Called before an open database is replaced: saves in memory what the next one must contain. */
  save(): void;
}

/**
 * The database's file. A database is always available: while the file cannot be opened (disk full, no permission) an empty in-memory
 * database stands in, and a damaged or deleted file is replaced by a new one.
 */
export class DatabaseFile {
  readonly #options: DatabaseFileOptions;
  readonly #user: DatabaseUser;
  #db = standInDatabase();
  /** Null while the in-memory database stands in. */
  #inode: number | null = null;
  /** Inode of the write-ahead log; null: not created yet. */
  #logInode: number | null = null;
  /** Reads the file's header although SQLite holds an exclusive lock. */
  #descriptor: number | null = null;
  #closedBecause = 'not tried yet';

  constructor(options: DatabaseFileOptions, user: DatabaseUser) {
    this.#options = options;
    this.#user = user;
  }

  /** The database or the in-memory stand-in. */
  get db(): DatabaseSync {
    return this.#db;
  }

  /** Whether `db` is the real database. */
  get isOpen(): boolean {
    return this.#inode !== null;
  }

  /** An error with the reason why the database is not open. */
  notOpen(): Error {
    return new Error(`the database is not open: ${this.#closedBecause}`);
  }

  /** Opens the database; throws when that is impossible for now. */
  open(): void {
    try {
      this.#openOnce();
    } catch (error) {
      this.#closedBecause = (error as Error).message;
      throw error;
    }
    try {
      this.#user.load();
    } catch (error) {
      if (!isDamage(error)) {
        this.#switchToStandIn();
        throw error;
      }
      this.replaceDamaged((error as Error).message);
    }
  }

  /** Quarantines the database and continues with a new one. */
  replaceDamaged(reason: string): void {
    if (this.isOpen) this.#user.save();
    this.#switchToStandIn();
    const target = quarantined(this.#options.path, this.#options.nowMs());
    this.#options.onQuarantined(target, reason);
    this.#openOnce();
    this.#user.load();
  }

  /** Reopens a database that was deleted or replaced; writes to the old inode would be lost. The same holds for its log. */
  reopenIfDeleted(): void {
    const { path, nowMs, onQuarantined } = this.#options;
    const inode = inodeOf(path);
    if (inode !== null && inode === this.#inode) {
      if (this.#descriptor !== null) checkStillThere(this.#descriptor);
      this.#reopenIfLogDeleted();
      return;
    }
    if (this.isOpen) {
      this.#user.save();
      this.#switchToStandIn();
      // SQLite would apply the old side files to the new database.
      quarantined(path, nowMs(), ['-wal', '-shm']);
      onQuarantined('(removed)', `the database was removed or replaced at ${isoUtc(nowMs())}`);
    }
    this.open();
  }

  /**
   * Data in a deleted log would be lost with this process. Closing the database checkpoints it into the file; opening creates a new log.
   */
  #reopenIfLogDeleted(): void {
    const inode = inodeOf(`${this.#options.path}-wal`);
    if (this.#logInode === null || inode === this.#logInode) {
      this.#logInode = inode;
      return;
    }
    this.#switchToStandIn();
    this.open();
  }

  /** Runs `work`. If it meets damage, the database is quarantined and `again` (`work` by default) runs on a new one. */
  guard<T>(work: () => T, again: () => T = work): T {
    try {
      return work();
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.replaceDamaged((error as Error).message);
      return again();
    }
  }

  /** Runs `work` in a transaction; after a rollback `onRollback` resets the in-memory state. */
  transaction(work: () => void, onRollback: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#db.exec('COMMIT');
    } catch (error) {
      try {
        if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
        onRollback();
      } catch {
        // The original error is more useful.
      }
      throw error;
    }
  }

  close(): void {
    this.#db.close();
    this.#closeDescriptor();
  }

  #openOnce(): void {
    const { path, nowMs, onQuarantined } = this.#options;
    const opened = openDatabase(path, nowMs());
    if (opened.quarantined) onQuarantined(opened.quarantined.path, opened.quarantined.reason);
    this.#switchTo(opened.db);
    this.#descriptor = openSync(path, 'r');
    this.#inode = statSync(path).ino;
    this.#logInode = inodeOf(`${path}-wal`);
  }

  #switchTo(db: DatabaseSync): void {
    try {
      this.#db.close();
    } catch {
      // The database is damaged or deleted; nothing is left to close properly.
    }
    this.#closeDescriptor();
    this.#db = db;
    this.#user.use(db);
  }

  /** Closes the database and switches to the in-memory stand-in. */
  #switchToStandIn(): void {
    this.#inode = null;
    this.#switchTo(standInDatabase());
  }

  #closeDescriptor(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }
}

/** Null: the file does not exist. */
function inodeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
}
