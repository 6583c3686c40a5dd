import { accessSync, closeSync, constants, existsSync, lstatSync, openSync, readSync, renameSync, rmSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { isoUtc } from '../../core/time/time.ts';

/** "EdgH": identifies the databases of this program among other SQLite files. */
export const APPLICATION_ID = 0x45646748;
export const SCHEMA_VERSION = 6;
const TABLES = ['node', 'rate', 'raw', 'raw_hour', 'minute', 'hour', 'episode', 'alert_change', 'clock_event', 'shutdown_request'];
/**
 * Few rows are written, and rarely, to spare flash: `raw` has one blob per minute and node (chunk.ts), in order of arrival, so that the
 * blobs of all nodes share pages; `minute` and `hour` have one blob per hour and node (summary-codec.ts). Only rare records such as alerts
 * have one row each.
 */
const SCHEMA = `
-- remote: its samples came from another machine.
CREATE TABLE node (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, remote INTEGER NOT NULL);
CREATE TABLE rate (node_id INTEGER NOT NULL, since_ms INTEGER NOT NULL, hertz REAL NOT NULL, PRIMARY KEY (node_id, since_ms)) WITHOUT ROWID;
CREATE TABLE raw (
  segment INTEGER NOT NULL, node_id INTEGER NOT NULL, from_ms INTEGER NOT NULL, to_ms INTEGER NOT NULL, samples BLOB NOT NULL,
  PRIMARY KEY (segment, node_id, from_ms)
) WITHOUT ROWID;
-- last_segment: null while samples of the hour arrive.
CREATE TABLE raw_hour (
  hour_ms INTEGER NOT NULL, node_id INTEGER NOT NULL, first_segment INTEGER NOT NULL, last_segment INTEGER,
  PRIMARY KEY (hour_ms, node_id)
) WITHOUT ROWID;
CREATE TABLE minute (node_id INTEGER NOT NULL, hour_ms INTEGER NOT NULL, summaries BLOB NOT NULL, PRIMARY KEY (node_id, hour_ms)) WITHOUT ROWID;
CREATE TABLE hour (node_id INTEGER NOT NULL, hour_ms INTEGER NOT NULL, summary BLOB NOT NULL, PRIMARY KEY (node_id, hour_ms)) WITHOUT ROWID;
CREATE TABLE episode (
  alert_id TEXT PRIMARY KEY, node TEXT NOT NULL, metric TEXT NOT NULL, severity TEXT NOT NULL, value REAL, threshold REAL,
  raised_ms INTEGER NOT NULL, changed_ms INTEGER NOT NULL, resolved INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX episode_by_change ON episode (changed_ms DESC, alert_id);
CREATE INDEX episode_open ON episode (resolved) WHERE resolved = 0;
CREATE TABLE alert_change (
  alert_id TEXT NOT NULL, changed_ms INTEGER NOT NULL, node TEXT NOT NULL, metric TEXT NOT NULL, severity TEXT NOT NULL,
  value REAL, threshold REAL, resolved INTEGER NOT NULL,
  -- The cursor of its record.
  segment INTEGER NOT NULL, sequence INTEGER NOT NULL,
  PRIMARY KEY (changed_ms, alert_id, severity, resolved)
) WITHOUT ROWID;
CREATE INDEX alert_change_by_record ON alert_change (segment, sequence);
CREATE TABLE clock_event (timestamp_ms INTEGER NOT NULL, kind TEXT NOT NULL, delta_seconds REAL NOT NULL, PRIMARY KEY (timestamp_ms, kind)) WITHOUT ROWID;
CREATE TABLE shutdown_request (
  accepted INTEGER NOT NULL, request_id TEXT NOT NULL, ended INTEGER NOT NULL, document TEXT NOT NULL,
  PRIMARY KEY (accepted, request_id)
) WITHOUT ROWID;
`;

interface OpenedDatabase {
  readonly db: DatabaseSync;
  /** Path of a quarantined database and the reason; null when there was none. */
  readonly quarantined: { readonly path: string; readonly reason: string } | null;
}

const CORRUPT = 11;
const NOT_A_DATABASE = 26;
/** SQLITE_IOERR_SHORT_READ: the file is shorter than its header states. An unreadable disk has another code. */
const SHORT_READ = 522;

/** Whether an error means that the file's content is damaged, as opposed to a full disk, a lock or a bug. */
export function isDamage(error: unknown): boolean {
  const code = (error as { errcode?: number }).errcode;
  return code !== undefined && ((code & 0xff) === CORRUPT || (code & 0xff) === NOT_A_DATABASE || code === SHORT_READ);
}

const WITH_SIDE_FILES = ['', '-wal', '-shm'];

class Unusable extends Error {
  readonly errcode = NOT_A_DATABASE;
}

const MAGIC = 'SQLite format 3\0';

function pragma(db: DatabaseSync, name: string): number {
  const row = db.prepare(`PRAGMA ${name}`).get() as Record<string, number>;
  return Number(Object.values(row)[0]);
}

/** Checks the header, and the size in it against the file's size: SQLite itself detects a mismatch only when it reads the missing part. */
function checkFile(path: string): void {
  // Opening a FIFO would block until it has a writer, possibly forever.
  if (!statSync(path).isFile()) throw new Unusable('not a file');
  // SQLite would open it read-only and later report only "disk I/O error".
  accessSync(path, constants.R_OK | constants.W_OK);
  const header = Buffer.alloc(100);
  const descriptor = openSync(path, 'r');
  let length: number;
  try {
    length = readSync(descriptor, header, 0, 100, 0);
  } finally {
    closeSync(descriptor);
  }
  if (length === 0) throw new Unusable('empty file');
  if (length < 100 || header.toString('latin1', 0, MAGIC.length) !== MAGIC) throw new Unusable('not a database');
  const pageSize = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16);
  const pages = header.readUInt32BE(28);
  const walBytes = existsSync(`${path}-wal`) ? statSync(`${path}-wal`).size : 0;
  if (walBytes === 0 && statSync(path).size < pages * pageSize) {
    throw new Unusable(`truncated: ${statSync(path).size} of ${pages * pageSize} bytes`);
  }
}

