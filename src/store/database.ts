import { accessSync, closeSync, constants, existsSync, lstatSync, openSync, readSync, renameSync, rmSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { isoUtc } from '../core/time.ts';

/** "EdgH": how a database of ours is told from any other SQLite file. */
export const APPLICATION_ID = 0x45646748;
export const SCHEMA_VERSION = 3;
const TABLES = ['node', 'rate', 'raw', 'minute', 'hour', 'episode', 'alert_change', 'clock_event', 'shutdown_request', 'lag'];
/**
 * Rows are few and written rarely, to spare flash: `raw` gets one blob a minute and node (chunk.ts), `minute` and `hour`
 * one blob an hour and node (summary-codec.ts). Only alerts and what is as rare have a row of their own each.
 */
const SCHEMA = `
-- gathered: its samples came from another machine.
CREATE TABLE node (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, gathered INTEGER NOT NULL DEFAULT 0);
CREATE TABLE rate (node_id INTEGER NOT NULL, since_ms INTEGER NOT NULL, hertz REAL NOT NULL, PRIMARY KEY (node_id, since_ms)) WITHOUT ROWID;
CREATE TABLE raw (
  node_id INTEGER NOT NULL, from_ms INTEGER NOT NULL, segment INTEGER NOT NULL, to_ms INTEGER NOT NULL, samples BLOB NOT NULL,
  PRIMARY KEY (node_id, from_ms, segment)
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
  -- When it was recorded, as a place among all records.
  segment INTEGER NOT NULL DEFAULT 0, ordinal INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (changed_ms, alert_id, severity, resolved)
) WITHOUT ROWID;
CREATE INDEX alert_change_by_record ON alert_change (segment, ordinal);
CREATE TABLE clock_event (timestamp_ms INTEGER NOT NULL, kind TEXT NOT NULL, delta_seconds REAL NOT NULL, PRIMARY KEY (timestamp_ms, kind)) WITHOUT ROWID;
CREATE TABLE shutdown_request (
  accepted INTEGER NOT NULL, request_id TEXT NOT NULL, ended INTEGER NOT NULL, document TEXT NOT NULL,
  PRIMARY KEY (accepted, request_id)
) WITHOUT ROWID;
CREATE TABLE lag (node_id INTEGER NOT NULL, segment INTEGER NOT NULL, lag_ms INTEGER NOT NULL, PRIMARY KEY (node_id, segment, lag_ms)) WITHOUT ROWID;
`;

export interface OpenedDatabase {
  readonly db: DatabaseSync;
  /** Where a database that could not be used was put, and why; null when there was none or it was ours and whole. */
  readonly setAside: { readonly path: string; readonly reason: string } | null;
}

const CORRUPT = 11;
const NOT_A_DATABASE = 26;
/** SQLITE_IOERR_SHORT_READ: the file ends before a page that it should have. A disk that cannot be read has another code. */
const SHORT_READ = 522;

/** Whether an error says that the file's content is broken, as opposed to a full disk, a lock or a mistake of ours. */
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

/** Looks at the header, and at the length that it tells against the file's: SQLite itself notices only when it gets there. */
function checkFile(path: string): void {
  // A pipe would be opened when somebody writes to it, which may be never.
  if (!statSync(path).isFile()) throw new Unusable('not a file');
  // SQLite would open it read-only, and say no more than "disk I/O error" later.
  accessSync(path, constants.R_OK | constants.W_OK);
  const header = Buffer.alloc(100);
  const descriptor = openSync(path, 'r');
  const length = readSync(descriptor, header, 0, 100, 0);
  closeSync(descriptor);
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
 * Whether an open database's file still begins as one. SQLite has it for itself and trusts what it holds in memory, so that it would not notice.
 * `descriptor` must stay open as long as the database: closing any descriptor of the file gives up its locks.
 */
export function checkStillThere(descriptor: number): void {
  const start = Buffer.alloc(MAGIC.length);
  readSync(descriptor, start, 0, start.length, 0);
  if (start.toString('latin1') !== MAGIC) throw new Unusable('overwritten or emptied while in use');
}

/** Makes the tables in an empty database; all of them or none. */
export function createSchema(db: DatabaseSync): void {
  db.exec(`BEGIN; ${SCHEMA} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
}

function open(path: string): DatabaseSync {
  const existing = existsSync(path);
  if (existing) checkFile(path);
  const db = new DatabaseSync(path, { timeout: 2000 });
  try {
    // The index of the log then lies in this process's memory. Shared with other readers it is a file, of which each commit
    // touches three blocks: 17 MB a day. It also needs no room on a full disk.
    db.exec('PRAGMA locking_mode = EXCLUSIVE');
    const tables = (db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as { name: string }[]).map(({ name }) => name);
    if (tables.length > 0) {
      const version = pragma(db, 'user_version');
      if (pragma(db, 'application_id') !== APPLICATION_ID) throw new Unusable('a database of another program');
      if (version !== SCHEMA_VERSION) {
        throw new Unusable(`written by another version (schema ${version}, this one reads ${SCHEMA_VERSION})`);
      }
      const missing = TABLES.filter((table) => !tables.includes(table));
      if (missing.length > 0) throw new Unusable(`without its tables ${missing.join(', ')}`);
    }
    // Both must be set before the first table exists. A commit writes whole pages, of which a minute fills a fifth: with pages
    // of 4096 bytes a day at 1 Hz would cost flash a third more.
    if (tables.length === 0) db.exec('PRAGMA page_size = 2048; PRAGMA auto_vacuum = INCREMENTAL');
    // FULL makes a commit outlast a power cut.
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -1024; PRAGMA journal_size_limit = 4194304');
    if (tables.length === 0) createSchema(db);
    // Touches both ends of every tree, where a torn or overwritten file is most likely to show.
    for (const table of TABLES) db.exec(`SELECT 1 FROM ${table} LIMIT 1`);
    return db;
  } catch (error) {
    db.close();
    // A full disk: the beginnings of a new database hold nothing, and would be taken for a damaged one.
    // Not so a link to where nothing can be made yet: whoever laid it wants it.
    if (!existing && !lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) {
      for (const suffix of WITH_SIDE_FILES) rmSync(path + suffix, { force: true });
    }
    throw error;
  }
}

/** Renames the database and its side files to `<name>.set-aside-<time>`, so that nothing is lost and the name is free. */
export function setAside(path: string, nowMs: number, suffixes: readonly string[] = WITH_SIDE_FILES): string {
  const stamp = isoUtc(nowMs).replaceAll(/[-:]|\.\d+/g, '');
  let target = `${path}.set-aside-${stamp}`;
  for (let n = 2; WITH_SIDE_FILES.some((suffix) => existsSync(target + suffix)); n += 1) target = `${path}.set-aside-${stamp}-${n}`;
  for (const suffix of suffixes) {
    if (existsSync(path + suffix)) renameSync(path + suffix, target + suffix);
  }
  return target;
}

/** An empty database in memory, to stand in while the real one cannot be opened. */
export function standInDatabase(): DatabaseSync {
  const db = new DatabaseSync(':memory:');
  createSchema(db);
  return db;
}

/**
 * Opens the database, or makes it. One that is damaged, or of another program or version, is quarantined and a new one created; other errors
 * (no permission, no space, a lock) are thrown.
 */
export function openDatabase(path: string, nowMs: number): OpenedDatabase {
  try {
    return { db: open(path), setAside: null };
  } catch (error) {
    if (!isDamage(error)) throw error;
    const reason = (error as Error).message;
    const target = setAside(path, nowMs);
    return { db: open(path), setAside: { path: target, reason } };
  }
}

/** Pages in the log beside the database, those included that were checkpointed since it began. */
export function pagesOfLog(db: DatabaseSync): number {
  return Math.max(0, (db.prepare('PRAGMA wal_checkpoint(NOOP)').get() as { log: number }).log);
}

/** The database's size in bytes, and how much of it is free for reuse. */
export function sizeOf(db: DatabaseSync): { totalBytes: number; freeBytes: number } {
  const pageSize = pragma(db, 'page_size');
  return { totalBytes: pragma(db, 'page_count') * pageSize, freeBytes: pragma(db, 'freelist_count') * pageSize };
}
