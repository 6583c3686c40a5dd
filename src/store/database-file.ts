import { closeSync, openSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { isoUtc } from '../core/time.ts';
import { checkStillThere, isDamage, openDatabase, setAside, standInDatabase } from './database.ts';

export interface DatabaseFileOptions {
  readonly path: string;
  readonly nowMs: () => number;
  /** Told when a database was set aside, at the start or later. */
  readonly onSetAside: (path: string, reason: string) => void;
}

/** What lives in the database, and goes from one to the next. */
export interface DatabaseUser {
  /** Goes on with another database, of which nothing was read yet. The one before is closed. */
  use(db: DatabaseSync): void;
  /** Reads of a database just opened what is kept in memory; throws when it is damaged. */
  load(): void;
  /** An open database is about to be given up for another: keeps what must be in the next one, too. */
  save(): void;
}

/**
 * The database's file, of which there is always one to work on: while it cannot be opened (a full disk, no permission) an empty
 * one in memory stands in, and one that is damaged or gone gives way to a new one.
 */
export class DatabaseFile {
  readonly #options: DatabaseFileOptions;
  readonly #user: DatabaseUser;
  #db = standInDatabase();
  /** Null while the stand-in serves. */
  #inode: number | null = null;
  /** Of the log beside it; null: not seen yet. */
  #logInode: number | null = null;
  /** The file, to look at while SQLite has it for itself. */
  #descriptor: number | null = null;
  #closedBecause = 'not tried yet';

  constructor(options: DatabaseFileOptions, user: DatabaseUser) {
    this.#options = options;
    this.#user = user;
  }

  /** The database, or what stands in for it. */
  get db(): DatabaseSync {
    return this.#db;
  }

  /** Whether it is the database itself. */
  get isOpen(): boolean {
    return this.#inode !== null;
  }

  /** Why it is not, as an error to throw. */
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
        this.#leave();
        throw error;
      }
      this.replaceDamaged((error as Error).message);
    }
  }

  /** Sets the database aside and goes on with a new one. */
  replaceDamaged(reason: string): void {
    if (this.isOpen) this.#user.save();
    this.#leave();
    const target = setAside(this.#options.path, this.#options.nowMs());
    this.#options.onSetAside(target, reason);
    this.#openOnce();
    this.#user.load();
  }

  /** A database deleted or replaced under us would be written to in vain, and so would the log beside it. */
  reopenIfGone(): void {
    const { path, nowMs, onSetAside } = this.#options;
    const inode = inodeOf(path);
    if (inode !== null && inode === this.#inode) {
      if (this.#descriptor !== null) checkStillThere(this.#descriptor);
      this.#reopenIfLogIsGone();
      return;
    }
    if (this.isOpen) {
      this.#user.save();
      this.#leave();
      // Its side files would be taken for the next one's.
      setAside(path, nowMs(), ['-wal', '-shm']);
      onSetAside('(removed)', `the database was removed or replaced at ${isoUtc(nowMs())}`);
    }
    this.open();
  }

  /** What only a removed log has would go with this process. Closing the database brings it into the file; opening begins a new log. */
  #reopenIfLogIsGone(): void {
    const inode = inodeOf(`${this.#options.path}-wal`);
    if (this.#logInode === null || inode === this.#logInode) {
      this.#logInode = inode;
      return;
    }
    this.#leave();
    this.open();
  }

  /** Runs `work`; when it meets a damaged database, that one is set aside and the work done once more, or `again`, on a new one. */
  guard<T>(work: () => T, again: () => T = work): T {
    try {
      return work();
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.replaceDamaged((error as Error).message);
      return again();
    }
  }

  /** All of the work or nothing; `undone` forgets what memory holds of it. */
  transaction(work: () => void, undone: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#db.exec('COMMIT');
    } catch (error) {
      try {
        if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
        undone();
      } catch {
        // The error that brought us here says more.
      }
      throw error;
    }
  }

  close(): void {
    this.#db.close();
    this.#closeDescriptor();
  }

  #openOnce(): void {
    const { path, nowMs, onSetAside } = this.#options;
    const opened = openDatabase(path, nowMs());
    if (opened.setAside) onSetAside(opened.setAside.path, opened.setAside.reason);
    this.#use(opened.db);
    this.#descriptor = openSync(path, 'r');
    this.#inode = statSync(path).ino;
    this.#logInode = inodeOf(`${path}-wal`);
  }

  #use(db: DatabaseSync): void {
    try {
      this.#db.close();
    } catch {
      // Damaged or gone; there is nothing left to close properly.
    }
    this.#closeDescriptor();
    this.#db = db;
    this.#user.use(db);
  }

  /** Closes the database and stands in for it. */
  #leave(): void {
    this.#inode = null;
    this.#use(standInDatabase());
  }

  #closeDescriptor(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }
}

/** Null: there is no such file. */
function inodeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
}
