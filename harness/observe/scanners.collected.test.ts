import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { HEADER } from '../../ops/collect/metrics-rows.ts';
import { csvRecord } from '../../src/core/csv.ts';
import { isoUtc, MINUTE_MS } from '../../src/core/time/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { collectedScanner } from './scanners.ts';

const MIDNIGHT = Date.parse('2026-03-05T00:00:00.000Z');
const at = (minute: number): number => MIDNIGHT + minute * MINUTE_MS;
const COLUMNS = HEADER.trim().split(',');

/** A row of the minute; `to` replaces cells. */
function row(minute: number, to: Readonly<Record<string, string>> = {}): string {
  const cells: Readonly<Record<string, string>> = {
    time: isoUtc(at(minute)),
    node_name: 'robot, "the one"',
    local: 'true',
    answered: 'true',
    ...to,
  };
  return csvRecord(COLUMNS.map((name) => cells[name] ?? ''));
}

function rig(t: Test) {
  const dataFolder = temporaryFolder(t);
  const folder = join(dataFolder, 'metrics');
  mkdirSync(folder);
  const file = (name: string): string => join(folder, `metrics_${name}.csv`);
  return { dataFolder, folder, file, scan: collectedScanner({ dataFolder }) };
}

t.test('counts the answered rows of the local node on the days of the range', async (t) => {
  const { file, scan } = rig(t);
  writeFileSync(file('2026-03-04'), HEADER + row(-3) + row(-2) + row(-1));
  const others = row(0, { local: 'false', node_name: 'other' }) + row(1, { answered: 'false', reason: 'ECONNREFUSED' });
  writeFileSync(file('2026-03-05'), HEADER + row(0) + others + row(4));
  writeFileSync(file('2026-03-05.2'), 'answered,local,time,novel\r\ntrue,true,2026-03-05T00:05:00.000Z,7\r\n');
  writeFileSync(file('2026-03-06'), 'damaged');
  t.match(await scan(at(-2), at(60)), {
    of: 'collected',
    count: 5,
    first: at(-2),
    last: at(5),
    longest_seconds: 240,
    gaps: [{ from: at(0), to: at(4), seconds: 240 }],
  });
});

t.test('consecutive scans neither leave a hole nor count a row twice while rows are written', async (t) => {
  const { file, scan } = rig(t);
  let written = -30;
  const write = (to: number): void => {
    for (; written < to; written += 1) {
      const name = file(isoUtc(at(written)).slice(0, 10));
      try {
        writeFileSync(name, HEADER, { flag: 'wx' });
      } catch {
        // It exists already.
      }
      appendFileSync(name, row(written));
    }
  };
  write(-5);
  const counts: number[] = [];
  for (const [from, to, until] of [
    [-30, -10, -4],
    [-10, 0, 2],
    [0, 7, 20],
    [7, 12, 20],
    [12, 40, 60],
  ] as const) {
    write(until);
    counts.push((await scan(at(from), at(to)))?.count ?? -1);
  }
  t.same(counts, [20, 10, 7, 5, 28]);
  t.match(await scan(at(-30), at(40)), { count: 70, longest_seconds: 60, gaps: [] }, 'another range is read from its beginning');
});

t.test('handles a row that is being written, and rows from before the clock was set back', async (t) => {
  const { file, scan } = rig(t);
  const half = row(2).slice(0, 40);
  writeFileSync(file('2026-03-05'), HEADER + row(0) + row(1) + half);
  t.match(await scan(at(0), at(3)), { count: 2 });
  appendFileSync(file('2026-03-05'), row(2).slice(40) + row(5) + row(3) + row(4));
  t.match(await scan(at(3), at(5)), { count: 2, first: at(3), last: at(4) });
  t.match(await scan(at(5), at(6)), { count: 1 });
});

t.test('a missing or unreadable folder gives no scan; a day without a file gives a scan of no rows', async (t) => {
  const { dataFolder, folder, file, scan } = rig(t);
  t.match(await scan(at(0), at(60)), { count: 0, first: null });
  mkdirSync(file('2026-03-05'));
  t.equal(await scan(at(0), at(60)), null, 'a file that cannot be read');
  rmSync(folder, { recursive: true });
  t.equal(await scan(at(0), at(60)), null);
  t.match(await scan(at(0), at(0)), { count: 0 });
  writeFileSync(folder, '');
  t.equal(await collectedScanner({ dataFolder })(at(0), at(60)), null, 'a file where the folder should be');
});
