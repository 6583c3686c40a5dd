import { existsSync, readdirSync, readFileSync, renameSync, symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/machine/small-disk.ts';
import { until } from '../../testkit/wait.ts';
import type { Alert } from '../core/alerts/alert.ts';
import { parseSegment } from './spool/spool.ts';
import { ALL, change } from './testing/alerts.ts';
import { type Row, sameRows, series } from './testing/rows.ts';
import { EVER, NODE, START, startStore, TestStore } from './testing/store.ts';

// A full disk stops neither recording nor reading; pending records are written once there is space again.

const skip = whyNotMountable() ?? false;
const MINUTE = 60;

const alert = (n: number, more: Partial<Alert> = {}): Alert => change(`${NODE}/cpu_percent/${n}`, START + n * 1000, more);

async function listed({ store }: TestStore): Promise<readonly Alert[]> {
  return (await store.alerts({ ...ALL, range: EVER })).alerts;
}

async function checkAll(t: Test, started: TestStore, rows: readonly Row[], alerts: readonly Alert[], what: string): Promise<void> {
  sameRows(t, await started.rows(), rows, `samples ${what}`);
  t.same(await listed(started), alerts.toReversed(), `alerts ${what}`);
  const [whole] = await started.store.aggregate({ node: NODE, ...EVER, by: null });
  t.equal(whole?.samples_received, rows.length, `hours ${what}`);
}

function minutes(started: TestStore, from: number, count: number): void {
  for (let minute = from; minute < from + count; minute += 1) started.recordNextMinute(series(START + minute * MINUTE * 1000, MINUTE));
}

const rowsOf = (count: number): Row[] => series(START, count * MINUTE);

t.test('the disk fills while the store runs', { skip }, async (t) => {
  const disk = new SmallDisk(t);
  const folder = temporaryFolder(t);
  const options = { dataPath: disk.folder };
  const started = await startStore(t, folder, options);
  for (let minute = 0; minute < 3; minute += 1) {
    minutes(started, minute, 1);
    await until('it is written', () => started.store.state().samples_pending < MINUTE);
  }
  await started.store.recordAlert(alert(1));
  disk.fill();
  minutes(started, 3, 40);
  await started.store.recordAlert(alert(2));
  await started.store.recordAlert(alert(3));
  started.store.recordClockEvent({ kind: 'step', timestamp_ms: START, delta_seconds: 1 });
  await until('it is noticed', () => started.store.state().state === 'degraded');
  t.match(started.store.state(), { error: /full/, since: /^2/, samples_lost: 0 });
  t.ok(started.store.state().samples_pending > 35 * MINUTE);
  await checkAll(t, started, rowsOf(43), [alert(1), alert(2), alert(3)], 'while the disk is full');
  t.same((await started.store.alerts({ ...ALL, range: EVER, limit: 2 })).alerts, [alert(3), alert(2)]);
  disk.free();
  await until('it heals', () => started.store.state().state === 'ok');
  t.match(started.store.state(), { error: null, since: null, samples_lost: 0 });
  t.ok(started.logged.some(({ level, message }) => level === 'notice' && message.includes('storage recovered')));
  minutes(started, 43, 1);
  await checkAll(t, started, rowsOf(44), [alert(1), alert(2), alert(3)], 'after space was freed');
  await started.stop();
  t.notOk(existsSync(join(folder, 'run', 'spool')));
  const next = await startStore(t, folder, options);
  await checkAll(t, next, rowsOf(44), [alert(1), alert(2), alert(3)], 'in the database');
  t.equal((await next.store.clockEvents(9)).length, 1);
});

t.test('the store stops on a full disk: the spool keeps the records for the next start', { skip }, async (t) => {
  const disk = new SmallDisk(t);
  const folder = temporaryFolder(t);
  const options = { dataPath: disk.folder };
  const started = await startStore(t, folder, options);
  minutes(started, 0, 2);
  await until('they are written', () => started.store.state().samples_pending < 2 * MINUTE);
  disk.fill();
  minutes(started, 2, 20);
  await started.store.recordAlert(alert(1));
  await started.stop();
  const again = await startStore(t, folder, options);
  t.match(again.store.state(), { state: 'degraded', quarantined: [] });
  t.same((await again.rows()).slice(0, MINUTE), rowsOf(1), 'records written before are served');
  minutes(again, 22, 5);
  await again.store.recordAlert(alert(2));
  await again.store.recordAlert(alert(1, { timestamp: alert(3).timestamp, resolved: true }));
  const alerts = [alert(2), alert(1, { timestamp: alert(3).timestamp, resolved: true })];
  t.same(await listed(again), alerts.toReversed());
  disk.free();
  await until('it heals', () => again.store.state().state === 'ok');
  await checkAll(t, again, rowsOf(27), alerts, 'after space was freed');
  await again.stop();
  t.same(
    readdirSync(disk.folder).filter((name) => name.includes('quarantined')),
    [],
  );
  await checkAll(t, await startStore(t, folder, options), rowsOf(27), alerts, 'in the database');
});

t.test('the disk is full at the very first start', { skip }, async (t) => {
  const disk = new SmallDisk(t);
  const folder = temporaryFolder(t);
  disk.fill();
  const started = new TestStore(folder, { dataPath: disk.folder });
  t.teardown(() => started.stop());
  t.same((await started.store.start()).openAlerts, []);
  t.match(started.store.state(), { state: 'degraded', quarantined: [] });
  t.not(started.store.state().error, null);
  minutes(started, 0, 10);
  await started.store.recordAlert(alert(1));
  await checkAll(t, started, rowsOf(10), [alert(1)], 'while the disk is full');
  disk.free();
  await until('it heals', () => started.store.state().state === 'ok');
  await checkAll(t, started, rowsOf(10), [alert(1)], 'after space was freed');
  t.same(started.store.state().quarantined, [], 'an incomplete new database does not count as damaged');
  t.same(started.lateOpens, [[]]);
  await started.stop();
  await checkAll(t, await startStore(t, folder, { dataPath: disk.folder }), rowsOf(10), [alert(1)], 'in the database');
});

t.test('open alerts are known although the disk is full at the start', { skip }, async (t) => {
  const disk = new SmallDisk(t);
  const folder = temporaryFolder(t);
  const options = { dataPath: disk.folder };
  const first = await startStore(t, folder, options);
  await first.store.recordAlert(alert(1));
  await first.store.recordAlert(alert(2));
  await first.stop();
  disk.fill();
  const second = new TestStore(folder, options);
  t.teardown(() => second.stop());
  t.same((await second.store.start()).openAlerts, [alert(1), alert(2)]);
});

t.test('open episodes of a database that is opened late are reported then', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'data', 'edge-health.db');
  const first = await startStore(t, folder);
  await first.store.recordAlert(alert(1));
  await first.store.recordAlert(alert(2));
  first.record(rowsOf(1));
  await first.stop();
  renameSync(path, `${path}.away`);
  symlinkSync(join(folder, 'not-mounted/edge-health.db'), path);
  const second = await startStore(t, folder);
  t.match(second.store.state(), { state: 'degraded', quarantined: [] });
  await second.store.recordAlert(alert(3));
  await second.store.recordAlert(alert(2, { resolved: true, timestamp: alert(4).timestamp }));
  second.record(series(START + MINUTE * 1000, MINUTE));
  unlinkSync(path);
  renameSync(`${path}.away`, path);
  await until('it heals', () => second.store.state().state === 'ok');
  t.same(second.lateOpens, [[alert(1)]], 'except those already reported by this run');
  await checkAll(t, second, rowsOf(2), [alert(1), alert(3), alert(2, { resolved: true, timestamp: alert(4).timestamp })], 'after it');
});

