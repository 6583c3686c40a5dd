import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { ALL, change, NOW } from './testing/alerts.ts';
import { series } from './testing/rows.ts';
import { EVER, START, startStore, until } from './testing/store.ts';

// A disk that does not answer (a dying card, a mount that is gone) holds the store's thread in the kernel.

const worker = new URL('./testing/mortal-worker.ts', import.meta.url);

t.test('whoever asks gets an answer while the disk hangs, and nothing recorded is lost', async (t) => {
  const started = await startStore(t, temporaryFolder(t), { worker });
  const { store } = started;
  started.record(series(START, 10));
  await started.rows();
  // Answered, and then it stands still.
  await store.history({ node: 'hang', ...EVER, stepMs: null, order: 'asc', limit: 1 });
  started.record(series(START + 10_000, 5));
  const news = store.recordAlert(change('a/cpu_percent/1', NOW));
  const reads = [store.alerts(ALL), store.clockEvents(10), started.rows()];
  t.equal(store.state().state, 'ok', 'a moment is no hang');
  for (const read of reads)
    await t.rejects(read as Promise<unknown>, { name: 'StoreHangs', message: /^the disk has not answered for [45] s$/ });
  await t.rejects(store.alerts(ALL), { name: 'StoreHangs' }, 'at once by now');
  t.match(store.state(), { state: 'degraded', error: /^the disk has not answered for [45] s$/, since: /Z$/ });
  t.equal(await news, true, 'an alert went its way');
  await until('the disk answers', () => store.state().state === 'ok');
  t.equal(store.state().error, null);
  t.same(await started.rows(), series(START, 15), 'what was recorded meanwhile is there');
  t.same((await store.alerts(ALL)).alerts, [change('a/cpu_percent/1', NOW)]);
  const told = started.logged.map(({ message }) => message);
  t.match(told, [/does not answer/, /answers again/]);
  t.equal(told.length, 2);
});
