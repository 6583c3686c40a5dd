import { cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';
import { EVER as ALERTS_EVER, ALL, allPages, change, NOW } from './testing/alerts.ts';
import { row, sameRows, series } from './testing/rows.ts';
import { EVER, NODE, START, startStore, TestStore } from './testing/store.ts';

t.test('records can be read at once and after a restart', async (t) => {
  const folder = temporaryFolder(t);
  const first = await startStore(t, folder);
  first.record(series(START, 100));
  first.record(series(START, 3), 'robot');
  await first.store.recordAlert(change('a/cpu_percent/1', NOW));
  first.store.recordClockEvent({ kind: 'step', timestamp_ms: START, delta_seconds: 2 });
  const check = async ({ store, rows }: { store: typeof first.store; rows: () => Promise<unknown> }): Promise<void> => {
    t.same(await rows(), series(START, 100));
    t.same((await store.alerts(ALL)).alerts, [change('a/cpu_percent/1', NOW)]);
    t.same(await store.clockEvents(10), [{ kind: 'step', timestamp_ms: START, delta_seconds: 2 }]);
    const [whole] = await store.aggregate({ node: 'robot', ...EVER, by: null });
    t.equal(whole?.samples_received, 3);
  };
  await check({ store: first.store, rows: () => first.rows() });
  t.match(first.store.state(), { state: 'ok', error: null, samples_pending: 103, samples_lost: 0, quarantined: [] });
  await first.stop();
  t.notOk(existsSync(join(folder, 'run', 'spool')), 'a clean stop removes the spool');

  const second = new TestStore(folder);
  t.teardown(() => second.stop());
  const past = await second.store.start();
  t.same(past.openAlerts, [change('a/cpu_percent/1', NOW)]);
  t.same([...past.readableMetrics].sort(), ['cpu_percent', 'disk_percent', 'memory_percent', 'temperature']);
  t.same([...past.nodes].sort(), [NODE, 'robot']);
  t.notOk(second.logged.some(({ message }) => message.includes('recovered')));
  await check({ store: second.store, rows: () => second.rows() });
  t.match(second.store.state(), { state: 'ok', samples_pending: 0, oldest_sample: new Date(START).toISOString() });
});

t.test('metrics without a value in the newest samples were not readable', async (t) => {
  const folder = temporaryFolder(t);
  const first = await startStore(t, folder);
  first.record([{ ...row(START), values: [1, null, 3, null] }]);
  await first.stop();
  const second = new TestStore(folder);
  t.teardown(() => second.stop());
  t.same([...(await second.store.start()).readableMetrics].sort(), ['cpu_percent', 'disk_percent']);
});

t.test('a minute’s samples are written together and then leave the spool', async (t) => {
  const folder = temporaryFolder(t);
  const started = await startStore(t, folder);
  started.record(series(START, 59));
  t.equal(started.store.state().samples_pending, 59);
  started.recordNextMinute(series(START + 60_000, 1));
  await until('the minute is written', () => started.store.state().samples_pending === 0);
  t.equal(readdirSync(join(folder, 'run', 'spool')).length, 1);
  t.ok(started.store.state().size_bytes > 0);
  t.equal((await started.rows()).length, 60);
});

t.test('a stop waits for the commit in progress and writes the rest', async (t) => {
  const folder = temporaryFolder(t);
  const started = await startStore(t, folder);
  started.record(series(START, 60));
  started.recordNextMinute(series(START + 60_000, 30));
  await started.stop();
  t.notOk(existsSync(join(folder, 'run', 'spool')));
  const next = await startStore(t, folder);
  sameRows(t, await next.rows(), series(START, 90));
});

t.test('records made before and during the start are not lost', async (t) => {
  const folder = temporaryFolder(t);
  const started = new TestStore(folder);
  t.teardown(() => started.stop());
  started.record(series(START, 5));
  started.store.recordClockEvent({ kind: 'suspend', timestamp_ms: START, delta_seconds: 9 });
  const alerting = started.store.recordAlert(change('a/cpu_percent/1', NOW));
  const starting = started.store.start();
  started.record(series(START + 5000, 5));
  started.recordNextMinute(series(START + 10_000, 5));
  await Promise.all([starting, alerting]);
  started.record(series(START + 15_000, 5));
  sameRows(t, await started.rows(), series(START, 20));
  t.equal((await started.store.clockEvents(10)).length, 1);
  t.equal((await started.store.alerts(ALL)).alerts.length, 1);
  t.equal(started.store.state().state, 'ok');
  t.notOk(started.logged.some(({ level }) => level === 'error'));
  await started.stop();
  sameRows(t, await (await startStore(t, folder)).rows(), series(START, 20));
});

t.test('a store that was never started can be stopped', async (t) => {
  const never = new TestStore(temporaryFolder(t));
  never.record(series(START, 5));
  await never.stop();
  await t.rejects(never.rows(), /not open/);
});

t.test('the spool of a crashed run is loaded once, also after a crash between commit and removal', async (t) => {
  const folder = temporaryFolder(t);
  const spool = join(folder, 'run', 'spool');
  const first = await startStore(t, folder);
  first.record(series(START, 50));
  await first.store.recordAlert(change('a/cpu_percent/1', NOW));
  const copy = join(folder, 'copy');
  cpSync(spool, copy, { recursive: true });
  first.recordNextMinute(series(START + 50_000, 50));
  await first.store.recordAlert(change('a/cpu_percent/1', NOW + 1000, { resolved: true }));
  await until('the first minute is written', () => first.store.state().samples_pending < 50);
  await first.stop();
  const all = series(START, 100);
  for (const round of ['first', 'second']) {
    cpSync(copy, spool, { recursive: true });
    t.equal(readdirSync(spool).length, 1);
    const next = await startStore(t, folder);
    sameRows(t, await next.rows(), all, `${round} start after it`);
    t.notOk(next.logged.some(({ message }) => message.includes('recovered')));
    t.same(readdirSync(spool).length, 1, 'and only the new segment is left');
    t.same((await next.store.alerts({ ...ALL, range: ALERTS_EVER })).alerts, [change('a/cpu_percent/1', NOW + 1000, { resolved: true })]);
    t.equal((await next.store.alerts({ ...ALL, range: ALERTS_EVER, changes: true })).alerts.length, 2);
    const [whole] = await next.store.aggregate({ node: NODE, ...EVER, by: null });
    t.equal(whole?.samples_received, 100);
    await next.stop();
  }
});

t.test('a segment whose beginning is missing from the spool is still recognized', async (t) => {
  const folder = temporaryFolder(t);
  const spool = join(folder, 'run', 'spool');
  const first = await startStore(t, folder);
  first.record(series(START, 40));
  const name = readdirSync(spool)[0] as string;
  await first.stop();
  const lines = series(START + 30_000, 10).map((sample) =>
    JSON.stringify({ ...sample, cpu_percent: 1, status: 'OK', node_name: NODE, timestamp: new Date(sample.timestampMs).toISOString() }),
  );
  mkdirSync(spool);
  writeFileSync(join(spool, name), `${lines.join('\n')}\n`);
  t.equal((await (await startStore(t, folder)).rows()).length, 40);
});

t.test('unrelated files and torn lines in the spool do not prevent the start', async (t) => {
  const folder = temporaryFolder(t);
  const first = await startStore(t, folder);
  await first.stop();
  const spool = join(folder, 'run', 'spool');
  mkdirSync(spool);
  const good = JSON.stringify({
    cpu_percent: 1,
    memory_percent: 1,
    disk_percent: 1,
    temperature: 1,
    status: 'OK',
    node_name: NODE,
    timestamp: new Date(START).toISOString(),
  });
  writeFileSync(
    join(spool, '7.ndjson'),
    `not a record\n{"alert_id":"x/y/z","resolved":false,"timestamp":"2026-01-01T00:00:00Z"}\n${good}\n${good.slice(0, 40)}`,
  );
  writeFileSync(join(spool, '8.ndjson'), Buffer.from([0, 255, 254, 10, 0]));
  const next = await startStore(t, folder);
  t.same(await next.rows(), [row(START)]);
  t.equal(next.store.state().state, 'ok');
});

t.test('a status with an invalid time stamp is not stored, and the store continues', async (t) => {
  const started = await startStore(t, temporaryFolder(t));
  const status = {
    cpu_percent: 1,
    memory_percent: 1,
    disk_percent: 1,
    temperature: 1,
    status: 'OK',
    node_name: 'robot',
    timestamp: '?',
  } as const;
  for (const time of [Number.NaN, Infinity, 8.64e15, -8.64e15]) started.store.recordHealth(status, JSON.stringify(status), time);
  started.record([row(START)], 'robot');
  started.recordNextMinute([row(START + 1000)], 'robot');
  t.same(await started.rows('robot'), [row(START), row(START + 1000)]);
  await until('it is written', () => started.store.state().last_write !== null && started.store.state().samples_pending === 0);
  t.equal(started.store.state().state, 'ok');
  t.equal(started.logged.filter(({ level }) => level === 'warning').length, 1, 'said once');
});

t.test('two stores on one folder: the second is refused and changes nothing', async (t) => {
  const folder = temporaryFolder(t);
  const first = await startStore(t, folder);
  first.record(series(START, 10));
  const second = new TestStore(folder);
  second.record(series(START + 5_000_000, 3));
  await t.rejects(second.store.start(), { name: 'DataFolderInUse', message: /data/ });
  await second.stop();
  t.same(readdirSync(join(folder, 'run', 'spool')).length, 1);
  first.recordNextMinute(series(START + 10_000, 10));
  sameRows(t, await first.rows(), series(START, 20));
  await first.stop();
  const third = await startStore(t, folder);
  sameRows(t, await third.rows(), series(START, 20), 'and once the first is gone, the folder is free');
});

t.test('a folder that cannot be created is an error', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'data'), 'a file has that path');
  const started = new TestStore(folder);
  await t.rejects(started.store.start(), { code: 'EEXIST' });
  await started.stop();
  t.notOk(existsSync(join(folder, 'run')));
});

t.test('alerts are paged through the thread as well', async (t) => {
  const { store } = await startStore(t, temporaryFolder(t));
  const alerts = Array.from({ length: 30 }, (_, i) => change(`a/cpu_percent/${String(i).padStart(2, '0')}`, NOW));
  await Promise.all(alerts.map((alert) => store.recordAlert(alert)));
  const all = await store.alerts(ALL);
  t.same(
    allPages(() => all, ALL),
    alerts.toReversed(),
  );
  const first = await store.alerts({ ...ALL, limit: 20 });
  const rest = await store.alerts({ ...ALL, limit: 20, after: first.next });
  t.same([...first.alerts, ...rest.alerts], alerts.toReversed());
  t.equal(rest.next, null);
});
