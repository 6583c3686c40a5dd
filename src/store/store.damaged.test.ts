import { execFileSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';
import type { HistoryQuery } from '../core/ports.ts';
import { ALL, change } from './testing/alerts.ts';
import { TestArchive } from './testing/archive.ts';
import { type Row, row, sameRows, series } from './testing/rows.ts';
import { EVER, NODE, START, startStore, type TestStore } from './testing/store.ts';

// An unusable database is quarantined as a whole and reported; a new one is created and works.

const EVERYTHING: HistoryQuery = { node: NODE, ...EVER, stepMs: null, order: 'asc', limit: 200_000 };
const ALERT = change(`${NODE}/cpu_percent/1`, START);

/** Incompressible values, so that the database has many pages. */
const bulky = (count: number): readonly Row[] =>
  Array.from({ length: count }, (_, i) => ({
    ...row(START + i * 250),
    values: [Math.sqrt(i), Math.cbrt(i), Math.log1p(i), Math.sin(i)],
  }));

/** Creates a database in `folder`/data as a store leaves it; returns its path. */
function fill(folder: string, rows: readonly Row[]): string {
  mkdirSync(join(folder, 'data'), { recursive: true });
  const path = join(folder, 'data/edge-health.db');
  const archive = new TestArchive(path, Date.now(), 64e6);
  archive.localNode = NODE;
  archive.restart();
  archive.add(NODE, rows);
  archive.commit();
  archive.archive.saveAlert(ALERT, { segment: archive.segment, sequence: rows.length + 1 });
  archive.close();
  return path;
}

/** Databases are filled once; every test works on a copy. */
const templates = { large: temporaryFolder(t), many: temporaryFolder(t), few: temporaryFolder(t) };
t.before(() => {
  // More than the megabyte that SQLite caches in memory.
  fill(templates.large, bulky(45_000));
  fill(templates.many, bulky(6000));
  fill(templates.few, series(START, 300));
});

/** Copies a filled data folder to `folder`; returns the database's path. */
function copy(template: keyof typeof templates, folder: string): string {
  cpSync(templates[template], folder, { recursive: true });
  return join(folder, 'data/edge-health.db');
}

function overwrite(path: string, from: number, length: number): void {
  const descriptor = openSync(path, 'r+');
  writeSync(descriptor, Buffer.alloc(length, 0xa5), 0, length, from);
  closeSync(descriptor);
}

async function checkWorks(t: Test, started: TestStore): Promise<void> {
  const rows = series(START + 30_000_000, 100);
  started.recordNextMinute(rows);
  await started.store.recordAlert({ ...ALERT, alert_id: `${NODE}/cpu_percent/2` });
  const found = await started.rows();
  sameRows(t, found.slice(-100), rows, 'the new database accepts samples');
  t.ok(
    (await started.store.alerts({ ...ALL, range: EVER })).alerts.some(({ alert_id }) => alert_id.endsWith('/2')),
    'and alerts',
  );
  t.match(started.store.state(), { state: 'ok', error: null });
}

const damages: Record<string, { damage: (path: string) => void; reason: RegExp; whenFound: 'start' | 'later' }> = {
  'a file cut in half': {
    damage: (path) => truncateSync(path, Math.floor(statSync(path).size / 2)),
    reason: /truncated/,
    whenFound: 'start',
  },
  'a file cut within its header': { damage: (path) => truncateSync(path, 50), reason: /not a database/, whenFound: 'start' },
  'an empty file': { damage: (path) => truncateSync(path, 0), reason: /empty/, whenFound: 'start' },
  'an overwritten header': { damage: (path) => overwrite(path, 0, 4096), reason: /not a database/, whenFound: 'start' },
  'an overwritten header after its first words': { damage: (path) => overwrite(path, 100, 3996), reason: /malformed/, whenFound: 'start' },
  'pages overwritten in the middle': {
    damage: (path) => overwrite(path, Math.floor(statSync(path).size / 8192) * 4096, 64 * 1024),
    reason: /./,
    whenFound: 'later',
  },
  'a text file': { damage: (path) => writeFileSync(path, 'Dear database,\n'.repeat(1000)), reason: /not a database/, whenFound: 'start' },
  'a database of another program': {
    damage: (path) => {
      rmSync(path);
      const other = new DatabaseSync(path);
      other.exec('PRAGMA journal_mode = WAL; CREATE TABLE photos (name TEXT); INSERT INTO photos VALUES (1)');
      other.close();
    },
    reason: /another program/,
    whenFound: 'start',
  },
  'a database of another version': {
    damage: (path) => {
      const newer = new DatabaseSync(path);
      newer.exec('PRAGMA user_version = 99');
      newer.close();
    },
    reason: /another version \(schema 99/,
    whenFound: 'start',
  },
  'a database without some of its tables': {
    damage: (path) => {
      const poorer = new DatabaseSync(path);
      poorer.exec('DROP TABLE minute');
      poorer.close();
    },
    reason: /without its tables minute/,
    whenFound: 'start',
  },
};

for (const [name, { damage, reason, whenFound }] of Object.entries(damages)) {
  t.test(name, async (t) => {
    const folder = temporaryFolder(t);
    const path = copy('many', folder);
    damage(path);
    const content = readFileSync(path);
    const reasons: unknown[] = [];
    const started = await startStore(t, folder, {
      log: (level, _message, fields) => {
        if (level === 'error') reasons.push(fields?.['reason']);
      },
    });
    if (whenFound === 'later') await until('it is found', () => started.store.state().quarantined.length > 0);
    const { quarantined, path: samePath } = started.store.state();
    t.equal(samePath, path);
    t.equal(quarantined.length, 1);
    t.match(quarantined[0], /edge-health\.db\.quarantined-\d{8}T\d{6}Z$/);
    t.ok(readFileSync(quarantined[0] as string).equals(content), 'the quarantined file is unchanged');
    t.match(reasons, [reason], 'its path is reported');
    await checkWorks(t, started);
    await started.stop();
    const fresh = new DatabaseSync(path, { readOnly: true });
    t.match(fresh.prepare('PRAGMA integrity_check').get(), { integrity_check: 'ok' }, 'the new one is whole');
    fresh.close();
  });
}

t.test('a truncated file with much of its data in the write-ahead log', async (t) => {
  const folder = temporaryFolder(t);
  const path = copy('many', folder);
  const log = readFileSync(path).subarray(0, 4096);
  writeFileSync(`${path}-wal`, log); // Neither a valid log nor an empty one.
  truncateSync(path, 8192);
  const started = await startStore(t, folder);
  await until('it is found', () => started.store.state().quarantined.length > 0);
  await checkWorks(t, started);
});

t.test('damage found while running: by a read', async (t) => {
  const folder = temporaryFolder(t);
  const path = copy('large', folder);
  const started = await startStore(t, folder);
  started.record(series(START + 20_000_000, 30));
  await started.store.history(EVERYTHING); // The check after the start has ended by then.
  const size = statSync(path).size;
  t.ok(size > 1_500_000, `${size} bytes`);
  overwrite(path, 8192, size - 8192);
  // Pages in SQLite's cache may serve for some time.
  await until('it is met', async () => {
    await started.store.history(EVERYTHING);
    return started.store.state().quarantined.length > 0;
  });
  t.same((await started.rows()).slice(-30), series(START + 20_000_000, 30), 'pending records are in the new database');
  await checkWorks(t, started);
});

t.test('damage found while running: by a write, with alerts open', async (t) => {
  const folder = temporaryFolder(t);
  const path = copy('few', folder);
  const started = await startStore(t, folder);
  await started.rows();
  overwrite(path, 0, statSync(path).size);
  for (const suffix of ['-wal', '-shm']) if (existsSync(path + suffix)) overwrite(path + suffix, 0, statSync(path + suffix).size);
  const rows = series(START + 300_000, 600);
  for (let i = 0; i < rows.length; i += 60) started.recordNextMinute(rows.slice(i, i + 60));
  const later = { ...ALERT, alert_id: `${NODE}/cpu_percent/3` };
  await started.store.recordAlert(later);
  await until('it is met', () => started.store.state().quarantined.length > 0);
  await until('all is written', () => {
    started.recordNextMinute([]);
    return started.store.state().state === 'ok';
  });
  sameRows(t, (await started.rows()).slice(-600), rows);
  t.ok((await started.store.alerts(ALL)).alerts.some(({ alert_id }) => alert_id === later.alert_id));
  await checkWorks(t, started);
});

for (const [name, suffixes] of Object.entries({ 'the file': [''], 'the file and those beside it': ['', '-wal', '-shm'] })) {
  t.test(`the database is removed while running: ${name}`, async (t) => {
    const folder = temporaryFolder(t);
    const path = copy('few', folder);
    const started = await startStore(t, folder);
    started.record(series(START + 300_000, 30));
    await started.store.recordAlert({ ...ALERT, alert_id: `${NODE}/cpu_percent/5` });
    for (const suffix of suffixes) rmSync(path + suffix, { force: true });
    const rows = series(START + 330_000, 60);
    started.recordNextMinute(rows);
    await until('it is noticed', () => started.store.state().quarantined.length > 0);
    t.match(started.store.state().quarantined, ['(removed)']);
    t.ok(started.logged.some(({ level, message }) => level === 'error' && message.includes('quarantined')));
    t.same(await started.rows(), [...series(START + 300_000, 30), ...rows], 'pending records are kept');
    const open = [ALERT.alert_id, `${NODE}/cpu_percent/5`];
    t.same((await started.store.alerts(ALL)).alerts.map(({ alert_id }) => alert_id).sort(), open, 'open alerts stay open');
    await checkWorks(t, started);
    await started.stop();
    t.ok(existsSync(path));
    const next = await startStore(t, folder);
    t.equal((await next.rows()).length, 190);
    t.same(next.store.state().quarantined, []);
  });
}

t.test('an alert raised after the database was removed is in the new one, also when it is resolved by then', async (t) => {
  const folder = temporaryFolder(t);
  const path = copy('few', folder);
  const started = await startStore(t, folder);
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
  const raised = change(`${NODE}/cpu_percent/7`, START + 301_000);
  const resolved = { ...change(`${NODE}/cpu_percent/7`, START + 302_000), resolved: true };
  await started.store.recordAlert(raised);
  t.same(started.store.state().quarantined, ['(removed)'], 'the alert triggers the check of the file');
  await started.store.recordAlert(resolved);
  const { alerts } = await started.store.alerts({ ...ALL, changes: true, range: EVER });
  t.same(
    alerts.filter(({ alert_id }) => alert_id.endsWith('/7')).map((alert) => alert.resolved),
    [true, false],
    'both changes are stored',
  );
  t.ok(existsSync(path));
  await checkWorks(t, started);
});

t.test('the write-ahead log is removed while running: its contents are written to the database', async (t) => {
  const folder = temporaryFolder(t);
  const path = copy('few', folder);
  const started = await startStore(t, folder);
  started.record(series(START + 300_000, 60));
  started.recordNextMinute(series(START + 360_000, 1));
  await until('it is written', () => started.store.state().samples_pending === 0);
  rmSync(`${path}-wal`);
  started.recordNextMinute(series(START + 361_000, 1));
  await until('the log is there again', () => existsSync(`${path}-wal`));
  t.same(started.store.state().quarantined, [], 'nothing was quarantined');
  // State after a kill.
  const killed = `${folder}/killed.db`;
  for (const suffix of ['', '-wal']) copyFileSync(path + suffix, killed + suffix);
  const check = new DatabaseSync(killed);
  t.match(check.prepare('PRAGMA integrity_check').get(), { integrity_check: 'ok' });
  const { last } = check.prepare('SELECT max(to_ms) AS last FROM raw').get() as { last: number };
  t.ok(last >= START + 360_000, 'including records written before the log was removed');
  check.close();
  sameRows(t, await started.rows(), series(START, 362), 'nothing is lost');
  await checkWorks(t, started);
});

t.test('the database is truncated to half while running', async (t) => {
  const folder = temporaryFolder(t);
  const path = copy('large', folder);
  const started = await startStore(t, folder);
  started.record(series(START + 20_000_000, 30));
  await started.store.history(EVERYTHING); // The check after the start has ended by then.
  truncateSync(path, Math.floor(statSync(path).size / 2));
  started.recordNextMinute(series(START + 20_030_000, 1));
  await until('it is met', async () => {
    await started.store.history(EVERYTHING).catch(() => null);
    started.recordNextMinute([]);
    return started.store.state().quarantined.length > 0;
  });
  t.same((await started.rows()).slice(-31), series(START + 20_000_000, 31), 'pending records are in the new database');
  await checkWorks(t, started);
});

const STRANGERS: Record<string, (path: string) => void> = {
  'a folder': (path) => {
    mkdirSync(path);
    writeFileSync(`${path}/file`, 'in it');
  },
  // Opening a FIFO for reading would block until it has a writer.
  'a named pipe': (path) => void execFileSync('mkfifo', [path]),
};

for (const [name, put] of Object.entries(STRANGERS)) {
  for (const when of ['at the start', 'while running']) {
    t.test(`${name} is in its place ${when}`, async (t) => {
      const folder = temporaryFolder(t);
      const path = copy('few', folder);
      const exchange = (): void => {
        for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
        put(path);
      };
      if (when === 'at the start') exchange();
      const started = await startStore(t, folder);
      if (when === 'while running') exchange();
      started.recordNextMinute(series(START + 20_000, 10));
      started.recordNextMinute(series(START + 30_000, 1));
      await until('it is noticed', () => started.store.state().quarantined.some((path) => path.includes('quarantined')));
      await until('the new one is written', () => started.store.state().state === 'ok');
      t.ok(statSync(path).isFile());
      t.same((await started.rows()).slice(-11), series(START + 20_000, 11));
      await checkWorks(t, started);
    });
  }
}

t.test('another database replaces it while running', async (t) => {
  const folder = temporaryFolder(t);
  const backup = copy('few', folder);
  renameSync(backup, `${backup}.backup`);
  const path = fill(folder, series(START + 1_000_000, 50));
  const started = await startStore(t, folder);
  started.record(series(START + 1_050_000, 100));
  started.recordNextMinute(series(START + 2_000_000, 1));
  await started.store.recordAlert({ ...ALERT, alert_id: `${NODE}/cpu_percent/6` });
  await until('much is in the log beside it', () => started.store.state().samples_pending === 0);
  started.record(series(START + 2_001_000, 29));
  renameSync(`${backup}.backup`, path);
  started.recordNextMinute(series(START + 2_030_000, 1));
  await until('it is noticed', () => started.store.state().quarantined.length > 0);
  const expected = [...series(START, 300), ...series(START + 2_001_000, 30)];
  t.same(await started.rows(), expected, 'the replacement is used');
  await started.stop();
  const check = new DatabaseSync(path, { readOnly: true });
  t.match(check.prepare('PRAGMA integrity_check').get(), { integrity_check: 'ok' });
  check.close();
  t.same(await (await startStore(t, folder)).rows(), expected);
});
