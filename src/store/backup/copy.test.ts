import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { SmallDisk, whyNotMountable } from '../../../testkit/machine/small-disk.ts';
import { openDatabase } from '../database/database.ts';
import { copyDatabase, copyPath, NOT_ENOUGH_SPACE, removeLeftovers } from './copy.ts';

/** Creates one of our databases with this many megabytes of data. */
function filled(t: Test, megabytes: number): DatabaseSync {
  const { db } = openDatabase(join(temporaryFolder(t), 'edge-health.db'), Date.now());
  t.teardown(() => db.close());
  db.exec('CREATE TABLE ballast (n INTEGER PRIMARY KEY, bytes BLOB)');
  const insert = db.prepare('INSERT INTO ballast (bytes) VALUES (randomblob(100000))');
  db.exec('BEGIN');
  for (let n = 0; n < megabytes * 10; n += 1) insert.run();
  db.exec('COMMIT');
  return db;
}

/** Opens an unlinked copy by its descriptor, as another process would open an inherited one. */
function empty(folder: string): string {
  const path = copyPath(folder, 1);
  writeFileSync(path, '');
  return path;
}

const always = { isWanted: () => true, onPiece: () => undefined };

t.test('the disk fills during the copy', { skip: whyNotMountable() ?? false }, async (t) => {
  const disk = new SmallDisk(t);
  const db = filled(t, 1.2);
  const given = { path: empty(disk.folder), isWanted: () => true, reserveBytes: 200_000 };
  let pieces = 0;
  await t.rejects(copyDatabase(db, { ...given, onPiece: () => (pieces++ === 0 ? disk.fill() : undefined) }), {
    name: NOT_ENOUGH_SPACE,
    message: /1\.4 MB must be free on the disk of .*disk \(1\.2 MB for the copy, 0\.2 MB that stay free\), but 0\.0 MB are; remove files/,
  });
  t.equal(pieces, 1, 'the copy had begun');
  t.same(readdirSync(disk.folder), ['filler'], 'no file is left');
  disk.free();
  await copyDatabase(db, { ...given, path: empty(disk.folder), ...always });
  await t.rejects(copyDatabase(db, { ...given, path: empty(disk.folder), ...always, reserveBytes: 1e6 }), { name: NOT_ENOUGH_SPACE });
  t.same(readdirSync(disk.folder), [], 'without enough space it does not begin');
});

t.test('changes made during the copy are in it, and the thread is never blocked for long', async (t) => {
  const db = filled(t, 20);
  const folder = temporaryFolder(t);
  const path = empty(folder);
  const witness = join(folder, 'witness.db');
  let pieces = 0;
  let written = 0;
  const insert = db.prepare('INSERT INTO ballast (bytes) VALUES (randomblob(5000))');
  const remove = db.prepare('DELETE FROM ballast WHERE n = ?');
  const { linkSync } = process.getBuiltinModule('node:fs');
  linkSync(path, witness); // The copy unlinks its own name.
  await copyDatabase(db, {
    path,
    isWanted: () => true,
    onPiece: () => {
      pieces += 1;
      // Pages before and after the copied ones; some changes are rolled back.
      db.exec('BEGIN IMMEDIATE');
      insert.run();
      remove.run(pieces);
      remove.run(200 - pieces);
      db.exec(pieces === 10 ? 'ROLLBACK' : 'COMMIT');
      if (pieces !== 10) written += 1;
      if (pieces === 25) db.exec('PRAGMA incremental_vacuum(100)');
    },
  });
  t.ok(pieces > 45 && written > 45, `${pieces} pieces, ${written} changes: restarted`);
  t.notOk(existsSync(path));
  t.same(readdirSync(folder), ['witness.db'], 'no side files are left');
  const copy = new DatabaseSync(witness, { readOnly: true });
  t.teardown(() => copy.close());
  t.equal((copy.prepare('PRAGMA journal_mode').get() as { journal_mode: string }).journal_mode, 'delete');
  t.same(copy.prepare('PRAGMA integrity_check').all(), [{ integrity_check: 'ok' }]);
  const all = 'SELECT n, length(bytes) AS length FROM ballast';
  t.same(copy.prepare(all).all(), db.prepare(all).all());
  for (const pragma of ['application_id', 'user_version', 'page_size', 'auto_vacuum'])
    t.same(copy.prepare(`PRAGMA ${pragma}`).get(), db.prepare(`PRAGMA ${pragma}`).get(), pragma);
  t.ok(statSync(witness).size > 15e6);
});

t.test('a copy that would begin during a transaction begins after it', async (t) => {
  const db = filled(t, 2);
  const folder = temporaryFolder(t);
  let pieces = 0;
  db.exec('BEGIN IMMEDIATE; DELETE FROM ballast WHERE n = 1');
  const copying = copyDatabase(db, { path: empty(folder), isWanted: () => true, onPiece: () => void pieces++ });
  setTimeout(() => db.exec('COMMIT'), 50);
  await copying;
  t.ok(pieces > 0);
  t.same(readdirSync(folder), []);
});

t.test('a copy that is no longer wanted does not wait for a transaction to end', async (t) => {
  const db = filled(t, 2);
  const folder = temporaryFolder(t);
  let isWanted = true;
  db.exec('BEGIN IMMEDIATE; DELETE FROM ballast WHERE n = 1');
  setTimeout(() => {
    isWanted = false;
  }, 50);
  await t.rejects(copyDatabase(db, { path: empty(folder), isWanted: () => isWanted, onPiece: () => undefined }), /try again/);
  db.exec('ROLLBACK');
  t.same(readdirSync(folder), []);
});

t.test('a copy that must restart again and again is abandoned', async (t) => {
  const db = filled(t, 2);
  let pieces = 0;
  const folder = temporaryFolder(t);
  const onPiece = (): void => {
    pieces += 1;
    db.exec('BEGIN IMMEDIATE; DELETE FROM ballast WHERE n = 1; ROLLBACK');
  };
  await t.rejects(copyDatabase(db, { path: empty(folder), isWanted: () => true, onPiece }), /changes too fast/);
  t.ok(pieces > 500 && pieces < 2000, `${pieces} pieces`);
  t.same(readdirSync(folder), []);
});

t.test('it can be canceled, also by closing the database', async (t) => {
  const db = filled(t, 5);
  const folder = temporaryFolder(t);
  let pieces = 0;
  const onPiece = (): void => {
    pieces += 1;
  };
  const copying = (isWanted: () => boolean): Promise<void> => copyDatabase(db, { path: empty(folder), isWanted, onPiece });
  await t.rejects(
    copying(() => pieces < 3),
    /try again/,
  );
  t.equal(pieces, 3);
  t.same(readdirSync(folder), []);
  await copying(() => true);
  const { db: other } = openDatabase(join(folder, 'other.db'), Date.now());
  const closing = copyDatabase(other, { path: empty(folder), ...always });
  other.close();
  await closing;
  t.same(readdirSync(folder), ['other.db']);
});

t.test('copies of a killed process are removed, and no other file', async (t) => {
  const folder = temporaryFolder(t);
  for (const name of [
    'snapshot-1.tmp',
    'snapshot-12.tmp-journal',
    'snapshot-1.tmp-wal',
    'snapshot.tmp',
    'my-snapshot-1.tmp',
    'edge-health.db',
  ])
    writeFileSync(join(folder, name), '');
  removeLeftovers(folder);
  t.same(readdirSync(folder).sort(), ['edge-health.db', 'my-snapshot-1.tmp', 'snapshot.tmp']);
});
