import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import {
  nextPhase,
  ON_FAILURE,
  SHUTDOWN_REASONS,
  SHUTDOWN_STEPS,
  type ShutdownPhase,
  type ShutdownReason,
  type StepOutcome,
  shutdownTimes,
} from './shutdown.ts';

const OUTCOMES: readonly StepOutcome[] = ['done', 'failed', 'out_of_time', 'stopped'];

/** The steps taken when each ends as given, and the final outcome. */
function way(reason: ShutdownReason, outcomes: Partial<Record<ShutdownPhase, StepOutcome>>): ShutdownPhase[] {
  const phases: ShutdownPhase[] = ['announce'];
  for (;;) {
    const at = phases.at(-1) as ShutdownPhase;
    if (at === 'completed' || at === 'aborted') return phases;
    phases.push(nextPhase(at, outcomes[at] ?? 'done', reason));
  }
}

t.test('without failures every step is taken in order, for every reason', async (t) => {
  for (const reason of SHUTDOWN_REASONS) t.same(way(reason, {}), [...SHUTDOWN_STEPS, 'completed'], reason);
});

t.test('failures are skipped if the machine is in danger, and abort a requested shutdown', async (t) => {
  for (const reason of ['OVERTEMP', 'CRITICAL_ALERT', 'EMERGENCY', 'POWER_LOW'] as const) {
    t.same(way(reason, { hooks: 'failed', stop_units: 'failed' }), [...SHUTDOWN_STEPS, 'completed'], reason);
  }
  for (const reason of ['MAINTENANCE', 'MANUAL', 'USER_REQUEST'] as const) {
    t.same(way(reason, { hooks: 'failed' }), ['announce', 'hooks', 'aborted'], reason);
    t.same(way(reason, { stop_units: 'failed' }), ['announce', 'hooks', 'stop_units', 'aborted'], reason);
  }
  t.same(Object.keys(ON_FAILURE).sort(), [...SHUTDOWN_REASONS].sort());
});

t.test('a timeout aborts nothing: the rest is skipped, except the store and the last step', async (t) => {
  for (const reason of SHUTDOWN_REASONS) {
    t.same(way(reason, { hooks: 'out_of_time' }), ['announce', 'hooks', 'store', 'power', 'completed'], reason);
    t.same(way(reason, { announce: 'out_of_time', store: 'out_of_time' }), ['announce', 'store', 'power', 'completed'], reason);
  }
});

t.test('a store that cannot be written does not stop a shutdown', async (t) => {
  for (const reason of SHUTDOWN_REASONS) t.same(way(reason, { store: 'failed' }), [...SHUTDOWN_STEPS, 'completed'], reason);
});

t.test('for any outcomes, it ends, never goes back, and completes only through the last step', async (t) => {
  const outcomes = fc.record(Object.fromEntries(SHUTDOWN_STEPS.map((step) => [step, fc.constantFrom(...OUTCOMES)])));
  fc.assert(
    fc.property(fc.constantFrom(...SHUTDOWN_REASONS), outcomes, (reason, ends) => {
      const phases = way(reason, ends);
      const steps = phases.slice(0, -1).map((phase) => SHUTDOWN_STEPS.indexOf(phase as never));
      t.same(steps, [...new Set(steps)].sort());
      t.equal(phases.at(-1) === 'completed', phases.includes('power') && ends['power'] === 'done');
      if (Object.values(ends).includes('stopped')) return;
      if (ON_FAILURE[reason] === 'skip') t.ok(phases.includes('power'), 'in danger the last step is always reached');
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
});

t.test('times: hanging steps are ended, and the store has its time, before the deadline', async (t) => {
  fc.assert(
    fc.property(fc.double({ min: Number.MIN_VALUE, max: 300, noNaN: true }), (timeout) => {
      const { deadline, graceSeconds, storeSeconds, terminateAt } = shutdownTimes(timeout);
      t.equal(deadline, timeout);
      t.ok(terminateAt >= timeout * 0.75 - 1e-9 && terminateAt + graceSeconds + storeSeconds <= timeout + 1e-9);
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
  t.same(shutdownTimes(300), { terminateAt: 294, graceSeconds: 2, storeSeconds: 2, deadline: 300 });
});
