import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { DAY_MS } from '../../src/core/time.ts';
import { runs, SEED } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { datedFiles, daysOver, pruneDatedFiles, utcDay } from './dated-files.ts';

const NOW = Date.parse('2026-03-04T05:06:07Z');
const day = (ago: number): string => utcDay(NOW - ago * DAY_MS);
const PATTERN = /^m_(\d{4}-\d{2}-\d{2})(?:\.\d+)?\.csv$/;

t.test('what is older than is kept goes, the rest stays', async (t) => {
  const folder = join(temporaryFolder(t), 'm');
  mkdirSync(folder);
  const write = (name: string): void => writeFileSync(join(folder, name), 'x');
  for (let ago = 0; ago < 12; ago += 1) write(`m_${day(ago)}.csv`);
  write(`m_${day(11)}.2.csv`);
  write('m_notes.csv');
  write('other.txt');
  const removed = await pruneDatedFiles(folder, PATTERN, 10, NOW);
  t.same(removed.sort(), [`m_${day(11)}.2.csv`, `m_${day(11)}.csv`].sort());
  t.equal(readdirSync(folder).length, 13);
  t.same(await datedFiles(join(folder, 'none'), PATTERN), [], 'no folder: no files');
});

t.test('a clock that is absurdly ahead, or a machine that was off for a year, removes nothing', async (t) => {
  const days = Array.from({ length: 10 }, (_, ago) => day(ago));
  t.same(daysOver(days, 10, NOW + 300 * 365 * DAY_MS), []);
  t.same(daysOver(['2326-03-04', ...days], 10, NOW + 300 * 365 * DAY_MS), [day(9)], 'a day that is there counts as one');
  t.same(daysOver([day(400), day(399), day(0)], 10, NOW), [], 'few days of data stay, however old');
});

t.test('whatever the clock says: at most the days beyond keepDays go, oldest first, and never one that is young enough', async (t) => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.integer({ min: -5000, max: 20_000 }), { maxLength: 60 }),
      fc.integer({ min: 8, max: 40 }),
      fc.integer({ min: -9000, max: 90_000 }),
      (agos, keep, offset) => {
        const days = agos.map(day);
        const over = daysOver(days, keep, NOW + offset * DAY_MS);
        const left = days.filter((one) => !over.includes(one));
        return (
          left.length >= Math.min(days.length, keep) &&
          over.every((one) => left.every((other) => one < other)) &&
          over.every((one) => Date.parse(one) < NOW + (offset - keep + 1) * DAY_MS)
        );
      },
    ),
    { numRuns: runs(100, 2000), seed: SEED },
  );
  t.pass();
});