/**
 * Checks that an open database's file still has its header. SQLite holds an exclusive lock and reads from its page cache, so it would not
 * detect that. `descriptor` must stay open as long as the database: closing any descriptor of the file releases its POSIX locks.
 */
function checkStillThere(descriptor: number): void {
  const start = Buffer.alloc(MAGIC.length);
  readSync(descriptor, start, 0, start.length, 0);
  if (start.toString('latin1') !== MAGIC) throw new Unusable('overwritten or emptied while in use');
}

/** Whether a database has exactly the tables and indexes of SCHEMA, whose text is compared: any change of it needs a new SCHEMA_VERSION. */
export function hasOwnSchema(db: DatabaseSync): boolean {
  using own = new DatabaseSync(':memory:');
  createSchema(own);
  const objectsOf = (one: DatabaseSync): string =>
    JSON.stringify(one.prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name LIMIT 100').all());
  return objectsOf(db) === objectsOf(own);
}

/** Creates the tables in an empty database in one transaction. */
function createSchema(db: DatabaseSync): void {
  db.exec(`BEGIN; ${SCHEMA} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
}

function open(path: string): DatabaseSync {
  const existing = existsSync(path);
  if (existing) checkFile(path);
  const db = new DatabaseSync(path, { timeout: 2000 });
  try {
    // The index of the log is then in this process's memory. As a shared file it costs three blocks per commit, 17 MB a day, and needs
    // space on a full disk.
    db.exec('PRAGMA locking_mode = EXCLUSIVE');
    const tables = (db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as { name: string }[]).map(({ name }) => name);
    if (tables.length > 0) {
      const version = pragma(db, 'user_version');
      if (pragma(db, 'application_id') !== APPLICATION_ID) throw new Unusable('a database of another program');
      if (version !== SCHEMA_VERSION) {
        throw new Unusable(`written by another version (schema ${version}, this version reads ${SCHEMA_VERSION})`);
      }
      const missing = TABLES.filter((table) => !tables.includes(table));
      if (missing.length > 0) throw new Unusable(`without its tables ${missing.join(', ')}`);
    }
    // Both must be set before the first table exists. A commit writes whole pages, and a minute fills a fifth of one: pages of 4096 bytes
    // would write a third more to flash per day at 1 Hz.
    if (tables.length === 0) db.exec('PRAGMA page_size = 2048; PRAGMA auto_vacuum = INCREMENTAL');
    // With FULL, commits survive a power cut.
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -1024; PRAGMA journal_size_limit = 4194304');
    if (tables.length === 0) createSchema(db);
    // Reads both ends of every B-tree, where truncation and overwriting show most often.
    for (const table of TABLES) db.exec(`SELECT 1 FROM ${table} LIMIT 1`);
    return db;
  } catch (error) {
    db.close();
    // On a full disk the incomplete new database is empty and would later count as damaged. A dangling symbolic link is kept, since the
    // user created it.
    if (!existing && !lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) {
      for (const suffix of WITH_SIDE_FILES) rmSync(path + suffix, { force: true });
    }
    throw error;
  }
}

/** Renames the database and its side files to `<name>.quarantined-<time>`: the data is kept and the name is free. */
function quarantined(path: string, nowMs: number, suffixes: readonly string[] = WITH_SIDE_FILES): string {
  const stamp = isoUtc(nowMs).replaceAll(/[-:]|\.\d+/g, '');
  let target = `${path}.quarantined-${stamp}`;
  for (let n = 2; WITH_SIDE_FILES.some((suffix) => existsSync(target + suffix)); n += 1) target = `${path}.quarantined-${stamp}-${n}`;
  for (const suffix of suffixes) {
    if (existsSync(path + suffix)) renameSync(path + suffix, target + suffix);
  }
  return target;
}

/** An empty in-memory database that stands in while the real one cannot be opened. */
export function standInDatabase(): DatabaseSync {
  const db = new DatabaseSync(':memory:');
  createSchema(db);
  return db;
}

/**
 * Opens or creates the database. A damaged one, or one of another program or version, is quarantined and a new one created; other errors
 * (no permission, no space, a lock) are thrown.
 */
export function openDatabase(path: string, nowMs: number): OpenedDatabase {
  try {
    return { db: open(path), quarantined: null };
  } catch (error) {
    if (!isDamage(error)) throw error;
    const reason = (error as Error).message;
    const target = quarantined(path, nowMs);
    return { db: open(path), quarantined: { path: target, reason } };
  }
}

/** Runs `work` in a transaction, or as part of the open one. */
export function transaction<T>(db: DatabaseSync, work: () => T): T {
  if (db.isTransaction) return work();
  db.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    try {
      if (db.isTransaction) db.exec('ROLLBACK');
    } catch {
      // The first error is more useful.
    }
    throw error;
  }
}

/** Number of pages in the write-ahead log, including checkpointed ones. */
export function pagesOfLog(db: DatabaseSync): number {
  return Math.max(0, (db.prepare('PRAGMA wal_checkpoint(NOOP)').get() as { log: number }).log);
}

/** Size of the database and its reusable free space, in bytes. */
export function sizeOf(db: DatabaseSync): { totalBytes: number; freeBytes: number } {
  const pageSize = pragma(db, 'page_size');
  return { totalBytes: pragma(db, 'page_count') * pageSize, freeBytes: pragma(db, 'freelist_count') * pageSize };
}

export interface DatabaseFileOptions {
  readonly path: string;
  readonly nowMs: () => number;
  /** Called before the file is opened or created; may throw. */
  readonly beforeOpen?: () => void;
  /** Called when a database was quarantined, at the start or later. */
  readonly onQuarantined: (path: string, reason: string) => void;
}

/** The owner of the tables, which switches from one database to the next. */
interface DatabaseUser {
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

  /** Runs `work`. If it encounters damage, the database is quarantined and `again` (`work` by default) runs on a new one. */
  guard<T>(work: () => T, again: () => T = work): T {
    try {
      return work();
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.replaceDamaged((error as Error).message);
      return again();
    }
  }

  close(): void {
    this.#db.close();
    this.#closeDescriptor();
  }

  #openOnce(): void {
    const { beforeOpen, path, nowMs, onQuarantined } = this.#options;
    beforeOpen?.();
    const opened = openDatabase(path, nowMs());
    if (opened.quarantined) onQuarantined(opened.quarantined.path, opened.quarantined.reason);
    this.#switchTo(opened.db);
    try {
      this.#descriptor = openSync(path, 'r');
      this.#inode = statSync(path).ino;
      this.#logInode = inodeOf(`${path}-wal`);
    } catch (error) {
      this.#switchToStandIn(); // Left open, this database would lock out the next attempt.
      throw error;
    }
  }

  #switchTo(db: DatabaseSync): void {
    try {
      this.#db.close();
    } catch {
      // The database is damaged or deleted, so it cannot be closed properly.
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
