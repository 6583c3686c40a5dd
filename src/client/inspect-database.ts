import { closeSync, openSync, readSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { inflateRawSync } from 'node:zlib';
import { APPLICATION_ID, hasOwnSchema, SCHEMA_VERSION } from '../store/database/database.ts';
import { countIn, MAX_BLOB_BYTES } from '../store/samples/chunk.ts';

/** The newest schema that this version reads. */
export const NEWEST_SCHEMA = SCHEMA_VERSION;

export interface NodeFacts {
  readonly node: string;
  readonly samples: number;
  /** Times of its first and last raw sample; null: it has none. */
  readonly firstMs: number | null;
  readonly lastMs: number | null;
}

/** Contents of a database. */
export interface DatabaseFacts {
  readonly schemaVersion: number;
  readonly nodes: readonly NodeFacts[];
  readonly episodes: number;
  readonly openEpisodes: number;
  readonly alertChanges: number;
}

export interface InspectOptions {
  /** Whether to run integrity_check, which compares indexes with rows, instead of quick_check. */
  readonly thorough: boolean;
}

function numberOf(db: DatabaseSync, query: string): number {
  return Number(Object.values(db.prepare(query).get() as Record<string, number>)[0]);
}

/** Far more than the service keeps. */
const MAX_NODES = 10_000;
const MAX_NAME_BYTES = 1024;
/** Of a value or a row, and of the text of a table's definition, in bytes. */
const LIMITS = { length: 16 * 1024 * 1024, sqlLength: 64 * 1024 };

function nodesOf(db: DatabaseSync): NodeFacts[] {
  if (numberOf(db, 'SELECT count(*) FROM node') > MAX_NODES) throw new Error(`it has more than ${MAX_NODES} nodes`);
  if (numberOf(db, 'SELECT max(octet_length(name)) FROM node') > MAX_NAME_BYTES) throw new Error('it has nodes with too long names');
  const nodes = db.prepare('SELECT id, name FROM node ORDER BY name').all() as { id: number; name: string }[];
  const rows = db.prepare('SELECT from_ms, to_ms, samples FROM raw WHERE node_id = ?');
  return nodes.map(({ id, name }) => {
    let samples = 0;
    let first = Number.POSITIVE_INFINITY;
    let last = Number.NEGATIVE_INFINITY;
    for (const row of rows.iterate(id)) {
      const { from_ms, samples: chunk, to_ms } = row as { from_ms: number; to_ms: number; samples: Uint8Array };
      samples += countIn(inflateRawSync(chunk, { maxOutputLength: MAX_BLOB_BYTES }));
      first = Math.min(first, from_ms);
      last = Math.max(last, to_ms);
    }
    return { node: name, samples, firstMs: samples > 0 ? first : null, lastMs: samples > 0 ? last : null };
  });
}

const OTHER_SCHEMA = 'its tables and indexes are not those of edge-health';
/** Of the list of tables; the service's has four. */
const MAX_SCHEMA_PAGES = 32;
const [LEAF, INTERIOR] = [0x0d, 0x05];

/**
 * Whether the list of tables has few pages. SQLite reads all of it when it opens a database; for 300,000 entries in 18 MB it takes minutes.
 * The list begins in the first page, after the header (https://sqlite.org/fileformat2.html#b_tree_pages).
 */
function isSchemaSmall(path: string): boolean {
  const descriptor = openSync(path, 'r');
  try {
    const read = (at: number, length: number): Buffer => {
      const bytes = Buffer.alloc(length);
      readSync(descriptor, bytes, 0, length, at);
      return bytes;
    };
    const page = read(0, 65_536);
    const size = page.readUInt16BE(16) === 1 ? 65_536 : page.readUInt16BE(16);
    if (page[100] !== INTERIOR) return true;
    const cells = page.readUInt16BE(103);
    if (cells >= MAX_SCHEMA_PAGES) return false;
    const cellPages = Array.from({ length: cells }, (_, n) => page.readUInt32BE(Math.min(page.readUInt16BE(112 + 2 * n), size - 4)));
    return [...cellPages, page.readUInt32BE(108)].every((number) => read((number - 1) * size, 1)[0] === LEAF);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Checks a database that no process has open and counts its contents. Nothing is written, so records in a write-ahead log beside it are
 * not counted. Throws for a database that is damaged, of another program, or of a newer schema.
 */
export function inspectDatabase(path: string, { thorough }: InspectOptions): DatabaseFacts {
  if (!isSchemaSmall(path)) throw new Error(OTHER_SCHEMA);
  const url = pathToFileURL(path);
  url.searchParams.set('immutable', '1');
  const db = new DatabaseSync(url, { readOnly: true, defensive: true, limits: LIMITS });
  try {
    if (numberOf(db, 'PRAGMA application_id') !== APPLICATION_ID) throw new Error('it is a database of another program');
    const schemaVersion = numberOf(db, 'PRAGMA user_version');
    if (schemaVersion !== SCHEMA_VERSION)
      throw new Error(`it was written by another version (schema ${schemaVersion}, this one reads ${SCHEMA_VERSION})`);
    // Others could have views, expressions or constraints that run in the queries below for any time.
    if (!hasOwnSchema(db)) throw new Error(OTHER_SCHEMA);
    const check = thorough ? 'integrity_check' : 'quick_check';
    const verdict = Object.values(db.prepare(`PRAGMA ${check}(1)`).get() as Record<string, string>)[0];
    if (verdict !== 'ok') throw new Error(`it is damaged: ${verdict}`);
    return {
      schemaVersion,
      nodes: nodesOf(db),
      episodes: numberOf(db, 'SELECT count(*) FROM episode'),
      openEpisodes: numberOf(db, 'SELECT count(*) FROM episode WHERE resolved = 0'),
      alertChanges: numberOf(db, 'SELECT count(*) FROM alert_change'),
    };
  } finally {
    db.close();
  }
}

/** Checkpoints the write-ahead log into the database and removes it: the file is then complete. No other process may have it open. */
export function foldInLog(path: string): void {
  const db = new DatabaseSync(path, { timeout: 2000 });
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE');
    db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
    db.prepare('SELECT count(*) FROM sqlite_schema').get();
  } finally {
    db.close();
  }
}
