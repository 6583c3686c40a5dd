import { existsSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';
import { ALL, change, NOW } from './testing/alerts.ts';
import { sameRows, series } from './testing/rows.ts';
import { EVER, NODE, START, startStore, TestStore } from './testing/store.ts';

// The database has a thread of its own; if it crashes (out of memory, a bug), the store loads the unwritten records from the spool and
// starts a new thread.

/** Commands of the worker for this test. */
const CRASH_NOW = 'crash now';
const CRASH_AT_COMMIT = 'crash at commit';
const worker = new URL('./testing/crashing-worker.ts', import.meta.url);

const ask = (started: TestStore, node: string): Promise<unknown> =>
  started.store.history({ node, ...EVER, stepMs: null, order: 'asc', limit: 1 }).catch(() => null);

const crashes = (started: TestStore): number => started.logged.filter(({ level }) => level === 'error').length;

async function die(started: TestStore, during: () => void = () => undefined): Promise<void> {
  const before = crashes(started);
  const dying = ask(started, CRASH_NOW);
  during();
  await dying;
  await until('it crashed', () => crashes(started) > before);
}

t.test('the thread crashes: no record before, meanwhile or after is lost or duplicated', async (t) => {
  const folder = temporaryFolder(t);
  const started = await startStore(t, folder, { worker, retrySeconds: 10 });
  started.record(series(START, 50));
  await started.rows(); // Sends the batches to the thread.
  started.record(series(START + 50_000, 50)); // These samples are not sent yet.
  await die(started);
  t.equal(started.store.state().state, 'degraded');
  t.match(started.store.state().error, /crash requested by the test/);
  await t.rejects(started.rows());
  started.record(series(START + 100_000, 30));
  started.record(series(START + 130_000, 3000)); // More than one batch.
  started.recordNextMinute(series(START + 3_130_000, 20));
  await started.store.recordAlert(change('a/cpu_percent/1', NOW));
  started.store.recordClockEvent({ kind: 'step', timestamp_ms: START, delta_seconds: 1 });
  started.wait(10);
  await until('it works again', () => started.store.state().state === 'ok');
  started.record(series(START + 3_150_000, 50));
  const all = series(START, 3200);
  sameRows(t, await started.rows(), all);
  t.same((await started.store.alerts(ALL)).alerts, [change('a/cpu_percent/1', NOW)]);
  t.equal((await started.store.clockEvents(10)).length, 1);
  t.equal(started.store.state().samples_lost, 0);
  await started.stop();
  t.notOk(existsSync(join(folder, 'run', 'spool')));
  sameRows(t, await (await startStore(t, folder)).rows(), all);
});

t.test('the thread crashes between a commit and its response', async (t) => {
  const folder = temporaryFolder(t);
  const started = await startStore(t, folder, { worker });
  started.record(series(START, 59));
  await ask(started, CRASH_AT_COMMIT);
  started.recordNextMinute(series(START + 59_000, 11));
  await until('it crashed', () => crashes(started) > 0);
  started.record(series(START + 70_000, 30));
  await until('it works again', () => started.store.state().state === 'ok');
  sameRows(t, await started.rows(), series(START, 100));
  const [whole] = await started.store.aggregate({ node: NODE, ...EVER, by: null });
  t.equal(whole?.samples_received, 100);
});

t.test('the thread crashes repeatedly', async (t) => {
  const folder = temporaryFolder(t);
  const started = await startStore(t, folder, { worker });
  for (let round = 0; round < 3; round += 1) {
    started.record(series(START + round * 20_000, 10));
    await die(started, () => started.record(series(START + round * 20_000 + 10_000, 5)));
    started.record(series(START + round * 20_000 + 15_000, 5));
    await until('it works again', () => started.store.state().state === 'ok');
  }
  sameRows(t, await started.rows(), series(START, 60));
});

t.test('the store is stopped or killed while the thread is dead: the next start has all records', async (t) => {
  const folder = temporaryFolder(t);
  const started = await startStore(t, folder, { worker, retrySeconds: 1000 });
  started.record(series(START, 10));
  await die(started);
  started.record(series(START + 10_000, 10));
  await started.stop();
  sameRows(t, await (await startStore(t, folder)).rows(), series(START, 20));
});

t.test('no thread can be started at first: records are in the spool, and open episodes are reported as soon as there is one', async (t) => {
  const folder = temporaryFolder(t);
  const earlier = await startStore(t, folder);
  earlier.record(series(START, 10));
  await earlier.store.recordAlert(change('a/cpu_percent/1', NOW));
  await earlier.stop();
  const program = join(folder, 'worker.ts'); // A program that is missing fails as a thread without free descriptors does.
  const started = new TestStore(folder, { worker: pathToFileURL(program), retrySeconds: 10 });
  t.teardown(() => started.stop());
  t.same((await started.store.start()).openAlerts, []);
  t.equal(started.store.state().state, 'degraded');
  started.record(series(START + 10_000, 10));
  await started.store.recordAlert(change('a/cpu_percent/2', NOW));
  started.recordNextMinute(series(START + 20_000, 10));
  symlinkSync(fileURLToPath(worker), program);
  started.wait(10);
  await until('it works', () => started.store.state().state === 'ok');
  t.same(started.lateOpens, [[change('a/cpu_percent/1', NOW)]], 'except the episodes of this run');
  sameRows(t, await started.rows(), series(START, 30));
  t.equal((await started.store.alerts(ALL)).alerts.length, 2);
  await die(started);
  started.wait(10);
  await until('it works again', () => started.store.state().state === 'ok');
  t.equal(started.lateOpens.length, 1, 'a later thread reports none again');
});

t.test('samples that neither the spool nor a thread has are counted as lost', async (t) => {
  const folder = temporaryFolder(t);
  const started = await startStore(t, folder, { worker, retrySeconds: 10 });
  const spool = join(folder, 'run', 'spool');
  rmSync(spool, { recursive: true });
  writeFileSync(spool, ''); // A file in the place of the folder.
  started.record(series(START, 5));
  await die(started);
  started.record(series(START + 5000, 5));
  rmSync(spool);
  started.wait(10);
  await until('it works again', () => started.store.state().state === 'ok');
  started.record(series(START + 10_000, 5));
  sameRows(t, await started.rows(), series(START + 10_000, 5));
  t.equal(started.store.state().samples_lost, 10);
});
