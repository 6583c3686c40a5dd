import t from 'tap';
import { gapMs, planWindow, samplesOfStep, WINDOWS } from './windows.ts';

/** Rows that one page of the API holds. */
const PAGE_ROWS = 10_000;

t.test('every window fits one page of the API and one chart at all configurable rates', async (t) => {
  for (const name of WINDOWS) {
    for (const hertz of [0.001, 0.1, 1, 2, 2.5, 10, 20, 50, 1000]) {
      const { bucketMs, step, windowMs } = planWindow(name, hertz);
      const rows = step === null ? (windowMs / 1000) * hertz : windowMs / bucketMs;
      t.ok(rows <= PAGE_ROWS, `${name} at ${hertz} Hz: ${rows} rows`);
      t.ok(windowMs / bucketMs >= 60 && windowMs / bucketMs <= 360, `${name} at ${hertz} Hz: ${windowMs / bucketMs} points`);
    }
  }
});

t.test('steps are as long as buckets', async (t) => {
  const unit = { s: 1000, m: 60_000 };
  for (const name of WINDOWS) {
    for (const hertz of [1, 1000]) {
      const { bucketMs, step } = planWindow(name, hertz);
      if (step !== null) t.equal(Number(step.slice(0, -1)) * unit[step.slice(-1) as 's' | 'm'], bucketMs);
    }
  }
});

t.test('at 1 Hz the last five minutes contain every sample', async (t) => {
  t.equal(planWindow('5min', 1).step, null);
});

t.test('a gap is longer than three periods and than one missing point', async (t) => {
  t.equal(gapMs(1000, 1), 3000);
  t.equal(gapMs(1000, 100), 1500);
  t.equal(gapMs(300_000, 1), 450_000);
  t.equal(gapMs(1000, 0.1), 30_000);
});

t.test('an incomplete step counts the samples so far', async (t) => {
  t.equal(samplesOfStep(0, 500_000, 300_000, 1), 300);
  t.equal(samplesOfStep(300_000, 420_000, 300_000, 1), 120);
  t.equal(samplesOfStep(300_000, 299_000, 300_000, 1), 1, 'the clocks differ');
});
