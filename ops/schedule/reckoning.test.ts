import t from 'tap';
import type { ClockReading } from '../../src/core/clock-watch.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { decide, decideAtStart, nextAfterPutBack, pass } from './reckoning.ts';
import { Timetable } from './timetable.ts';
import { zoneOf } from './zone.ts';

const NOW = Date.parse('2026-06-10T12:00:07Z');
const minutely = new Timetable('* * * * *', zoneOf('UTC'));
const nightly = new Timetable('0 0 * * *', zoneOf('UTC'));

/** Clocks `awake` seconds later, of which the machine slept `slept` more, and somebody set the clock by `stepped`. */
function later({ bootSeconds, monotonicSeconds, wallMilliseconds }: ClockReading, awake: number, slept = 0, stepped = 0): ClockReading {
  return {
    monotonicSeconds: monotonicSeconds + awake,
    bootSeconds: (bootSeconds ?? 0) + awake + slept,
    wallMilliseconds: wallMilliseconds + (awake + slept + stepped) * 1000,
  };
}
const reading: ClockReading = { monotonicSeconds: 1000, bootSeconds: 1000, wallMilliseconds: NOW };
const usual = { reading, coveredMs: NOW };

t.test('beat after beat', async (t) => {
  const next = later(reading, 15);
  t.same(pass(usual, next), {
    reckoning: { reading: next, coveredMs: NOW + 15_000 },
    fromMs: NOW,
    isBack: false,
    steppedSeconds: 0,
    sleptSeconds: 0,
  });
  t.same(decide(minutely, NOW, NOW + 15_000, false), { missed: 0, run: null, dueMs: null });
  t.same(decide(minutely, NOW, NOW + 53_500, false), { missed: 0, run: 'schedule', dueMs: NOW + 53_000 });
});

t.test('asleep for three nights', async (t) => {
  const passed = pass(usual, later(reading, 5, 3 * 86_400));
  t.match(passed, { fromMs: NOW, isBack: false, steppedSeconds: 0, sleptSeconds: 3 * 86_400 });
  const nowMs = passed.reckoning.reading.wallMilliseconds;
  t.match(decide(nightly, passed.fromMs, nowMs, true), { missed: 3, run: 'catch_up' }, 'one backup');
  t.match(decide(nightly, passed.fromMs, nowMs, false), { missed: 3, run: null });
  t.match(
    decide(minutely, passed.fromMs, nowMs, false),
    { missed: 3 * 1440 - 1, run: 'schedule' },
    'on time for the minute that has just begun',
  );
});

t.test('late, but not too late', async (t) => {
  const midnight = Date.parse('2026-06-11T00:00:00Z');
  t.match(decide(nightly, midnight - 1000, midnight + 29_000, false), { missed: 0, run: 'schedule', dueMs: midnight });
  t.match(decide(nightly, midnight - 1000, midnight + 31_000, false), { missed: 1, run: null, dueMs: midnight });
  t.match(decide(nightly, midnight - 1000, midnight + 31_000, true), { missed: 1, run: 'catch_up', dueMs: midnight });
});

t.test('clocks put forward by hours: one run of what lies between', async (t) => {
  const passed = pass(usual, later(reading, 5, 0, 20 * 3600));
  t.match(passed, { fromMs: NOW, isBack: false, steppedSeconds: 20 * 3600 });
  t.match(decide(nightly, passed.fromMs, NOW + 20 * HOUR_MS, true), { missed: 1, run: 'catch_up' });
});

t.test('a clock that begins in 1970 and is set later', async (t) => {
  const lost: ClockReading = { monotonicSeconds: 20, bootSeconds: 20, wallMilliseconds: 20_000 };
  const beat = Date.parse('2026-06-08T20:00:00Z');
  const running = pass({ reading: lost, coveredMs: beat }, later(lost, 30));
  t.match(running, { fromMs: 20_000, isBack: false, reckoning: { coveredMs: beat } }, 'an unset clock covers nothing');
  const set = pass(running.reckoning, later(running.reckoning.reading, 10, 0, NOW / 1000));
  t.equal(set.fromMs, beat, 'what the machine was off for, not half a century');
  t.match(decide(nightly, set.fromMs, NOW, true), { missed: 2, run: 'catch_up' });

  const first = pass({ reading: lost, coveredMs: null }, later(lost, 10, 0, NOW / 1000));
  t.equal(first.fromMs, first.reckoning.reading.wallMilliseconds, 'the first time ever: nothing was missed');
});

