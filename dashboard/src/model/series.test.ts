import fc from 'fast-check';
import t from 'tap';
import { SEED } from '../../../testkit/effort.ts';
import { METRICS, type Metric, type Readings } from '../types.ts';
import { type Point, Series } from './series.ts';

fc.configureGlobal({ seed: SEED });

const readings = (cpu: number | null, temperature: number | null = 50): Readings => ({
  cpu_percent: cpu,
  memory_percent: 40,
  disk_percent: 30,
  temperature,
});
const point = (timestampMs: number, cpu: number | null, samples = 1): Point => ({ timestampMs, readings: readings(cpu), samples });
const column = (series: Series, metric: Metric, gapMs = 3000): (number | null)[] =>
  series.columns(gapMs).metrics[METRICS.indexOf(metric)] ?? [];

t.test('columns return samples in order, with times in seconds', async (t) => {
  const series = new Series(10_000, 1000);
  for (const [i, cpu] of [10, 20, 30].entries()) series.add(5000 + i * 1000, readings(cpu));
  t.same(series.columns(3000).seconds, [5, 6, 7]);
  t.same(column(series, 'cpu_percent'), [10, 20, 30]);
});

t.test('samples of one bucket are averaged, each metric over its available values', async (t) => {
  const series = new Series(10_000, 1000);
  series.add(5000, readings(10, null));
  series.add(5250, readings(20, 60));
  series.add(5500, readings(60, 70));
  t.same(column(series, 'cpu_percent'), [30]);
  t.same(column(series, 'temperature'), [65]);
});

t.test('an unavailable metric is a gap, never 0', async (t) => {
  const series = new Series(10_000, 1000);
  series.add(5000, readings(10));
  series.add(6000, readings(null));
  series.add(7000, readings(0));
  t.same(column(series, 'cpu_percent'), [10, null, 0]);
});

t.test('missing samples make a gap in all metrics', async (t) => {
  const series = new Series(60_000, 1000);
  series.add(5000, readings(10));
  series.add(8000, readings(20));
  t.same(column(series, 'cpu_percent'), [10, 20], 'three periods apart: no gap yet');
  series.add(11_001, readings(25));
  series.add(15_000, readings(30));
  t.same(column(series, 'cpu_percent'), [10, 20, 25, null, 30]);
  t.same(series.columns(3000).seconds, [5, 8, 11, 12, 15]);
});

t.test('buckets before the window are dropped, and memory use does not depend on the rate', async (t) => {
  const series = new Series(10_000, 1000);
  for (let ms = 0; ms < 60_000; ms += 10) series.add(ms, readings(10));
  t.ok(series.length <= 12, `${series.length} buckets`);
  t.equal(series.columns(3000).seconds.at(-1), 59);
  series.add(10_000_000, readings(10));
  t.equal(series.length, 1, 'the clock was set forward: old buckets are outside the window');
});

t.test('a repeated sample counts once', async (t) => {
  const series = new Series(10_000, 1000);
  series.add(5000, readings(10));
  series.add(5000, readings(90));
  t.same(column(series, 'cpu_percent'), [10]);
});

t.test('when the clock is set back, later buckets are dropped and the series continues', async (t) => {
  const series = new Series(60_000, 1000);
  for (let ms = 0; ms <= 20_000; ms += 1000) series.add(ms, readings(10));
  series.add(5000, readings(70));
  t.equal(series.columns(3000).seconds.at(-1), 5);
  series.add(6000, readings(80));
  t.same(series.columns(3000).seconds, [0, 1, 2, 3, 4, 5, 6]);
});

t.test('history fills the time before, and newer live samples are kept', async (t) => {
  const series = new Series(60_000, 1000);
  series.add(30_000, readings(30));
  series.add(31_000, readings(31));
  series.fill([point(27_000, 27), point(28_000, 28), point(29_000, 29), point(30_000, 30)]);
  t.same(column(series, 'cpu_percent'), [27, 28, 29, 30, 31]);
});

t.test('history fills the gap of an interruption', async (t) => {
  const series = new Series(60_000, 1000);
  for (const at of [1, 2, 3]) series.add(at * 1000, readings(at));
  series.add(20_000, readings(20));
  t.ok(column(series, 'cpu_percent').includes(null));
  series.fill(Array.from({ length: 20 }, (_, i) => point((i + 1) * 1000, i + 1)));
  t.same(
    column(series, 'cpu_percent'),
    Array.from({ length: 20 }, (_, i) => i + 1),
  );
});

t.test('live samples continue an incomplete step with the weight of its samples', async (t) => {
  const series = new Series(3_600_000, 10_000);
  series.fill([point(10_000, 40, 10), point(20_000, 50, 4)]);
  series.add(24_000, readings(100));
  t.same(column(series, 'cpu_percent', 30_000), [40, 60]);
});

t.test('empty or unsorted history is tolerated', async (t) => {
  const series = new Series(60_000, 1000);
  series.add(30_000, readings(30));
  series.fill([]);
  t.same(column(series, 'cpu_percent'), [30]);
  series.fill([point(20_000, 1), point(10_000, 2), point(21_000, 3)]);
  t.same(series.columns(1e9).seconds, [20, 21, 30]);
});

t.test('for any input times increase, the window limits the span and all columns have the same length', async () => {
  const step = fc.record({ by: fc.integer({ min: -5000, max: 20_000 }), cpu: fc.option(fc.float({ min: 0, max: 100, noNaN: true })) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.array(fc.nat(200_000), { maxLength: 50 }), (steps, past) => {
      const series = new Series(30_000, 1000);
      let at = 100_000;
      for (const [i, { by, cpu }] of steps.entries()) {
        at += by;
        series.add(at, readings(cpu));
        if (i === 100) series.fill([...past].sort((a, b) => a - b).map((ms) => point(ms, 1)));
      }
      const { metrics, seconds } = series.columns(3000);
      const isIncreasing = seconds.every((second, i) => i === 0 || second > (seconds[i - 1] as number));
      const span = seconds.length > 0 ? (seconds.at(-1) as number) - (seconds[0] as number) : 0;
      return isIncreasing && span <= 31 && series.length <= 32 && metrics.every((values) => values.length === seconds.length);
    }),
  );
});

t.test('the band holds the lowest and highest values of each bucket', async (t) => {
  const series = new Series(60_000, 10_000);
  series.fill([point(0, 20, 10), point(10_000, 30, 10), point(20_000, null, 10)]);
  const of = (lows: number | null, highs: number | null, startMs: number) => ({ startMs, lows: readings(lows), highs: readings(highs) });
  series.fillBand([of(10, 40, 0), of(5, 90, 10_000)], 10_000);
  series.add(30_000, readings(50));
  series.add(31_000, readings(70));
  const { highs, lows, metrics } = series.columns(60_000);
  t.same(metrics[0], [20, 30, null, 60]);
  t.same(lows[0], [10, 5, null, 50]);
  t.same(highs[0], [40, 90, null, 70]);
});

t.test('a step of the band covers several buckets; without one the band is the value', async (t) => {
  const series = new Series(60_000, 1000);
  series.fill([point(0, 20), point(1000, 30), point(2000, 40)]);
  series.fillBand([{ startMs: 0, lows: readings(1), highs: readings(99) }], 2000);
  const { highs, lows } = series.columns(60_000);
  t.same(
    [lows[0], highs[0]],
    [
      [1, 1, 40],
      [99, 99, 40],
    ],
  );
});
