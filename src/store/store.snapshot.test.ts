import { chmodSync, copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/small-disk.ts';
import { until } from '../../testkit/wait.ts';
import type { Snapshot } from '../core/snapshot.ts';
import { ALL, change, NOW } from './testing/alerts.ts';
import { type Row, sameRows, series } from './testing/rows.ts';
import { NODE, START, startStore, TestStore } from './testing/store.ts';

const mortal = new URL('./testing/mortal-worker.ts', import.meta.url);
const wanted = (): AbortSignal => new AbortController().signal;
const leftovers = (folder: string): string[] => readdirSync(join(folder, 'data')).filter((name) => name.startsWith('snapshot'));

/** Puts a snapshot where another store finds it, and closes it. */
function unpack(t: Test, { close, descriptor }: Snapshot): string {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'data'));
  copyFileSync(`/proc/self/fd/${descriptor}`, join(folder, 'data/edge-health.db'));
  close();
  return folder;
}

/** A store whose database is so large that its copy takes a while. */
async function startLarge(t: Test, folder: string, more: ConstructorParameters<typeof TestStore>[1] = {}): Promise<TestStore> {
  const first = await startStore(t, folder);
  await first.stop();
  const db = new DatabaseSync(join(folder, 'data/edge-health.db'));
  db.exec(`CREATE TABLE ballast (bytes BLOB);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) INSERT INTO ballast SELECT zeroblob(100000) FROM n`);
  db.close();
  return startStore(t, folder, more);
}

t.test('a snapshot holds everything recorded up to the call, and opens anywhere', async (t) => {
  const folder = temporaryFolder(t);
  const started = await startStore(t, folder);
  started.record(series(START, 100));
  started.recordNextMinute(series(START + 100_000, 50));
  const alert = change(`${NODE}/cpu_percent/1`, NOW);
  await started.store.recordAlert(alert);
  started.record(series(START + 150_000, 7));
  const before = Date.now();
  const snapshot = await started.store.snapshot(wanted());
  t.ok(snapshot.takenMs >= before && snapshot.takenMs <= Date.now());
  t.same(leftovers(folder), [], 'the file has no name');
  const copied = unpack(t, snapshot);
  const path = join(copied, 'data/edge-health.db');
  chmodSync(join(copied, 'data'), 0o555);
  const db = new DatabaseSync(path, { readOnly: true });
  t.same(db.prepare('PRAGMA integrity_check').all(), [{ integrity_check: 'ok' }]);
  t.same(db.prepare('PRAGMA application_id').get(), { application_id: 0x45646748 });
  t.same(readdirSync(join(copied, 'data')), ['edge-health.db'], 'read without side files');
  db.close();
  chmodSync(join(copied, 'data'), 0o755);
  const next = await startStore(t, copied);
  sameRows(t, await next.rows(), series(START, 157));
  t.same((await next.store.alerts(ALL)).alerts, [alert]);
  started.record(series(START + 157_000, 3));
  sameRows(t, await started.rows(), series(START, 160), 'and the store goes on');
});

t.test('meanwhile everybody else is served and everything is written', async (t) => {
  const folder = temporaryFolder(t);
  const started = await startLarge(t, folder);
  const rows: Row[] = series(START, 60);
  started.record(rows);
  let done = false;
  const taking = started.store.snapshot(wanted()).then((snapshot) => {
    done = true;
    return snapshot;
  });
  let rounds = 0;
  let alerts = 0;
  while (!done) {
    rounds += 1;
    const minute = series(START + rounds * 60_000, 60);
    rows.push(...minute);
    started.recordNextMinute(minute);
    await started.store.clockEvents(1);
    if (!done && (await started.store.recordAlert(change(`${NODE}/cpu_percent/${rounds}`, NOW + rounds)))) alerts += 1;
  }
  const snapshot = await taking;
  t.ok(snapshot.sizeBytes > 40e6);
  t.ok(rounds > 2, `${rounds} minutes passed`);
  sameRows(t, await started.rows(), rows);
  const next = await startStore(t, unpack(t, snapshot));
  const copied = await next.rows();
  t.ok(copied.length >= 60, `${copied.length} samples`);
  t.same(copied, rows.slice(0, copied.length), 'from the first on, without a gap');
  t.ok((await next.store.alerts(ALL)).alerts.length <= alerts);
});

