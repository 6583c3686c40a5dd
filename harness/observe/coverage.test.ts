import t from 'tap';
import { type Scan, Scans, StampCounter } from './coverage.ts';

const at = (...seconds: number[]): number[] => seconds.map((second) => second * 1000);

function scan(of: 'stored' | 'collected', from: number, to: number, stamps: readonly number[]) {
  const count = new StampCounter(of, from, to);
  for (const stamp of stamps) count.add(stamp);
  return count.result();
}

t.test('counts samples from the beginning of the range up to, but not including, its end', async (t) => {
  t.same(scan('stored', 1000, 4000, at(0, 1, 2, 3, 4, 5)), {
    of: 'stored',
    from: 1000,
    to: 4000,
    count: 3,
    first: 1000,
    last: 3000,
    longest_seconds: 1,
    gaps: [],
  });
  t.match(scan('stored', 1000, 4000, []), { count: 0, first: null, last: null, longest_seconds: 0, gaps: [] });
  t.match(scan('stored', 1000, 4000, [1500]), { count: 1, first: 1500, last: 1500, longest_seconds: 0 });
});

t.test('lists gaps that are longer than usual', async (t) => {
  t.same(scan('stored', 0, 1e6, at(0, 60, 121)).gaps, [{ from: 60_000, to: 121_000, seconds: 61 }]);
  t.same(scan('collected', 0, 1e6, at(0, 150, 300.5)).gaps, [{ from: 150_000, to: 300_500, seconds: 150.5 }]);
  t.equal(scan('stored', 0, 1e6, at(0, 60, 121)).longest_seconds, 61);
});

t.test('a clock that was set back, or a repeated stamp, neither makes nor hides a gap', async (t) => {
  const found = scan('collected', 0, 1e6, at(100, 160, 100, 40, 160, 220, 400));
  t.match(found, { count: 7, first: 100_000, last: 400_000, longest_seconds: 180, gaps: [{ from: 220_000, to: 400_000 }] });
});

t.test('the number of listed gaps is bounded, and the longest gap covers all of them', async (t) => {
  const found = scan('stored', 0, 1e9, [...Array.from({ length: 3000 }, (_, i) => i * 100_000), 500_000_000]);
  t.equal(found.gaps.length, 1000);
  t.equal(found.longest_seconds, (500_000_000 - 299_900_000) / 1000);
});

function scanning(answers: () => boolean = () => true): { scans: Scans; requests: (readonly [number, number])[] } {
  const requests: (readonly [number, number])[] = [];
  const source = async (from: number, to: number): Promise<Scan | null> => {
    requests.push([from, to]);
    return answers() ? { of: 'stored', from, to, count: 0, first: null, last: null, longest_seconds: 0, gaps: [] } : null;
  };
  return { scans: new Scans({ stored: source, collected: null }, { stored: 100, collected: 100 }), requests };
}

t.test('scans are consecutive', async (t) => {
  const { requests, scans } = scanning();
  t.equal((await scans.scanUntil(200)).length, 1);
  t.equal((await scans.scanUntil(300)).length, 1);
  t.same(requests, [
    [100, 200],
    [200, 300],
  ]);
  t.equal((await scans.scanUntil(300)).length, 0, 'nothing has passed');
});

t.test('a range that cannot be scanned is left to the next scan', async (t) => {
  let isThere = false;
  const { requests, scans } = scanning(() => isThere);
  t.equal((await scans.scanUntil(200)).length, 0);
  isThere = true;
  await scans.scanUntil(300);
  t.same(requests.at(-1), [100, 300]);
});

t.test('a failed scan is left to the next one', async (t) => {
  const fails = async (): Promise<null> => {
    throw new Error('no');
  };
  const scans = new Scans({ stored: fails, collected: null }, { stored: 0, collected: 0 });
  t.same(await scans.scanUntil(10), []);
});

t.test('after the clock was set back, scans up to the former time and then from the new one', async (t) => {
  const { requests, scans } = scanning();
  const before = scans.clockSetBack(500, 150);
  const after = scans.scanUntil(600);
  t.equal((await before).length, 1);
  await after;
  t.same(requests, [
    [100, 500],
    [150, 600],
  ]);
});

t.test('the first scan starts where a later run begins', async (t) => {
  const { requests, scans } = scanning();
  scans.beginAt(180);
  await scans.scanUntil(200);
  t.same(requests, [[180, 200]]);
});
