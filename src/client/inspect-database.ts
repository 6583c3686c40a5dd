import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { inflateRawSync } from 'node:zlib';
import { APPLICATION_ID, SCHEMA_VERSION } from '../store/database/database.ts';
import { countIn } from '../store/samples/chunk.ts';

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

function nodesOf(db: DatabaseSync): NodeFacts[] {
  const nodes = db.prepare('SELECT id, name FROM node ORDER BY name').all() as { id: number; name: string }[];
  const rows = db.prepare('SELECT from_ms, to_ms, samples FROM raw WHERE node_id = ?');
  return nodes.map(({ id, name }) => {
    let samples = 0;
    let first = Number.POSITIVE_INFINITY;
    let last = Number.NEGATIVE_INFINITY;
    for (const row of rows.iterate(id)) {
      const { from_ms, samples: chunk, to_ms } = row as { from_ms: number; to_ms: number; samples: Uint8Array };
      samples += countIn(inflateRawSync(chunk));
      first = Math.min(first, from_ms);
      last = Math.max(last, to_ms);
    }
    return { node: name, samples, firstMs: samples > 0 ? first : null, lastMs: samples > 0 ? last : null };
  });
}

/**
 * Checks a database that no process has open and counts its contents. Nothing is written, so records in a write-ahead log beside it are
 * not counted. Throws for a database that is damaged, of another program, or of a newer schema.
 */
export function inspectDatabase(path: string, { thorough }: InspectOptions): DatabaseFacts {
  const url = pathToFileURL(path);
  url.searchParams.set('immutable', '1');
  const db = new DatabaseSync(url, { readOnly: true });
  try {
    if (numberOf(db, 'PRAGMA application_id') !== APPLICATION_ID) throw new Error('it is a database of another program');
    const schemaVersion = numberOf(db, 'PRAGMA user_version');
    if (schemaVersion !== SCHEMA_VERSION)
      throw new Error(`it was written by another version (schema ${schemaVersion}, this one reads ${SCHEMA_VERSION})`);
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
