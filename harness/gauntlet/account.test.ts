import t from 'tap';
import { type Change, longestSilenceSeconds, slotsWithout, type Turn, unanswered } from './account.ts';

const PERIOD = 100;
const every = (fromMs: number, toMs: number): number[] =>
  Array.from({ length: Math.ceil((toMs - fromMs) / PERIOD) }, (_, i) => fromMs + i * PERIOD);

t.test('slots without a sample', async (t) => {
  const count = (stamps: readonly number[]): number => slotsWithout(stamps, PERIOD, 1000, 3000);
  t.equal(count(every(1000, 3000)), 0, 'none, where every slot has one');
  t.equal(count(every(1099, 3000)), 0, 'also where the first slot began a little later');
  t.equal(count(every(1000, 3000).toReversed()), 0, 'in any order');
  t.equal(count(every(1000, 3000).map((stamp, i) => stamp + (i % 3))), 0, 'also with stamps that tremble');
  t.equal(count(every(1000, 3000).filter((stamp) => stamp !== 1500)), 1);
  t.equal(count([...every(1000, 1500), ...every(2050, 3000)]), 6, 'a restart begins a grid of its own');
  t.equal(count(every(2000, 3000)), 10, 'what is missing from the beginning');
  t.equal(count(every(1000, 2000)), 10, 'or up to the end');
  t.equal(count([...every(0, 1000), ...every(1000, 3000), ...every(3000, 4000)]), 0, 'what lies beyond does not matter');
  t.equal(count([]), 20);
});

t.test('turns of a cause that no alert answers', async (t) => {
  const turns: Turn[] = [
    { atMs: 1000, isHigh: true },
    { atMs: 2000, isHigh: false },
    { atMs: 3000, isHigh: true },
  ];
  const raised = (atMs: number): Change => ({ atMs, resolved: false });
  const resolved = (atMs: number): Change => ({ atMs, resolved: true });
  const lost = (...changes: Change[]): number[] => unanswered(turns, changes, 200).map(({ atMs }) => atMs);
  t.same(lost(raised(1050), resolved(2050), raised(3050)), []);
  t.same(lost(raised(1990), resolved(2150), raised(9000)), [], 'late, but told');
  t.same(lost(raised(3050)), [1000, 2000], 'come and gone while nobody looked');
  t.same(lost(raised(1050), raised(3050)), [2000]);
  t.same(lost(resolved(1050), raised(2300), resolved(3300)), [1000, 2000, 3000], 'of the wrong kind');
  t.same(lost(), [1000, 2000, 3000]);
});

t.test('the longest silence', async (t) => {
  t.equal(longestSilenceSeconds([1500, 1000, 2500], 0, 3000), 1);
  t.equal(longestSilenceSeconds([], 0, 3000), 3);
  t.equal(longestSilenceSeconds([100, 200], 0, 3000), 2.8);
});
