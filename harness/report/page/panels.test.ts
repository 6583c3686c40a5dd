import t from 'tap';
import { momentAt } from '../figures.ts';
import { cpuRange, memoryRange, rateRange } from './panels.ts';
import { clamped, timeLabel } from './series.ts';

t.test('the range of the rate shows every loss, small or large', async (t) => {
  t.equal(rateRange(100, 100)[0], 98);
  t.equal(rateRange(98.33, 100)[0], 98);
  t.equal(rateRange(96, 100)[0], 95);
  t.equal(rateRange(0, 100)[0], 0);
  t.equal(rateRange(null, null)[0], 98);
  for (const max of [100, 101.7, null]) t.ok(rateRange(99, max)[1] > (max ?? 100), 'a line at the top is not at the edge');
});

t.test('memory fills its chart only if it varies by a tenth, which is the limit', async (t) => {
  const [low, high] = memoryRange(60, 61);
  t.ok(high - low >= 6, 'noise stays small');
  t.ok(low < 60 && high > 61);
  const [from, to] = memoryRange(60, 90);
  t.ok(from < 60 && to > 90 && to - from < 45);
  t.same(memoryRange(null, null), [0, 100]);
});

t.test('the CPU chart contains the limit if values come near it', async (t) => {
  t.ok(cpuRange(0.3, 10)[1] < 1);
  t.ok(cpuRange(6, 10)[1] > 10);
  t.ok(cpuRange(40, 10)[1] >= 40);
  t.same(cpuRange(null, 10), [0, 0.5]);
});

t.test('labels are in UTC and as short as the step allows', async (t) => {
  const at = Date.UTC(2026, 2, 29, 1, 5, 7) / 1000;
  t.equal(timeLabel(at, 3600), '01:05');
  t.equal(timeLabel(at, 10), '01:05:07');
  t.equal(timeLabel(Date.UTC(2026, 2, 29) / 1000, 3600), '29 Mar');
  t.equal(timeLabel(at, 86_400), '29 Mar');
  t.equal(timeLabel(Number.NaN, 60), '');
  t.equal(momentAt(at), '2026-03-29 01:05:07 UTC');
  t.equal(momentAt(1e300), 'unknown');
});

t.test('the shown part stays within the run', async (t) => {
  t.same(clamped([-50, 50], [0, 1000]), [0, 100]);
  t.same(clamped([950, 1100], [0, 1000]), [850, 1000]);
  t.same(clamped([-500, 5000], [0, 1000]), [0, 1000]);
  t.same(clamped([500, 501], [0, 1000]), [500, 560], 'a minute at least');
  t.same(clamped([0, 500], [100, 130]), [100, 130]);
});
