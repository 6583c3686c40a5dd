import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { DAY_MS } from '../../src/core/time/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { collectMetrics } from '../collect_metrics.ts';
import { utcDay } from '../lib/files.ts';
import { contextFor, GIVEN, NOT_THERE } from './testing/context.ts';

const NOW = Date.parse('2026-03-04T05:06:07.089Z');
const KEEP_DAYS = 90;

t.test('the first row of a day removes expired files and logs that; other rows do not read the folder', async (t) => {
  const data = temporaryFolder(t);
  const folder = join(data, 'metrics');
  mkdirSync(folder);
  const name = (ago: number): string => `metrics_${utcDay(NOW - ago * DAY_MS)}.csv`;
  for (let ago = 1; ago <= KEEP_DAYS + 5; ago += 1) writeFileSync(join(folder, name(ago)), 'x');
  const context = contextFor(data, NOT_THERE, { nowMs: () => NOW });
  const { document } = await collectMetrics.run(context, GIVEN);
  const { pruned } = document as { pruned: string[] };
  t.same(pruned.sort(), [name(95), name(94), name(93), name(92), name(91)]);
  t.equal(readdirSync(folder).length, KEEP_DAYS + 1);
  t.match(context.logged, ['files older than ops.keep_days removed']);
  writeFileSync(join(folder, name(200)), 'x');
  t.match(await collectMetrics.run(context, GIVEN), { status: 'WARNING', document: { pruned: [] } });
});

t.test('a clock that is years ahead removes no retained day; one set back continues the file of its day', async (t) => {
  const data = temporaryFolder(t);
  const run = (nowMs: number) => collectMetrics.run(contextFor(data, NOT_THERE, { nowMs: () => nowMs }), GIVEN);
  for (let ago = 20; ago >= 0; ago -= 1) await run(NOW - ago * DAY_MS);
  await run(NOW + 30_000 * DAY_MS);
  await run(NOW - 3 * DAY_MS);
  const names = readdirSync(join(data, 'metrics'));
  t.equal(names.length, 22);
  t.ok(names.includes(`metrics_${utcDay(NOW + 30_000 * DAY_MS)}.csv`));
});

t.test('a run that is ended early writes no row, because it shows nothing about the service', async (t) => {
  const data = temporaryFolder(t);
  const signal = AbortSignal.abort(new Error('the scheduler ends'));
  t.match(await collectMetrics.run(contextFor(data, NOT_THERE, { signal }), GIVEN), {
    status: 'UNKNOWN',
    lines: ['UNKNOWN  ended before a row was written: the scheduler ends'],
  });
  t.same(readdirSync(data), []);
  t.match(await collectMetrics.run(contextFor(data, NOT_THERE), { options: { 'dry-run': true }, positionals: [] }), {
    status: 'WARNING',
    lines: [/^time,/, /,health_monitor,true,false,/],
  });
  t.same(readdirSync(data), [], 'a dry run neither');
});
