import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { METRICS, toHundredths } from './metrics.ts';

t.test('the metrics are the four of the specification, in its order', async (t) => {
  t.same(METRICS, ['cpu_percent', 'memory_percent', 'disk_percent', 'temperature']);
});

t.test('values are rounded to the nearest hundredth', async (t) => {
  t.equal(toHundredths(12.344), 12.34);
  t.equal(toHundredths(12.346), 12.35);
  t.equal(toHundredths(-3.218), -3.22);
  t.equal(toHundredths(100), 100);
});

t.test('rounding moves a value by at most half a hundredth and is idempotent', async (t) => {
  fc.assert(
    fc.property(fc.double({ min: -1000, max: 1000, noNaN: true }), (value) => {
      const rounded = toHundredths(value);
      return Math.abs(rounded - value) <= 0.005 + 1e-9 && toHundredths(rounded) === rounded;
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
  t.pass('for every value');
});
