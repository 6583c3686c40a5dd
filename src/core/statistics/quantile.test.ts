import t from 'tap';
import { median, quantile } from './quantile.ts';

t.test('median: the middle value, or the mean of the two middle ones', async (t) => {
  t.ok(Number.isNaN(median(new Float64Array())));
  t.equal(median(Float64Array.of(5)), 5);
  t.equal(median(Float64Array.of(5, 1)), 3);
  t.equal(median(Float64Array.of(3, 1, 2)), 2);
  t.equal(median(Float64Array.of(4, 1, 3, 2)), 2.5);
  t.equal(median(Float64Array.of(7, 7, 7, 7, 1)), 7);
  t.equal(median(Float64Array.of(-1, -5, -3, -9)), -4);
});

t.test('quantile: nearest rank', async (t) => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
  t.same(
    [0, 0.005, 0.01, 0.5, 0.501, 0.99, 1].map((share) => quantile(hundred, share)),
    [1, 1, 1, 50, 51, 99, 100],
  );
  t.equal(quantile([10, 9], 0.5), 9, 'numbers are ordered as numbers, and the lower of two is the median');
  t.ok(Number.isNaN(quantile([], 0.5)));
  const values = [3, 1, 2];
  quantile(values, 0.5);
  median(values);
  t.same(values, [3, 1, 2], 'the values are not modified');
});
