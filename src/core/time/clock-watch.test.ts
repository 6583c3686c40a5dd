import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { CLOCK_JUMP_SECONDS, type ClockReading, compareClocks } from './clock-watch.ts';

const before: ClockReading = { monotonicSeconds: 1000, wallMilliseconds: 1_772_600_000_000, bootSeconds: 1500 };

/** The clocks after `elapsed` seconds awake, a suspend and a step of the wall clock. */
function later(elapsed: number, slept = 0, stepped = 0): ClockReading {
  return {
    monotonicSeconds: before.monotonicSeconds + elapsed,
    wallMilliseconds: before.wallMilliseconds + (elapsed + slept + stepped) * 1000,
    bootSeconds: (before.bootSeconds ?? 0) + elapsed + slept,
  };
}

t.test('clocks that run alike give no event, however much time has passed', async (t) => {
  t.same(compareClocks(before, later(1)), []);
  t.same(compareClocks(before, later(86_400)), []);
});

t.test('a wall clock set forward is a step, stamped with the time after it', async (t) => {
  const after = later(1, 0, 3600);
  t.same(compareClocks(before, after), [{ kind: 'step', timestamp_ms: after.wallMilliseconds, delta_seconds: 3600 }]);
});

t.test('a wall clock set back is a step with a negative delta', async (t) => {
  const after = later(1, 0, -42.125);
  t.same(compareClocks(before, after), [{ kind: 'step', timestamp_ms: after.wallMilliseconds, delta_seconds: -42.125 }]);
});

t.test('a suspend is detected, and the wall clock running meanwhile is no step', async (t) => {
  const after = later(1, 7200);
  t.same(compareClocks(before, after), [{ kind: 'suspend', timestamp_ms: after.wallMilliseconds, delta_seconds: 7200 }]);
});

t.test('a wall clock that stood still during a suspend was stepped back by it', async (t) => {
  const kinds = compareClocks(before, later(1, 60, -60)).map(({ kind, delta_seconds }) => [kind, delta_seconds]);
  t.same(kinds, [
    ['suspend', 60],
    ['step', -60],
  ]);
});

t.test('slewing by less than the smallest jump is no event, the smallest jump is one', async (t) => {
  t.same(compareClocks(before, later(1, 0, 0.4)), []);
  t.same(compareClocks(before, later(1, 0.4)), []);
  t.same(compareClocks(before, later(1, 0, -0.4)), []);
  t.match(compareClocks(before, later(1, 0, CLOCK_JUMP_SECONDS)), [{ kind: 'step' }]);
  t.match(compareClocks(before, later(1, CLOCK_JUMP_SECONDS)), [{ kind: 'suspend' }]);
});

t.test('without a boot clock every jump counts as a step', async (t) => {
  const after = { ...later(1, 30), bootSeconds: null };
  t.same(
    compareClocks(before, after).map(({ kind }) => kind),
    ['step'],
  );
  t.same(compareClocks({ ...before, bootSeconds: null }, later(1)), []);
});

t.test('a suspend and a step between the same two readings are distinguished to the millisecond', async (t) => {
  const jump = fc.integer({ min: 600, max: 1e9 });
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1e6, noNaN: true }), jump, jump, fc.boolean(), (elapsed, sleptMs, stepMs, back) => {
      const stepped = (back ? -stepMs : stepMs) / 1000;
      const [suspend, step, ...more] = compareClocks(before, later(elapsed, sleptMs / 1000, stepped));
      if (suspend?.kind !== 'suspend' || step?.kind !== 'step' || more.length > 0) return false;
      return Math.abs(suspend.delta_seconds - sleptMs / 1000) < 0.0015 && Math.abs(step.delta_seconds - stepped) < 0.0015;
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
  t.pass('for every sleep and step');
});
