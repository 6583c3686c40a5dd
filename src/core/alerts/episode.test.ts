import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import type { Threshold } from './alert.ts';
import { type AlertTiming, type EpisodeState, freshEpisode, type Level, stepEpisode, TRANSITIONS } from './episode.ts';

const cpu: Threshold = { warning: 80, critical: 90 };
const timing: AlertTiming = {
  hysteresisPercent: 5,
  raiseAfterSeconds: 3,
  clearAfterSeconds: 10,
  sensorTimeoutSeconds: 5,
  longestIntervalSeconds: 3600,
};
const atOnce: AlertTiming = { ...timing, raiseAfterSeconds: 0, clearAfterSeconds: 0 };

interface Feed {
  readonly from?: EpisodeState;
  readonly threshold?: Threshold;
  readonly timing?: AlertTiming;
  readonly periodSeconds?: number;
}

/** Feeds readings one period apart; returns the level after each. */
function levels(readings: readonly (number | null)[], feed: Feed = {}): Level[] {
  let state = feed.from ?? freshEpisode();
  return readings.map((reading, i) => {
    const at = 1000 + i * (feed.periodSeconds ?? 1);
    state = stepEpisode(state, reading, at, feed.threshold ?? cpu, feed.timing ?? timing).state;
    return state.level;
  });
}

function last(readings: readonly (number | null)[], feed: Feed = {}): Level | undefined {
  return levels(readings, feed).at(-1);
}

const times = <T>(count: number, reading: T): T[] => new Array(count).fill(reading);

t.test('a value exactly at a threshold crosses it, the hundredth below does not', async (t) => {
  t.equal(last([80], { timing: atOnce }), 'WARNING');
  t.equal(last([79.99], { timing: atOnce }), 'none');
  t.equal(last([90], { timing: atOnce, from: freshEpisode('WARNING') }), 'CRITICAL');
  t.equal(last([89.99], { timing: atOnce, from: freshEpisode('WARNING') }), 'WARNING');
});

t.test('with raise_after 0 the first value raises', async (t) => {
  t.same(levels([85, 85], { timing: atOnce }), ['WARNING', 'WARNING']);
});

t.test('3 s at 1 Hz are four samples: the first starts the clock, the fourth raises', async (t) => {
  t.same(levels(times(4, 85)), ['none', 'none', 'none', 'WARNING']);
});

t.test('3 s at 10 Hz are 31 samples, the rounding of tenths notwithstanding', async (t) => {
  t.equal(last(times(30, 85), { periodSeconds: 0.1 }), 'none');
  t.equal(last(times(31, 85), { periodSeconds: 0.1 }), 'WARNING');
});

t.test('the sample at which it is raised does not depend on how the clock rounds', async (t) => {
  const origins = fc.double({ min: 0, max: 1e6, noNaN: true });
  fc.assert(
    fc.property(origins, fc.constantFrom(0.01, 0.1, 0.2, 1), fc.constantFrom(1, 3, 10), (origin, period, raiseAfterSeconds) => {
      const periods = Math.round(raiseAfterSeconds / period);
      let state = freshEpisode();
      for (let i = 0; i <= periods; i += 1) {
        if (state.level !== 'none') return false;
        state = stepEpisode(state, 85, origin + i * period, cpu, { ...timing, raiseAfterSeconds }).state;
      }
      return state.level === 'WARNING';
    }),
    { numRuns: runs(600, 20000), seed: SEED },
  );
  t.pass('for every origin of the grid');
});

t.test('one spike does not raise, nor do many with dips between them', async (t) => {
  t.same(levels([10, 99, 10, 10]), times(4, 'none'));
  t.same(new Set(levels(times(20, [99, 99, 99, 79]).flat())), new Set(['none']));
});

t.test('a jump to 100 % is CRITICAL at once, after raise_after', async (t) => {
  t.same(levels(times(5, 100)), ['none', 'none', 'none', 'CRITICAL', 'CRITICAL']);
  t.same(levels([100, 100], { timing: atOnce }), ['CRITICAL', 'CRITICAL']);
});

t.test('a value that rises through both thresholds is WARNING until raise_after above the critical one', async (t) => {
  t.same(levels([85, 85, 95, 95, 95, 95]), ['none', 'none', 'none', 'WARNING', 'WARNING', 'CRITICAL']);
});

t.test('a WARNING becomes CRITICAL only after raise_after above the critical threshold', async (t) => {
  t.same(levels([95, 95, 95, 95], { from: freshEpisode('WARNING') }), ['WARNING', 'WARNING', 'WARNING', 'CRITICAL']);
  t.equal(last([95, 95, 85, 95, 95], { from: freshEpisode('WARNING') }), 'WARNING');
});

t.test('an episode ends after clear_after below threshold minus hysteresis', async (t) => {
  const open = { from: freshEpisode('WARNING') };
  t.equal(last(times(10, 75.99), open), 'WARNING');
  t.equal(last(times(11, 75.99), open), 'none');
});

t.test('the lower edge of the band still belongs to the band', async (t) => {
  t.equal(last(times(100, 76), { from: freshEpisode('WARNING') }), 'WARNING');
  t.equal(last(times(100, 85.5), { from: freshEpisode('CRITICAL') }), 'CRITICAL');
});

t.test('one dip does not clear, nor do many with values in the band between them', async (t) => {
  t.equal(last(times(20, [10, 10, 10, 78]).flat(), { from: freshEpisode('WARNING') }), 'WARNING');
});

