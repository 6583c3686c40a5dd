import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { addToHistogram, BIN_WIDTH, type Histogram, mergeHistograms, percentiles } from './summary.ts';

const QUANTILES = [0.5, 0.95, 0.99];

function histogramOf(values: readonly number[]): Histogram {
  const histogram: Histogram = new Map();
  for (const value of values) addToHistogram(histogram, value);
  return histogram;
}

/** Nearest rank, from the sorted values themselves. */
function exactPercentile(values: readonly number[], quantile: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(quantile * sorted.length) - 1)] as number;
}

t.test('no values have no percentiles', async (t) => {
  t.same(percentiles(new Map(), QUANTILES), [null, null, null]);
});

t.test('one value is every percentile', async (t) => {
  t.same(percentiles(histogramOf([42.3]), [0, ...QUANTILES, 1]), [42.3, 42.3, 42.3, 42.3, 42.3]);
});

t.test('percentiles are nearest ranks: of 1 to 100 they are the numbers themselves', async (t) => {
  const values = Array.from({ length: 100 }, (_, i) => i + 1);
  t.same(percentiles(histogramOf(values), QUANTILES), [50, 95, 99]);
});

t.test('a percentile is no average: it is one of the values', async (t) => {
  t.same(percentiles(histogramOf([10, 90]), [0.5, 0.51]), [10, 90]);
});

t.test('percentiles are returned in the order requested', async (t) => {
  const values = Array.from({ length: 100 }, (_, i) => i + 1);
  t.same(percentiles(histogramOf(values), [0.99, 0.5]), [99, 50]);
});

t.test('negative values sort below positive ones', async (t) => {
  t.same(percentiles(histogramOf([-20.5, -3, 0, 3]), [0.25, 0.5, 0.75, 1]), [-20.5, -3, 0, 3]);
});

t.test('extreme values share the outermost bins, which stay small integers, and do not affect the others', async (t) => {
  const histogram = histogramOf([-1e300, -1e12, 50, 1e12, 1e300]);
  t.equal(histogram.size, 3);
  t.ok([...histogram.keys()].every((bin) => Number.isInteger(bin) && Math.abs(bin) < 2 ** 31));
  t.equal(percentiles(histogram, [0.5])[0], 50);
});

const values = fc.array(
  fc.oneof(
    fc.double({ min: -40, max: 150, noNaN: true }),
    fc.integer({ min: 0, max: 10_000 }).map((hundredths) => hundredths / 100),
  ),
  { minLength: 1, maxLength: 400, size: 'max' },
);

t.test('every percentile is within half a bin of the exact one', async (t) => {
  fc.assert(
    fc.property(values, (values) => {
      const found = percentiles(histogramOf(values), QUANTILES);
      return QUANTILES.every((quantile, i) => Math.abs((found[i] as number) - exactPercentile(values, quantile)) <= BIN_WIDTH / 2 + 1e-9);
    }),
    { numRuns: runs(100, 3000), seed: SEED },
  );
  t.ok(BIN_WIDTH <= 0.1);
});

t.test('the rank is exact for every number of samples of a day at 1 Hz', async (t) => {
  /** The 95th percentile of this many values of 1 with all others being 2. */
  const ofOnesAndTwos = (ones: number, total: number): number | null | undefined => {
    const bins: [number, number][] = [
      [10, ones],
      [20, total - ones],
    ];
    return percentiles(new Map(bins), [0.95])[0];
  };
  const wrong: number[] = [];
  for (let total = 1; total <= 86_400; total += 1) {
    const rank = Math.floor((95 * total + 99) / 100);
    if (ofOnesAndTwos(rank, total) !== 1 || ofOnesAndTwos(rank - 1, total) !== 2) wrong.push(total);
  }
  t.same(wrong, []);
});

t.test('merged histograms of parts equal the histogram of the whole', async (t) => {
  fc.assert(
    fc.property(values, values, (first, second) => {
      const merged = histogramOf(first);
      mergeHistograms(merged, histogramOf(second));
      const whole = histogramOf([...first, ...second]);
      return merged.size === whole.size && [...whole].every(([bin, count]) => merged.get(bin) === count);
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
  t.pass('for every two parts');
});

t.test('merging does not modify the source histogram', async (t) => {
  const from = histogramOf([1, 1, 2]);
  mergeHistograms(histogramOf([1]), from);
  t.same([...from], [...histogramOf([1, 1, 2])]);
});

t.test('for any values, a histogram has a bounded number of bins, and existing bins stay valid', async (t) => {
  const histogram: Histogram = new Map();
  for (let i = 0; i < 1000; i += 1) addToHistogram(histogram, 50 + (i % 10) / 10);
  for (let i = 0; i < 20_000; i += 1) addToHistogram(histogram, -1e8 + i * 10_001.7);
  t.ok(histogram.size < 3200, `${histogram.size} bins`);
  for (let i = 0; i < 1000; i += 1) addToHistogram(histogram, 50 + (i % 10) / 10);
  t.equal(histogram.get(505), 200);
  t.ok([...histogram.keys()].every((bin) => Number.isSafeInteger(bin)));
  let count = 0;
  for (const times of histogram.values()) count += times;
  t.equal(count, 22_000);
});