t.test('a clock that is behind what was covered, as of a computer without a clock of its own', async (t) => {
  const behind: ClockReading = { monotonicSeconds: 20, bootSeconds: 20, wallMilliseconds: NOW - HOUR_MS };
  const minute = pass({ reading: behind, coveredMs: NOW }, later(behind, 15));
  t.match(minute, { fromMs: NOW - HOUR_MS, reckoning: { coveredMs: NOW } });
  const set = pass(minute.reckoning, later(minute.reckoning.reading, 15, 0, 2 * 86_400));
  t.equal(set.fromMs, NOW);
  const barely = pass(minute.reckoning, later(minute.reckoning.reading, 15, 0, 60));
  t.equal(barely.fromMs, barely.reckoning.reading.wallMilliseconds, 'set to what is covered already: nothing is due');
});

t.test('clocks put back', async (t) => {
  const passed = pass(usual, later(reading, 5, 0, -3 * 86_400));
  const nowMs = passed.reckoning.reading.wallMilliseconds;
  t.match(passed, { fromMs: nowMs, isBack: true, reckoning: { coveredMs: nowMs } }, 'believed');
  t.match(pass(usual, later(reading, 5, 0, -NOW / 1000 + 100)), { isBack: true, reckoning: { coveredMs: NOW } }, 'but not to 1970');

  const midnight = Date.parse('2026-06-10T00:00:00Z');
  t.equal(nextAfterPutBack(minutely, NOW, NOW + 3 * DAY_MS), NOW + 53_000, 'no pause');
  t.equal(nextAfterPutBack(minutely, NOW, NOW + HOUR_MS), NOW + 53_000, 'nor of an hour');
  t.equal(nextAfterPutBack(minutely, midnight - 600, midnight), midnight + MINUTE_MS, 'not twice within a second');
  t.equal(nextAfterPutBack(nightly, midnight - HOUR_MS, midnight), midnight + DAY_MS, 'no second backup of the same night');
  t.equal(nextAfterPutBack(nightly, midnight - 5 * HOUR_MS, midnight), midnight, 'it may have been another night');
  t.equal(nextAfterPutBack(nightly, midnight - HOUR_MS, null), midnight);
});

t.test('at the start', async (t) => {
  const beatMs = NOW - 3 * DAY_MS;
  const past = { beatMs, nextMs: Date.parse('2026-06-08T00:00:00Z'), wasRunning: false };
  t.match(decideAtStart(nightly, past, NOW, true), { missed: 3, run: 'catch_up' }, 'off for three nights');
  t.match(decideAtStart(nightly, past, NOW, false), { missed: 3, run: null });
  t.match(decideAtStart(nightly, { ...past, beatMs: NOW - 5000, nextMs: NOW + HOUR_MS }, NOW, true), { missed: 0, run: null });
  t.match(
    decideAtStart(nightly, { beatMs: NOW - 5000, nextMs: NOW + HOUR_MS, wasRunning: true }, NOW, true),
    { missed: 0, run: 'catch_up' },
    'it did not end',
  );
  t.match(
    decideAtStart(nightly, { beatMs: NOW - 5000, nextMs: NOW - HOUR_MS, wasRunning: false }, NOW, true),
    { missed: 0, run: 'catch_up' },
    'interrupted, or not made up for yet',
  );
  t.match(decideAtStart(nightly, { beatMs: NOW - 5000, nextMs: NOW - HOUR_MS, wasRunning: false }, NOW, false), { run: null });
  t.match(decideAtStart(nightly, past, 30_000, true), { missed: 0, run: null }, 'in 1970 nothing can be said');
  t.match(
    decideAtStart(nightly, { ...past, beatMs: NOW + DAY_MS, nextMs: null }, NOW, true),
    { missed: 0, run: null },
    'nor by a clock that is behind',
  );
});
