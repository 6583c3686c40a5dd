import t from 'tap';
import { type Change, longestGapSeconds, missingSamples, type Turn, turnsWithoutAlert } from './losses.ts';

const PERIOD = 100;
const every = (fromMs: number, toMs: number): number[] =>
  Array.from({ length: Math.ceil((toMs - fromMs) / PERIOD) }, (_, i) => fromMs + i * PERIOD);

t.test('counts sampling intervals without a sample', async (t) => {
  const count = (stamps: readonly number[]): number => missingSamples(stamps, PERIOD, 1000, 3000);
  t.equal(count(every(1000, 3000)), 0, 'none if every interval has a sample');
  t.equal(count(every(1099, 3000)), 0, 'also if the first interval began a little later');
  t.equal(count(every(1000, 3000).toReversed()), 0, 'in any order');
  t.equal(count(every(1000, 3000).map((stamp, i) => stamp + (i % 3))), 0, 'also with jitter in the stamps');
  t.equal(count(every(1000, 3000).filter((stamp) => stamp !== 1500)), 1);
  t.equal(count([...every(1000, 1500), ...every(2050, 3000)]), 6, 'a restart begins a new sampling grid');
  t.equal(count(every(2000, 3000)), 10, 'missing at the begin');
  t.equal(count(every(1000, 2000)), 10, 'missing at the end');
  t.equal(count([...every(0, 1000), ...every(1000, 3000), ...every(3000, 4000)]), 0, 'samples outside of the span do not count');
  t.equal(count([]), 20);
});

t.test('counts turns of a cause without an alert', async (t) => {
  const turns: Turn[] = [
    { atMs: 1000, isHigh: true },
    { atMs: 2000, isHigh: false },
    { atMs: 3000, isHigh: true },
  ];
  const raised = (atMs: number): Change => ({ atMs, resolved: false });
  const resolved = (atMs: number): Change => ({ atMs, resolved: true });
  const lost = (...changes: Change[]): number[] => turnsWithoutAlert(turns, changes, 200).map(({ atMs }) => atMs);
  t.same(lost(raised(1050), resolved(2050), raised(3050)), []);
  t.same(lost(raised(1990), resolved(2150), raised(9000)), [], 'late, but raised');
  t.same(lost(raised(3050)), [1000, 2000], 'raised and resolved between two samples');
  t.same(lost(raised(1050), raised(3050)), [2000]);
  t.same(lost(resolved(1050), raised(2300), resolved(3300)), [1000, 2000, 3000], 'of the wrong kind');
  t.same(lost(), [1000, 2000, 3000]);
});

t.test('returns the longest gap', async (t) => {
  t.equal(longestGapSeconds([1500, 1000, 2500], 0, 3000), 1);
  t.equal(longestGapSeconds([], 0, 3000), 3);
  t.equal(longestGapSeconds([100, 200], 0, 3000), 2.8);
});
