import fs, { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { mock } from 'node:test';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { DatabaseFile, openDatabase } from './database.ts';

const NOW = Date.parse('2026-03-04T10:00:00Z');

t.test('a commit survives a power cut', async (t) => {
  const { db } = openDatabase(join(temporaryFolder(t), 'edge-health.db'), NOW);
  t.match(db.prepare('PRAGMA journal_mode').get(), { journal_mode: 'wal' });
  // FULL: each commit syncs the log to the disk.
  t.match(db.prepare('PRAGMA synchronous').get(), { synchronous: 2 });
  db.close();
});

t.test('an incomplete database, or a file that is not one, is kept under another name, and a new one is created', async (t) => {
  const path = join(temporaryFolder(t), 'edge-health.db');
  openDatabase(path, NOW).db.close();
  const whole = readFileSync(path);
  const half = whole.subarray(0, whole.length / 2);
  const overwritten = Buffer.from(whole).fill(0xff, 100);
  for (const content of [Buffer.alloc(0), Buffer.from('x'.repeat(5000)), half, overwritten]) {
    writeFileSync(path, content);
    const { db, quarantined } = openDatabase(path, NOW);
    t.ok(db.prepare('SELECT count(*) FROM raw').get());
    t.ok(readFileSync(quarantined?.path ?? path).equals(content), quarantined?.reason ?? 'it was not quarantined');
    db.close();
  }
});

t.test('an error while opening leaves nothing open, so that the next attempt succeeds', async (t) => {
  const path = join(temporaryFolder(t), 'edge-health.db');
  openDatabase(path, NOW).db.close();
  const nothing = (): void => undefined;
  const file = new DatabaseFile({ path, nowMs: () => NOW, onQuarantined: nothing }, { use: nothing, load: nothing, save: nothing });
  const before = readdirSync('/proc/self/fd').length;
  const failing = (name: 'openSync' | 'readSync', call: number, code: string): void => {
    let calls = 0;
    const original = fs[name] as (...given: unknown[]) => number;
    const mocked = mock.method(fs, name, (...given: unknown[]) => {
      calls += 1;
      if (calls === call) throw Object.assign(new Error(code), { code });
      return original(...given);
    });
    syncBuiltinESMExports();
    t.throws(() => file.open(), { code });
    mocked.mock.restore();
    syncBuiltinESMExports();
    t.notOk(file.isOpen);
    t.equal(readdirSync('/proc/self/fd').length, before, `after ${code}`);
  };
  failing('readSync', 1, 'EIO');
  failing('openSync', 2, 'EMFILE');
  file.open();
  t.ok(file.isOpen);
  file.close();
});
