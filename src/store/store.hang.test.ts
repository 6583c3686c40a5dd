import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';
import { ALL, change, NOW } from './testing/alerts.ts';
import { series } from './testing/rows.ts';
import { EVER, START, startStore } from './testing/store.ts';

// A disk that does not respond (a failing card, a lost mount) blocks the store's thread in the kernel.

const worker = new URL('./testing/crashing-worker.ts', import.meta.url);

t.test('while the disk hangs every read fails with an error, and no record is lost', async (t) => {
  const folder = temporaryFolder(t);
  const answering = join(folder, 'answering');
  const started = await startStore(t, folder, { worker });
  const { store } = started;
  started.record(series(START, 10));
  await started.rows();
  // The thread responds and then blocks.
  await store.history({ node: `hang until ${answering}`, ...EVER, stepMs: null, order: 'asc', limit: 1 });
  t.teardown(() => writeFileSync(answering, ''));
  started.record(series(START + 10_000, 5));
  const alert = store.recordAlert(change('a/cpu_percent/1', NOW));
  let isPublished = false;
  void alert.then(() => {
    isPublished = true;
  });
  const reads = [store.alerts(ALL), store.clockEvents(10), started.rows()].map((read) =>
    t.rejects(read as Promise<unknown>, { name: 'StoreHangs', message: /^no response from the disk for [45] s$/ }),
  );
  started.wait(0.4);
  await new Promise(setImmediate);
  t.notOk(isPublished, 'an alert waits for the disk');
  started.wait(0.2);
  t.equal((await alert).isNew, true, 'at most for the timeout');
  started.wait(3.2);
  t.equal(store.state().state, 'ok', 'a short delay is no hang');
  started.wait(0.3);
  t.equal(store.state().state, 'ok', 'a second check confirms the hang');
  started.wait(0.2);
  await Promise.all(reads);
  await t.rejects(store.alerts(ALL), { name: 'StoreHangs' }, 'reads now fail at once');
  t.match(store.state(), { state: 'degraded', error: /^no response from the disk for [45] s$/, since: /Z$/ });
  writeFileSync(answering, '');
  await until('the disk answers', () => store.state().state === 'ok');
  t.equal(store.state().error, null);
  t.same(await started.rows(), series(START, 15), 'records made meanwhile are stored');
  t.same((await store.alerts(ALL)).alerts, [change('a/cpu_percent/1', NOW)]);
  t.match(
    started.logged.map(({ message }) => message),
    [/does not respond/, /responds again/],
  );
  t.equal(started.logged.length, 2);
});
