import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { TokenBucket } from './rate-limit.ts';

t.test('in any time span at most the burst plus the accumulated rate passes', async (t) => {
  const waits = fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(waits, fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 30 }), (list, perSecond, burst) => {
      const bucket = new TokenBucket(perSecond, burst);
      let now = 100;
      const passed: number[] = [];
      for (const wait of list) {
        now += wait / 1000;
        for (let i = 0; i < 10; i += 1) if (bucket.take(now)) passed.push(now);
      }
      return passed.every((from, i) => passed.length - i <= burst + 1 || withinRate(passed.slice(i), from, perSecond, burst));
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
  t.pass();
});

function withinRate(passed: readonly number[], from: number, perSecond: number, burst: number): boolean {
  return passed.every((at, count) => count + 1 <= burst + (at - from) * perSecond + 1e-6);
}

t.test('a sender within the rate always passes', async (t) => {
  const bucket = new TokenBucket(10, 1);
  for (let i = 0; i < 1000; i += 1) if (!bucket.take(i * 0.1)) t.fail(`number ${i}`);
  t.pass();
});
