import t from 'tap';
import { extremes, isolated, placeLabels, temperatureRange } from './chart-math.ts';

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

t.test('labels of thresholds stay inside the chart and do not overlap', async (t) => {
  const area = { x: 40, y: 8, width: 280, height: 58 };
  const label = (value: number, height = area.height) => ({ y: area.y + (1 - value / 100) * height, width: 100, height: 12 });
  for (const values of [
    [80, 95],
    [95, 80],
    [80, 81],
    [1, 99],
    [50, 80, 95],
    [0, 100],
  ]) {
    const boxes = placeLabels(
      values.map((value) => label(value)),
      area,
      3,
    );
    for (const [i, box] of boxes.entries()) {
      const { height, width, x, y } = box;
      t.ok(x >= area.x && x + width <= area.x + area.width && y >= area.y && y + height <= area.y + area.height, `${values}: inside`);
      const overlapping = boxes.filter((other, j) => j > i && Math.abs(other.x - x) < width && Math.abs(other.y - y) < height);
      t.same(overlapping, [], `${values}: apart`);
    }
  }
  const [low] = placeLabels([label(50)], area, 3);
  t.ok(low && low.y > label(50).y, 'below the line where it fits');
});
