import t from 'tap';
import { StampCounter } from './coverage.ts';

const at = (...seconds: number[]): number[] => seconds.map((second) => second * 1000);

function scan(of: 'stored' | 'collected', from: number, to: number, stamps: readonly number[]) {
  const count = new StampCounter(of, from, to);
  for (const stamp of stamps) count.add(stamp);
  return count.result();
}

t.test('counts what lies in the range, from its beginning on and without its end', async (t) => {
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

t.test('neighbours further apart than usual are listed', async (t) => {
  t.same(scan('stored', 0, 1e6, at(0, 60, 121)).gaps, [{ from: 60_000, to: 121_000, seconds: 61 }]);
  t.same(scan('collected', 0, 1e6, at(0, 150, 300.5)).gaps, [{ from: 150_000, to: 300_500, seconds: 150.5 }]);
  t.equal(scan('stored', 0, 1e6, at(0, 60, 121)).longest_seconds, 61);
});

t.test('a clock that was set back, and the same again, make no gap and hide none', async (t) => {
  const found = scan('collected', 0, 1e6, at(100, 160, 100, 40, 160, 220, 400));
  t.match(found, { count: 7, first: 100_000, last: 400_000, longest_seconds: 180, gaps: [{ from: 220_000, to: 400_000 }] });
});

t.test('the number of listed gaps is bounded; the longest covers all of them', async (t) => {
  const found = scan('stored', 0, 1e9, [...Array.from({ length: 3000 }, (_, i) => i * 100_000), 500_000_000]);
  t.equal(found.gaps.length, 1000);
  t.equal(found.longest_seconds, (500_000_000 - 299_900_000) / 1000);
});
