import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { deflateRawSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { openDatabase } from '../store/database/database.ts';
import { inspectDatabase } from './inspect-database.ts';

/** A database of the service, changed by someone who prepared it for a restore. */
function changed(t: Test, change: (db: DatabaseSync) => void): string {
  const path = join(temporaryFolder(t), 'edge-health.db');
  openDatabase(path, 0).db.close();
  const db = new DatabaseSync(path, { defensive: false });
  db.exec('PRAGMA journal_mode = DELETE');
  change(db);
  db.close();
  return path;
}

const inspect = (path: string) => inspectDatabase(path, { thorough: true });

t.test('an unchanged database is accepted', async (t) => {
  t.match(inspect(changed(t, () => undefined)), { nodes: [], episodes: 0 });
});

t.test('a database with other tables, or with code that would run when it is read, is refused', async (t) => {
  const forge = (db: DatabaseSync, sql: string): void => {
    db.exec('PRAGMA writable_schema = ON');
    db.exec(sql);
  };
  const ENDLESS = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x, x, x FROM c';
  const changes: Record<string, (db: DatabaseSync) => void> = {
    'a view in place of a table': (db) => db.exec(`DROP TABLE episode; CREATE VIEW episode AS ${ENDLESS}`),
    'a trigger': (db) => db.exec('CREATE TRIGGER x AFTER INSERT ON node BEGIN DELETE FROM node; END'),
    'an index on an expression': (db) => db.exec('CREATE INDEX x ON node (length(hex(zeroblob(length(name) * 1000))))'),
    'a virtual table': (db) => db.exec('CREATE VIRTUAL TABLE x USING fts5(a)'),
    'a constraint': (db) =>
      forge(
        db,
        `UPDATE sqlite_schema SET sql = replace(sql, 'remote INTEGER', 'remote INTEGER CHECK (length(zeroblob(id)))') WHERE name = 'node'`,
      ),
    'a list of tables that takes minutes to read': (db) =>
      forge(
        db,
        `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 300000)
        INSERT INTO sqlite_schema SELECT 'view', 'v' || x, 'v' || x, 0, 'CREATE VIEW v' || x || ' AS SELECT 1' FROM c`,
      ),
  };
  for (const [what, change] of Object.entries(changes))
    t.throws(() => inspect(changed(t, change)), { message: /not those of edge-health|view|too big/ }, what);
});

t.test('values that take much memory are refused', async (t) => {
  const row = 'INSERT INTO raw VALUES (1, 1, 0, 0, ?)';
  const bomb = changed(t, (db) => {
    db.exec("INSERT INTO node VALUES (1, 'a', 0)");
    db.prepare(row).run(deflateRawSync(Buffer.alloc(64e6)));
  });
  t.throws(() => inspect(bomb), { message: /larger than/ });
  const large = changed(t, (db) => {
    db.exec("INSERT INTO node VALUES (1, 'a', 0)");
    db.exec(row.replace('?', 'zeroblob(20000000)'));
  });
  t.throws(() => inspect(large), { message: /too big/ });
  const many = changed(t, (db) =>
    db.exec('WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 10001) INSERT INTO node SELECT x, x, 0 FROM c'),
  );
  t.throws(() => inspect(many), { message: /more than 10000 nodes/ });
});