t.test('CRITICAL falls to WARNING when the value stays above the warning threshold', async (t) => {
  const fallen = levels(times(11, 82), { from: freshEpisode('CRITICAL') });
  t.same(fallen, [...times(10, 'CRITICAL'), 'WARNING']);
});

t.test('CRITICAL fallen to WARNING inside the warning band stays open', async (t) => {
  t.equal(last(times(100, 77), { from: freshEpisode('CRITICAL') }), 'WARNING');
});

t.test('CRITICAL ends in one step when the value falls below both bands', async (t) => {
  t.same(levels(times(11, 20), { from: freshEpisode('CRITICAL') }).slice(-2), ['CRITICAL', 'none']);
});

t.test('where the two bands overlap CRITICAL still falls step by step', async (t) => {
  // The bands: [76, 80) and [77.9, 82).
  const near = { threshold: { warning: 80, critical: 82 }, from: freshEpisode('CRITICAL') };
  t.equal(last(times(100, 78), near), 'CRITICAL', 'inside both bands nothing changes');
  t.equal(last(times(100, 77.5), near), 'WARNING', 'below the critical band, in the warning band');
  t.equal(last(times(100, 75.9), near), 'none', 'below both');
});

t.test('a missing reading stops the raise timer', async (t) => {
  t.same(levels([85, 85, null, null, null, 85, 85]), ['none', 'none', 'none', 'none', 'none', 'none', 'WARNING']);
});

t.test('a missing reading stops the clear timer', async (t) => {
  const open = { from: freshEpisode('WARNING') };
  t.equal(last([...times(10, 20), ...times(1000, null)], open), 'WARNING');
  t.equal(last([...times(9, 20), ...times(1000, null), 20], open), 'WARNING', 'the time without readings is not counted');
  t.equal(last([...times(9, 20), ...times(1000, null), 20, 20], open), 'none');
});

t.test('a sensor that gives every second reading is still evaluated', async (t) => {
  t.equal(last(times(8, 85).flatMap((value) => [value, null])), 'WARNING');
});

t.test('a stall without samples counts as the longest interval at most', async (t) => {
  const stalled = { ...timing, longestIntervalSeconds: 2 };
  const before = stepEpisode(freshEpisode(), 85, 0, cpu, stalled).state;
  const after = stepEpisode(before, 85, 600, cpu, stalled);
  t.equal(after.taken, null, 'ten minutes later, but only two seconds were observed');
  t.equal(stepEpisode(after.state, 85, 601, cpu, stalled).state.level, 'WARNING');
});

t.test('a missing reading takes no transition even when one would be due', async (t) => {
  t.equal(last([null], { timing: atOnce, from: freshEpisode('CRITICAL') }), 'CRITICAL');
  const due = stepEpisode(freshEpisode(), 100, 0, cpu, atOnce).state;
  t.equal(stepEpisode(due, null, 1, cpu, atOnce).taken, null);
});

t.test('a dip seen after a time without readings starts the counting again', async (t) => {
  t.equal(last([85, 85, 85, null, 79, 85, 85, 85]), 'none');
});

t.test('hysteresis lies below a threshold under zero too', async (t) => {
  const freezer = { threshold: { warning: -20, critical: -10 }, from: freshEpisode('WARNING') };
  t.equal(last(times(100, -20.5), freezer), 'WARNING');
  t.equal(last(times(100, -21.5), freezer), 'none');
});

t.test('without hysteresis a value just below the threshold clears', async (t) => {
  t.equal(last([79.99], { timing: { ...atOnce, hysteresisPercent: 0 }, from: freshEpisode('WARNING') }), 'none');
});

t.test('a clock that goes backwards is not counted', async (t) => {
  let state = freshEpisode();
  for (const at of [10, 5, 6, 7]) state = stepEpisode(state, 85, at, cpu, timing).state;
  t.equal(state.level, 'none', 'two seconds have passed');
  t.equal(stepEpisode(state, 85, 8, cpu, timing).state.level, 'WARNING');
});

t.test('a step does not modify the state passed to it', async (t) => {
  const before = freshEpisode('WARNING');
  const copy = structuredClone(before);
  stepEpisode(before, 20, 5, cpu, atOnce);
  t.same(before, copy);
});

t.test('the table contains each transition up and down once', async (t) => {
  const ways = TRANSITIONS.map(({ from, to }) => `${from} ${to}`);
  t.same(ways.sort(), ['CRITICAL WARNING', 'CRITICAL none', 'WARNING CRITICAL', 'WARNING none', 'none CRITICAL', 'none WARNING']);
});

t.test('for any readings, the level changes only by the reported transition, which is in the table', async (t) => {
  const seen = new Set<string>();
  const readings = fc.array(fc.option(fc.constantFrom(20, 75.9, 76, 79, 80, 85, 85.5, 89, 90, 100)), { maxLength: 80, size: 'max' });
  fc.assert(
    fc.property(readings, fc.constantFrom(0, 1, 3), fc.constantFrom(0, 1, 4), (readings, raiseAfterSeconds, clearAfterSeconds) => {
      let state = freshEpisode();
      return readings.every((reading, i) => {
        const step = stepEpisode(state, reading, i, cpu, { ...timing, raiseAfterSeconds, clearAfterSeconds });
        const { level } = state;
        state = step.state;
        if (step.taken === null) return state.level === level;
        seen.add(`${level} ${state.level}`);
        return TRANSITIONS.includes(step.taken) && step.taken.from === level && step.taken.to === state.level;
      });
    }),
    { numRuns: runs(150, 3000), seed: SEED },
  );
  t.equal(seen.size, TRANSITIONS.length, 'every transition was taken');
});
