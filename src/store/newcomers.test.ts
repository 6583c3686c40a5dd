import { cpSync } from 'node:fs';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { HOUR_MS, MINUTE_MS } from '../core/time/time.ts';
import { aggregate, history } from './queries/queries.ts';
import { testArchive } from './testing/archive.ts';
import { row, series, toColumns, toStatus } from './testing/rows.ts';
import { EVER, START, startStore } from './testing/store.ts';

const NOW = Date.parse('2026-03-04T10:00:00Z');
const TABLES = ['raw', 'minute', 'hour', 'rate', 'raw_hour'] as const;

t.test('a newcomer’s samples are readable but not written until it is established', async (t) => {
  const opened = testArchive(t, NOW);
  opened.localNode = 'here';
  opened.restart();
  const { archive } = opened;
  const rows = (): number[] =>
    TABLES.map((table) => (archive.db.prepare(`SELECT count(*) AS count FROM ${table}`).get() as { count: number }).count);
  const count = (node: string): number =>
    history(archive, { node, fromMs: 0, toMs: NOW + HOUR_MS, stepMs: null, order: 'asc', limit: 10_000 }).count;
  const received = (node: string): number | undefined =>
    aggregate(archive, { node, fromMs: NOW, toMs: NOW + HOUR_MS, by: null }, NOW + HOUR_MS)[0]?.samples_received;
  for (let minute = 0; minute < 3; minute += 1) {
    for (const node of ['robot', 'made_up'])
      archive.append(NOW + minute * MINUTE_MS, node, toColumns(series(NOW + minute * MINUTE_MS, 60)), true);
    archive.setRate('robot', 2, NOW);
    archive.commit(NOW + minute * MINUTE_MS);
  }
  t.same([archive.nodes(), rows()], [[], [0, 0, 0, 0, 0]]);
  t.same([count('robot'), received('robot'), count('made_up')], [180, 180, 180]);

  archive.drop('made_up');
  archive.append(NOW + 3 * MINUTE_MS, 'robot', toColumns(series(NOW + 3 * MINUTE_MS, 60)));
  archive.commit(NOW + 3 * MINUTE_MS);
  t.same(archive.nodes(), ['robot']);
  t.same(rows(), [4, 0, 0, 1, 1]);
  t.same([count('robot'), received('robot'), count('made_up')], [240, 240, 0]);
  archive.drop('robot');
  t.equal(count('robot'), 240, 'stored samples are not dropped');
  opened.nowMs = NOW + 3 * HOUR_MS;
  opened.restart();
  t.match(opened.archive.remoteNodes(), [{ name: 'robot', firstSeenMs: NOW, lastSeenMs: NOW + 3 * MINUTE_MS }]);
});

t.test('an endless stream of newcomers stays within bounds, and the newest samples are kept', async (t) => {
  const opened = testArchive(t, NOW);
  opened.localNode = 'here';
  opened.restart();
  const { archive } = opened;
  for (let minute = 0; minute < 5; minute += 1) {
    archive.append(NOW + minute, 'flood', toColumns(series(NOW + minute * MINUTE_MS, 60_000, 1)), true);
    archive.append(NOW + minute, 'here', toColumns(series(NOW + minute * MINUTE_MS, 60)));
    archive.commit(NOW + minute);
  }
  const { count, timestampMs } = history(archive, { ...EVER, node: 'flood', stepMs: null, order: 'asc', limit: 400_000 });
  t.equal(count, 180_000);
  t.equal(timestampMs[count - 1], NOW + 5 * MINUTE_MS - 1);
});

t.test('after a restart newcomers start over, and a stored node continues', async (t) => {
  const folder = temporaryFolder(t);
  const first = await startStore(t, folder);
  first.record(series(START, 10), 'robot');
  await first.store.flush();
  // State after a kill: in the spool but not committed.
  const status = toStatus(row(START + 20_000), 'newcomer');
  first.store.recordHealth(status, JSON.stringify(status), START + 20_000, true);
  first.record(series(START + 30_000, 10), 'robot');
  t.equal((await first.rows('newcomer')).length, 1);
  const killed = temporaryFolder(t);
  cpSync(folder, killed, { recursive: true });
  const second = await startStore(t, killed);
  t.equal((await second.rows('robot')).length, 20);
  t.equal((await second.rows('newcomer')).length, 0);
});
