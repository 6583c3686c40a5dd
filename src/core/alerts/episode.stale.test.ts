import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { initialStaleState, type StaleChange, type StaleState, stepStale } from './episode.ts';

const ALLOWED = 5;
const CLEAR_AFTER = 10;

/** Feeds observations (`+` present, `-` missing) a second apart; returns the changes with their second. */
function listen(from: StaleState, observations: string, startSeconds = 0, allowed = ALLOWED, clearAfter = CLEAR_AFTER) {
  let state = from;
  const changes: [number, StaleChange, number][] = [];
  [...observations].forEach((observation, second) => {
    const step = stepStale(state, observation === '+', startSeconds + second, allowed, clearAfter);
    state = step.state;
    if (step.change) changes.push([second, step.change, step.staleSeconds]);
  });
  return { changes, state };
}

t.test('what never arrived cannot become stale', async (t) => {
  t.same(listen(initialStaleState(null, false), '-'.repeat(100)).changes, []);
});

t.test('it is raised once the gap exceeds the allowed time, with the seconds since the last arrival', async (t) => {
  t.same(listen(initialStaleState(null, false), '++-----').changes, []);
  t.same(listen(initialStaleState(null, false), '++------').changes, [[7, 'raise', 6]]);
});

t.test('it is raised once, regardless of its length', async (t) => {
  t.same(listen(initialStaleState(null, false), `+${'-'.repeat(200)}`).changes, [[6, 'raise', 6]]);
});

t.test('a gap shorter than allowed is no change', async (t) => {
  t.same(listen(initialStaleState(null, false), '+-----'.repeat(10)).changes, []);
});

t.test('it is resolved after clear_after without a miss', async (t) => {
  t.same(listen(initialStaleState(null, false), `+------${'+'.repeat(11)}`).changes, [
    [6, 'raise', 6],
    [17, 'resolve', 0],
  ]);
  t.same(listen(initialStaleState(null, false), `+------${'+'.repeat(10)}`).changes.length, 1);
});

t.test('intermittent arrivals stay one episode', async (t) => {
  const { changes, state } = listen(initialStaleState(null, false), `+------${'+++++++++-'.repeat(20)}`);
  t.same(changes, [[6, 'raise', 6]]);
  t.ok(state.open);
});

t.test('with clear_after 0 the first arrival resolves', async (t) => {
  t.same(listen(initialStaleState(null, false), '+------+', 0, ALLOWED, 0).changes, [
    [6, 'raise', 6],
    [7, 'resolve', 0],
  ]);
});

t.test('after it was resolved a new gap is raised again', async (t) => {
  const changes = listen(initialStaleState(null, false), `+------${'+'.repeat(11)}------`).changes;
  t.same(
    changes.map(([, change]) => change),
    ['raise', 'resolve', 'raise'],
  );
});

t.test('what arrived before this start becomes stale, counted from the start', async (t) => {
  t.same(listen(initialStaleState(1000, false), '-------', 1000).changes, [[6, 'raise', 6]]);
});

t.test('an episode open at the start is not raised again, and its seconds count from the start', async (t) => {
  const { changes, state } = listen(initialStaleState(null, true), '-'.repeat(50), 1000);
  t.same(changes, []);
  t.equal(stepStale(state, false, 1050, ALLOWED, CLEAR_AFTER).staleSeconds, 50);
});

t.test('an episode open at the start is resolved only after clear_after', async (t) => {
  t.same(listen(initialStaleState(null, true), '+'.repeat(11)).changes, [[10, 'resolve', 0]]);
});

t.test('the second of a change does not depend on clock rounding', async (t) => {
  const period = fc.constantFrom(0.01, 0.1, 0.2, 1);
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 1e6, noNaN: true }),
      fc.nat(10_000),
      period,
      fc.constantFrom(1, 3, 10),
      (origin, interval, period, seconds) => {
        const at = (n: number): number => origin + (interval + n) * period;
        const periods = Math.round(seconds / period);
        const silent = { lastGoodSeconds: at(0), goodSinceSeconds: null, open: false };
        if (stepStale(silent, false, at(periods), seconds, 0).change !== null) return false;
        if (stepStale(silent, false, at(periods + 1), seconds, 0).change !== 'raise') return false;
        const back = { lastGoodSeconds: at(0), goodSinceSeconds: at(0), open: true };
        if (stepStale(back, true, at(periods - 1), 1, seconds).change !== null) return false;
        return stepStale(back, true, at(periods), 1, seconds).change === 'resolve';
      },
    ),
    { numRuns: runs(1000, 30000), seed: SEED },
  );
  t.pass('for every origin of the grid');
});
