import t from 'tap';
import { memoryMedians, memoryVariance } from './memory-variance.ts';

const readings = { at: [1, 2, 3, 11, 12, 13, 21, 31, 33], bytes: [1, 9, 2, 5, 4, 6, 7, 10, 20], warmUpSeconds: 0, medianSeconds: 10 };

t.test('takes medians of consecutive intervals from each start on', async (t) => {
  t.same(memoryMedians({ ...readings, starts: [0] }), [
    [
      { at: 5, value: 2 },
      { at: 15, value: 5 },
      { at: 25, value: 7 },
      { at: 35, value: 15 },
    ],
  ]);
  t.same(memoryMedians({ ...readings, starts: [0, 12] }), [
    [
      { at: 5, value: 2 },
      { at: 15, value: 5 },
    ],
    [
      { at: 17, value: 6 },
      { at: 27, value: 10 },
      { at: 37, value: 20 },
    ],
  ]);
  t.same(memoryMedians({ ...readings, starts: [] }), []);
  t.same(memoryMedians({ ...readings, starts: [20], warmUpSeconds: 10 }), [[{ at: 35, value: 15 }]]);
  t.same(memoryMedians({ ...readings, starts: [1] })[0]?.[0], { at: 6, value: 2 }, 'a reading at the begin belongs to it');
  t.same(memoryMedians({ ...readings, starts: [1], warmUpSeconds: 10 })[0]?.[0], { at: 16, value: 5 }, 'and at the end of the warm-up');
});

t.test('a run that ends within its warm-up has no medians and does not affect the next run', async (t) => {
  t.same(memoryMedians({ ...readings, starts: [0, 2], warmUpSeconds: 9 }), [
    [
      { at: 16, value: 5 },
      { at: 26, value: 7 },
      { at: 36, value: 15 },
    ],
  ]);
  t.same(memoryMedians({ ...readings, starts: [0, 13], warmUpSeconds: 20 }), [[{ at: 38, value: 20 }]]);
});

t.test('omits intervals without a reading', async (t) => {
  const { medians, count } = memoryVariance({ at: [1, 95], bytes: [10, 12], starts: [0], warmUpSeconds: 0, medianSeconds: 10 }) ?? {};
  t.same(medians, [
    [
      { at: 5, value: 10 },
      { at: 95, value: 12 },
    ],
  ]);
  t.equal(count, 2);
});

t.test('computes spread and slope', async (t) => {
  const variance = memoryVariance({ ...readings, starts: [0] });
  const { count, max, median, min, percent } = variance ?? {};
  t.same({ count, max, median, min, percent }, { count: 4, max: 15, median: 6, min: 2, percent: (13 / 6) * 100 });
  t.equal(variance?.slope?.toFixed(6), '0.366667', 'between 0.3 and 13/30');
  t.equal(variance?.intercept?.toFixed(6), '-0.166667');
  t.equal(memoryVariance({ ...readings, starts: [40] }), null);
  const one = memoryVariance({ ...readings, at: [1], bytes: [7], starts: [0] });
  t.same([one?.percent, one?.slope, one?.intercept], [0, null, null]);
  const falling = memoryVariance({ ...readings, bytes: readings.bytes.map((bytes) => -bytes + 100), starts: [0] });
  t.same([falling?.min, falling?.max], [85, 98]);
});
