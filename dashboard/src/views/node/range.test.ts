import t from 'tap';
import type { Range } from '../../model/windows.ts';
import { queryOf, readRange, selected, shifted, zoomed } from './range.ts';

const NOW = Date.UTC(2026, 2, 4, 12);
const HOUR = 3_600_000;
const hour: Range = { kind: 'live', window: '1h' };
const between = (fromMs: number, toMs: number): Range => ({ kind: 'fixed', fromMs, toMs });

t.test('the address names the range', async (t) => {
  for (const range of [hour, between(NOW - HOUR, NOW)]) t.same(readRange(queryOf(range)), range);
  t.same(queryOf(hour), { range: '1h' });
  const standard = { kind: 'live', window: '5min' };
  for (const query of [{}, { range: '3h' }, { from: 'x', to: 'y' }, { from: '2026-03-04T12:00:00Z' }])
    t.same(readRange(query as Record<string, string>), standard);
  t.same(readRange(queryOf(between(NOW, NOW - HOUR))), standard, 'the end before the begin');
});

t.test('a range moves by its length, never beyond now', async (t) => {
  t.same(shifted(hour, -1, NOW), between(NOW - 2 * HOUR, NOW - HOUR));
  t.same(shifted(between(NOW - 2 * HOUR, NOW - HOUR), 0.5, NOW), between(NOW - 1.5 * HOUR, NOW - HOUR / 2));
  t.same(shifted(hour, 1, NOW), between(NOW - HOUR, NOW));
});

t.test('a range is enlarged and reduced around its middle, within limits', async (t) => {
  t.same(zoomed(between(NOW - 4 * HOUR, NOW - 2 * HOUR), 0.5, NOW), between(NOW - 3.5 * HOUR, NOW - 2.5 * HOUR));
  t.same(zoomed(hour, 2, NOW), between(NOW - 2 * HOUR, NOW));
  t.same(zoomed(between(NOW - 20_000, NOW - 10_000), 0.01, NOW), between(NOW - 20_000 + 4950, NOW - 10_000 + 4950));
});

t.test('a selected part is shown, with a minimum of ten seconds', async (t) => {
  t.same(selected(NOW - HOUR, NOW - HOUR / 2, NOW), between(NOW - HOUR, NOW - HOUR / 2));
  t.same(selected(NOW - HOUR, NOW - HOUR + 1, NOW), between(NOW - HOUR, NOW - HOUR + 10_000));
});
