import type { ClockEvent } from '../core/clock-watch.ts';

const NONE: readonly ClockEvent[] = [];

function overlap(fromMs: number, toMs: number, otherFromMs: number, otherToMs: number): number {
  return Math.max(0, Math.min(toMs, otherToMs) - Math.max(fromMs, otherFromMs));
}

/** How much of a range the wall clock passed over in steps forward and suspends, so that no sample can lie there. */
export function skippedMs(events: readonly ClockEvent[], fromMs: number, toMs: number): number {
  let skipped = 0;
  for (const { timestamp_ms, delta_seconds } of events) {
    if (delta_seconds > 0) skipped += overlap(fromMs, toMs, timestamp_ms - delta_seconds * 1000, timestamp_ms);
  }
  return Math.min(skipped, toMs - fromMs);
}

/** How much of a range the wall clock went through once more after steps back. */
export function repeatedMs(events: readonly ClockEvent[], fromMs: number, toMs: number): number {
  let repeated = 0;
  for (const { timestamp_ms, delta_seconds } of events) {
    if (delta_seconds < 0) repeated += overlap(fromMs, toMs, timestamp_ms, timestamp_ms - delta_seconds * 1000);
  }
  return repeated;
}

/**
 * What of the jumps lies between two times, as one event at the second: a jump is noticed only some time after the clock
 * made it, maybe after the next sample, and a range may end inside one. Steps back make no gap.
 */
export function jumpsBetween(events: readonly ClockEvent[], fromMs: number, toMs: number): readonly ClockEvent[] {
  if (events.length === 0 || toMs <= fromMs) return NONE;
  const skipped = skippedMs(events, fromMs, toMs);
  return skipped === 0 ? NONE : [{ kind: 'step', timestamp_ms: toMs, delta_seconds: skipped / 1000 }];
}
