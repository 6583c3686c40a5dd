import t from 'tap';
import { edgesOf, gapMs, planRange, type Range, samplesOfStep, stepMs, WINDOWS } from './windows.ts';

/** Rows that one page of the API holds. */
const PAGE_ROWS = 10_000;
const DAY_MS = 86_400_000;
const live = (window: (typeof WINDOWS)[number]): Range => ({ kind: 'live', window });
const fixed = (ms: number): Range => ({ kind: 'fixed', fromMs: 1e12, toMs: 1e12 + ms });

t.test('every range fits two pages of the API at all configurable rates, and its band a fraction of one', async (t) => {
  const ranges = [...WINDOWS.map(live), ...[30_000, 300_000, 3_600_000, 5 * 3_600_000, DAY_MS, 8 * DAY_MS, 90 * DAY_MS].map(fixed)];
  for (const range of ranges) {
    for (const hertz of [0.001, 0.1, 1, 2, 2.5, 10, 20, 50, 1000]) {
      const { bandStep, bucketMs, step, windowMs } = planRange(range, hertz);
      const rows = step === null ? (windowMs / 1000) * hertz : windowMs / bucketMs;
      t.ok(rows <= 2 * PAGE_ROWS, `${windowMs / 1000} s at ${hertz} Hz: ${rows} rows`);
      if (bandStep !== null) t.ok(windowMs / stepMs(bandStep) <= 2200, 'the band');
    }
  }
});

t.test('steps are as long as buckets', async (t) => {
  for (const name of WINDOWS) {
    for (const hertz of [1, 1000]) {
      const { bucketMs, step } = planRange(live(name), hertz);
      if (step !== null) t.equal(stepMs(step), bucketMs);
    }
  }
});

t.test('at 1 Hz the last five minutes contain every sample, and a week its minutes', async (t) => {
  t.match(planRange(live('5min'), 1), { step: null, bandStep: null });
  t.match(planRange(live('1h'), 1), { step: '10s', bandStep: '10s' });
  t.match(planRange(live('24h'), 1), { step: '1m', bandStep: '1m' });
  t.match(planRange(live('7d'), 1), { step: '1m', bandStep: '1h' });
  t.match(planRange(fixed(30 * DAY_MS), 1), { step: '1h', bandStep: '1h' });
});

t.test('a live range ends now, a fixed one does not move', async (t) => {
  t.same(edgesOf(live('1h'), 7_200_000), { fromMs: 3_600_000, toMs: 7_200_000 });
  t.match(edgesOf(fixed(1000), 5), { fromMs: 1e12, toMs: 1e12 + 1000 });
});

t.test('gaps are longer than a step and three periods', async (t) => {
  t.equal(gapMs(1000, 1), 3000);
  t.equal(gapMs(1000, 100), 1500);
  t.equal(gapMs(300_000, 1), 450_000);
  t.equal(gapMs(1000, 0.1), 30_000);
});

t.test('an incomplete step counts fewer samples', async (t) => {
  t.equal(samplesOfStep(0, 60_000, 10_000, 2), 20);
  t.equal(samplesOfStep(0, 5000, 10_000, 2), 10);
  t.equal(samplesOfStep(10_000, 5000, 10_000, 2), 1, 'begun in the future');
});
