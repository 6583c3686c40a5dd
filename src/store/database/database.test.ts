import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { openDatabase } from './database.ts';

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
