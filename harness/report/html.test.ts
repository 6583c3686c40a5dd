import t from 'tap';
import { marginBar } from './html.ts';

const bar = (value: number | null, comparison: '<' | '<=' | '>' | '>=', limit: number, unit = '%') =>
  marginBar({ measured: { label: '', value, unit }, limit: { comparison, value: limit, unit } });

t.test('less is better: the limit is at three quarters, and the value before or beyond it', async (t) => {
  t.same(bar(5, '<', 10), { measured: 37.5, limit: 75, goodSide: 'left' });
  t.same(bar(10, '<', 10), { measured: 75, limit: 75, goodSide: 'left' });
  t.same(bar(500, '<', 10), { measured: 100, limit: 75, goodSide: 'left' });
  t.same(bar(-1, '<=', 300, 's'), { measured: 0, limit: 75, goodSide: 'left' });
});

t.test('more is better: near 100 % the bar is stretched', async (t) => {
  t.same(bar(99.5, '>', 99), { measured: 87.5, limit: 75, goodSide: 'right' });
  t.same(bar(12, '>', 99), { measured: 0, limit: 75, goodSide: 'right' });
  t.same(bar(84, '>=', 168, 'h'), { measured: 45.45, limit: 90.91, goodSide: 'right' });
});

t.test('there is no bar if nothing was measured, or if the unit differs from that of the limit', async (t) => {
  t.equal(bar(null, '<', 10), null);
  t.equal(marginBar({ measured: { label: '', value: 3, unit: '' }, limit: { comparison: '<', value: 3, unit: 's' } }), null);
  t.same(bar(0, '<', 0, ''), { measured: 0, limit: 0, goodSide: 'left' });
});
