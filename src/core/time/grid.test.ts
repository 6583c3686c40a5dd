import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { intervalAt, intervalStartSeconds, planGrid } from './grid.ts';

const oneHertz = { originSeconds: 100, periodSeconds: 1 };

t.test('at the start of an interval its sample is taken and none was missed', async (t) => {
  t.same(planGrid(oneHertz, 0, 100), { kind: 'sample', interval: 0, missed: 0 });
  t.same(planGrid(oneHertz, 7, 107), { kind: 'sample', interval: 7, missed: 0 });
});

t.test('before the start of the next interval the plan is to wait for exactly the remaining time', async (t) => {
  t.same(planGrid(oneHertz, 3, 102.25), { kind: 'wait', seconds: 0.75 });
});

t.test('before the grid begins the plan is to wait for interval 0', async (t) => {
  t.same(planGrid(oneHertz, 0, 98.5), { kind: 'wait', seconds: 1.5 });
});

t.test('a late sample does not shift the next ones', async (t) => {
  t.same(planGrid(oneHertz, 4, 104.5), { kind: 'sample', interval: 4, missed: 0 });
  t.same(planGrid(oneHertz, 5, 104.5), { kind: 'wait', seconds: 0.5 });
});

t.test('intervals without a wake-up are counted as missed and not caught up', async (t) => {
  t.same(planGrid(oneHertz, 4, 109.5), { kind: 'sample', interval: 9, missed: 5 });
  t.same(planGrid(oneHertz, 10, 109.5), { kind: 'wait', seconds: 0.5 });
});

t.test('a timer that is microseconds early is on time, one that is a millisecond early waits again', async (t) => {
  t.equal(intervalAt(oneHertz, 105 - 10e-6), 5);
  t.equal(intervalAt(oneHertz, 105 - 1e-3), 4);
});

const grids = fc.record({
  originSeconds: fc.double({ min: 0, max: 1e7, noNaN: true }),
  periodSeconds: fc.constantFrom(0.001, 0.0033, 0.01, 0.1, 1 / 3, 1, 7.5, 60),
});

t.test('waiting as planned reaches the next interval without a miss, on every grid', async (t) => {
  let waits = 0;
  fc.assert(
    fc.property(grids, fc.nat(10_000_000), fc.double({ min: 0, max: 0.9, noNaN: true }), (grid, interval, intoInterval) => {
      const now = intervalStartSeconds(grid, interval) + intoInterval * grid.periodSeconds;
      const plan = planGrid(grid, interval + 1, now);
      if (plan.kind !== 'wait') return false;
      waits += 1;
      const then = planGrid(grid, interval + 1, now + plan.seconds);
      return plan.seconds > 0 && plan.seconds <= grid.periodSeconds * 1.001 && then.kind === 'sample' && then.interval === interval + 1;
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
  t.ok(waits > 0);
});

t.test('for any wake-ups, intervals are taken in order, and taken plus missed equals all intervals', async (t) => {
  let missed = 0;
  fc.assert(
    fc.property(
      grids,
      fc.array(fc.double({ min: 0, max: 5, noNaN: true }), { minLength: 1, maxLength: 50, size: 'max' }),
      (grid, wakeUps) => {
        let now = grid.originSeconds;
        let next = 0;
        let counted = 0;
        for (const periodsLater of wakeUps) {
          now += periodsLater * grid.periodSeconds;
          const plan = planGrid(grid, next, now);
          if (plan.kind === 'wait') continue;
          if (plan.interval < next || plan.missed < 0) return false;
          missed += plan.missed;
          counted += 1 + plan.missed;
          next = plan.interval + 1;
          // No interval is taken twice.
          if (planGrid(grid, next, now).kind !== 'wait') return false;
        }
        return counted === next;
      },
    ),
    { numRuns: runs(100, 1000), seed: SEED },
  );
  t.ok(missed > 0);
});
