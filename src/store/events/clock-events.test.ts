import t from 'tap';
import type { ClockEvent } from '../../core/time/clock-watch.ts';
import { clockTimeMs, futureJump, repeatedMs, skippedMs } from './clock-events.ts';

const event = (timestamp_ms: number, delta_seconds: number): ClockEvent => ({ kind: 'step', timestamp_ms, delta_seconds });

t.test('a step forward skips the time before it', async (t) => {
  const events = [event(100_000, 60)]; // 40 s → 100 s
  t.equal(skippedMs(events, 0, 200_000), 60_000);
  t.equal(skippedMs(events, 0, 40_000), 0);
  t.equal(skippedMs(events, 0, 50_000), 10_000);
  t.equal(skippedMs(events, 50_000, 60_000), 10_000, 'a range inside the jump');
  t.equal(skippedMs(events, 90_000, 200_000), 10_000);
  t.equal(skippedMs(events, 100_000, 200_000), 0);
  t.equal(repeatedMs(events, 0, 200_000), 0);
});

t.test('a suspend and a step detected together never skip more than the range', async (t) => {
  t.equal(skippedMs([event(100_000, 60), event(100_000, 50)], 80_000, 100_000), 20_000);
});

t.test('a step back repeats the time after it', async (t) => {
  const events = [event(100_000, -60)]; // 160 s → 100 s
  t.equal(repeatedMs(events, 0, 200_000), 60_000);
  t.equal(repeatedMs(events, 0, 100_000), 0);
  t.equal(repeatedMs(events, 150_000, 200_000), 10_000);
  t.equal(skippedMs(events, 0, 200_000), 0);
  t.equal(skippedMs(events, 99_000, 101_000), 0);
});

t.test('a jump skips all but the rest of the gap around it, also when detected after the next sample', async (t) => {
  t.equal(skippedMs([event(3_600_500, 3600)], 0, 3_601_000), 3_600_000);
  const late = [event(3_601_800, 3600)];
  t.equal(skippedMs(late, 0, 3_601_000), 3_601_000 - 1800);
  t.equal(skippedMs(late, 3_601_000, 3_602_000), 800);
  t.equal(skippedMs([], 0, 3_601_000), 0);
});

t.test('an empty range and one that runs backwards skip nothing', async (t) => {
  const events = [event(3_601_800, 3600)];
  t.equal(skippedMs(events, 5000, 5000), 0);
  t.equal(skippedMs(events, 9000, 5000), 0);
});

t.test('a node first seen after a time did not pass that time twice', async (t) => {
  const events = [event(100_000, -60)]; // 160 s → 100 s
  t.equal(repeatedMs(events, 0, 200_000, 150_000), 10_000);
  t.equal(repeatedMs(events, 0, 200_000, 170_000), 0);
  t.equal(repeatedMs(events, 0, 200_000, 50_000), 60_000);
});

t.test('future time is excluded from gaps up to the times reached before a step back', async (t) => {
  const events = [event(100_000, -60)];
  t.same(futureJump(events, 110_000, 110_000, 0), [], 'a range that ends by now');
  t.equal(skippedMs(futureJump(events, 110_000, 200_000, 0), 0, 200_000), 0, 'the clock passed all of it');
  t.equal(skippedMs(futureJump(events, 110_000, 200_000, 150_000), 0, 200_000), 40_000, 'from 150 s on');
  t.equal(skippedMs(futureJump([], 110_000, 200_000, 0), 0, 200_000), 90_000, 'without a recorded step');
  t.equal(clockTimeMs(events, 0, 200_000, 110_000, 0), 170_000, '160 s, and 10 of them again');
  t.equal(clockTimeMs(events, 0, 200_000, 110_000, 150_000), 120_000, 'for a node first seen at 150 s');
  t.equal(clockTimeMs(events, 120_000, 200_000, 110_000, 0), 40_000, 'a range in the future');
});
