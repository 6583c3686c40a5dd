import t from 'tap';
import { extremes, isolated, temperatureRange } from './chart-math.ts';

t.test('extremes cover the shown part and ignore gaps', async (t) => {
  t.same(extremes([1, 2, 3, 4], [99, 5, null, 7], 2), { min: 5, max: 7 });
  t.equal(extremes([1, 2], [null, null], 0), null);
  t.equal(extremes([], [], 0), null);
});

t.test('points between gaps are found, also at both ends', async (t) => {
  t.same(isolated([1, null, 2, 3, null, 4]), [0, 5]);
  t.same(isolated([null, null]), []);
  t.same(isolated([5]), [0]);
});

t.test('the temperature axis has whole tens, spans at least 40 degrees and covers data and thresholds', async (t) => {
  for (const [min, max] of [
    [50, 51],
    [48.9, 62.3],
    [-12, 3],
    [20, 95],
  ] as const) {
    const [low, high] = temperatureRange(min, max, []);
    t.ok(low <= min && high >= max && high - low >= 40 && low % 10 === 0 && high % 10 === 0, `${min} to ${max}: ${low} to ${high}`);
  }
  t.ok(temperatureRange(50, 55, [85])[1] > 85);
  t.same(temperatureRange(null, null, []), [20, 60]);
});
