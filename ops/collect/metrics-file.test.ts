import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { DAY_MS } from '../../src/core/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { appendMetrics } from './metrics-rows.ts';

const NOW = Date.parse('2026-03-04T05:06:07.089Z');
const A = 'time,value\r\n';
const B = 'time,value,more\r\n';

t.test('a day has one file; other columns begin another one, which is continued', async (t) => {
  const folder = join(temporaryFolder(t), 'metrics');
  const append = (header: string, row: string, ms = NOW) => appendMetrics(folder, header, row, ms);
  const text = (name: string): string => readFileSync(join(folder, name), 'utf8');
  t.match(await append(A, '1\r\n'), { file: 'metrics_2026-03-04.csv', isNew: true, cut: 0 });
  t.match(await append(A, '2\r\n'), { file: 'metrics_2026-03-04.csv', isNew: false });
  t.match(await append(B, '3\r\n'), { file: 'metrics_2026-03-04.2.csv', isNew: true });
  t.match(await append(B, '4\r\n'), { file: 'metrics_2026-03-04.2.csv', isNew: false });
  t.match(await append(A, '5\r\n'), { file: 'metrics_2026-03-04.3.csv', isNew: true }, 'the order of files is that of writing');
  t.match(await append(A, '6\r\n', NOW - DAY_MS), { file: 'metrics_2026-03-03.csv', isNew: true }, 'a clock that was set back');
  t.equal(text('metrics_2026-03-04.csv'), `${A}1\r\n2\r\n`);
  t.equal(text('metrics_2026-03-04.2.csv'), `${B}3\r\n4\r\n`);
  for (let n = 4; n < 12; n += 1) await append(n % 2 ? A : B, 'x\r\n');
  t.ok(readdirSync(folder).includes('metrics_2026-03-04.10.csv'));
});

t.test('a header that is torn anywhere is written again; one of zeros is not continued', async (t) => {
  for (let at = 0; at <= A.length; at += 1) {
    const folder = temporaryFolder(t);
    const file = join(folder, 'metrics_2026-03-04.csv');
    writeFileSync(file, A.slice(0, at));
    t.match(await appendMetrics(folder, A, '1\r\n', NOW), { file: 'metrics_2026-03-04.csv', cut: at === A.length ? 0 : at });
    t.equal(readFileSync(file, 'utf8'), `${A}1\r\n`);
  }
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'metrics_2026-03-04.csv'), Buffer.alloc(4096));
  t.match(await appendMetrics(folder, A, '1\r\n', NOW), { file: 'metrics_2026-03-04.2.csv' });
});
