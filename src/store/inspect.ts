import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { countIn } from './chunk.ts';
import { APPLICATION_ID, SCHEMA_VERSION } from './database.ts';

/** The newest schema that this version of the product reads. */
export const NEWEST_SCHEMA = SCHEMA_VERSION;

export interface NodeFacts {
  readonly node: string;
  /** Raw samples. */
  readonly samples: number;
  /** Times of its first and last raw sample; null: it has none. */
  readonly firstMs: number | null;
  readonly lastMs: number | null;
}

/** What a database holds. */
export interface DatabaseFacts {
  readonly schemaVersion: number;
  readonly nodes: readonly NodeFacts[];
  readonly episodes: number;
  readonly openEpisodes: number;
  readonly alertChanges: number;
}

export interface InspectOptions {
  /** Whether every index and every row is held against each other, or only the structure of the pages. */
  readonly thorough: boolean;
}

function numberOf(db: DatabaseSync, query: string): number {
  return Number(Object.values(db.prepare(query).get() as Record<string, number>)[0]);
}

function nodesOf(db: DatabaseSync): NodeFacts[] {
  const nodes = db.prepare('SELECT id, name FROM node ORDER BY name').all() as { id: number; name: string }[];
  const rows = db.prepare('SELECT from_ms, to_ms, substr(samples, 1, 16) AS head FROM raw WHERE node_id = ?');
  return nodes.map(({ id, name }) => {
    let samples = 0;
    let first = Number.POSITIVE_INFINITY;
    let last = Number.NEGATIVE_INFINITY;
    for (const row of rows.iterate(id)) {
      const { from_ms, head, to_ms } = row as { from_ms: number; to_ms: number; head: Uint8Array };
      samples += countIn(head);
      first = Math.min(first, from_ms);
      last = Math.max(last, to_ms);
    }
    return { node: name, samples, firstMs: samples > 0 ? first : null, lastMs: samples > 0 ? last : null };
  });
}

/**
 * Checks a database that nobody has open, and counts what it holds; nothing is written, not even beside it: what a log beside it has is
 * not seen. Throws for one that is damaged, of another program, or newer than this version reads.
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

/** Brings what is in the log beside a database into it, and removes the log: the file is then the whole database. Nobody may have it open. */
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