t.test('over the limit the oldest samples are dropped and counted, and no alert with them', { skip }, async (t) => {
  const disk = new SmallDisk(t);
  const folder = temporaryFolder(t);
  const options = { dataPath: disk.folder };
  const started = await startStore(t, folder, { ...options, maxWaitingBytes: 100_000, retrySeconds: 1000 });
  disk.fill();
  await started.store.recordAlert(alert(0));
  for (let minute = 0; minute < 30; minute += 1) {
    minutes(started, minute, 1);
    await started.store.recordAlert(alert(minute + 1));
  }
  const { samples_lost } = started.store.state();
  t.ok(samples_lost > 10 * MINUTE && samples_lost < 30 * MINUTE, `${samples_lost} dropped`);
  const alerts = Array.from({ length: 31 }, (_, n) => alert(n));
  t.same(await started.rows(), rowsOf(30).slice(samples_lost));
  t.same(await listed(started), alerts.toReversed());
  await started.stop();
  disk.free();
  const next = await startStore(t, folder, options);
  t.same(await next.rows(), rowsOf(30).slice(samples_lost), 'after a restart');
  t.same(await listed(next), alerts.toReversed(), 'after a restart');
});

t.test('the spool’s file system is full: recording continues, and a torn line does no harm later', { skip }, async (t) => {
  const disk = new SmallDisk(t);
  const folder = temporaryFolder(t);
  const started = await startStore(t, folder, { environment: { RUNTIME_DIRECTORY: disk.folder } });
  minutes(started, 0, 1);
  disk.fill();
  started.record(series(START + MINUTE * 1000, MINUTE));
  await started.store.recordAlert(alert(1));
  t.ok(started.logged.some(({ level, message }) => level === 'error' && message.includes('spool')));
  sameRows(t, await started.rows(), rowsOf(2));
  disk.free();
  const rest = series(START + 2 * MINUTE * 1000, 20);
  started.record(rest);
  const spool = join(disk.folder, 'spool');
  const text = readdirSync(spool)
    .map((name) => readFileSync(join(spool, name), 'utf8'))
    .join('');
  const found = parseSegment(1, text).samples.flatMap(({ columns }) => [...columns.timestampMs]);
  t.same(
    found.slice(-20),
    rest.map(({ timestampMs }) => timestampMs),
  );
  t.equal(started.store.state().state, 'ok', 'the database was never degraded');
  t.ok(existsSync(started.store.state().path));
  await started.stop();
  t.equal((await (await startStore(t, folder)).rows()).length, 2 * MINUTE + 20);
});