t.test('one at a time, until it is closed', async (t) => {
  const folder = temporaryFolder(t);
  const { store } = await startStore(t, folder);
  const first = await store.snapshot(wanted());
  await t.rejects(store.snapshot(wanted()), { name: 'SnapshotRefused', why: 'busy' });
  first.close();
  const both = await Promise.allSettled([store.snapshot(wanted()), store.snapshot(wanted())]);
  t.same(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  for (const one of both) if (one.status === 'fulfilled') one.value.close();
  (await store.snapshot(wanted())).close();
});

t.test('who goes away ends it', async (t) => {
  const folder = temporaryFolder(t);
  const { store } = await startLarge(t, folder);
  for (const afterMs of [0, 5, 20, 40]) {
    const gone = new AbortController();
    const taking = store.snapshot(gone.signal);
    setTimeout(() => gone.abort(), afterMs);
    await taking.then(
      ({ close }) => close(),
      () => t.ok(gone.signal.aborted),
    );
    await until('nothing is left of it', () => leftovers(folder).length === 0);
  }
  const snapshot = await store.snapshot(wanted());
  t.ok(snapshot.sizeBytes > 40e6, 'the next one is whole');
  snapshot.close();
});

t.test('the store stops while it is made', async (t) => {
  const folder = temporaryFolder(t);
  const started = await startLarge(t, folder);
  started.record(series(START, 10));
  const taking = started.store.snapshot(wanted());
  const refused = t.rejects(taking, { name: 'SnapshotRefused', why: 'unavailable', message: /closed/ });
  await until('it has begun', () => leftovers(folder).length > 0);
  await started.stop();
  await refused;
  t.same(leftovers(folder), []);
  sameRows(t, await (await startStore(t, folder)).rows(), series(START, 10));
});

t.test('the thread dies while it is made', async (t) => {
  const folder = temporaryFolder(t);
  const started = await startLarge(t, folder, { worker: mortal });
  const refused = t.rejects(started.store.snapshot(wanted()), {
    name: 'SnapshotRefused',
    why: 'unavailable',
    message: /killed by the test/,
  });
  await until('it has begun', () => leftovers(folder).length > 0);
  started.store.history({ node: 'die now', fromMs: 0, toMs: 1, stepMs: null, order: 'asc', limit: 1 }).catch(() => undefined);
  await refused;
  await t.rejects(started.store.snapshot(wanted()), { why: 'unavailable', message: /killed by the test/ }, 'the store is degraded');
  await until('the store works again', () => started.store.state().state === 'ok');
  t.same(leftovers(folder), []);
  (await started.store.snapshot(wanted())).close();
});

t.test('a store that cannot write says why there is no snapshot', { skip: whyNotMountable() ?? false }, async (t) => {
  const disk = new SmallDisk(t);
  const started = await startStore(t, temporaryFolder(t), { dataPath: disk.folder });
  started.record(series(START, 10));
  await t.rejects(started.store.snapshot(wanted()), { why: 'no_room', message: /100\.\d MB must be free/ });
  t.same(
    readdirSync(disk.folder).filter((name) => name.startsWith('snapshot')),
    [],
  );
  disk.fill();
  started.record(series(START + 10_000, 5000));
  await t.rejects(started.store.snapshot(wanted()), { why: 'unavailable', message: /full/ });
  await t.rejects(started.store.snapshot(wanted()), { why: 'unavailable', message: /full/ }, 'also once it is known');
});

t.test('what a killed process left is removed at the start; before it, there is none', async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'data'));
  for (const name of ['snapshot-3.tmp', 'snapshot-3.tmp-journal']) writeFileSync(join(folder, 'data', name), 'x');
  const started = new TestStore(folder);
  await t.rejects(started.store.snapshot(wanted()), { why: 'unavailable', message: /being opened/ });
  await started.store.start();
  t.same(leftovers(folder), []);
  await started.stop();
});
