import type { ClockEvent } from '../core/clock-watch.ts';

const NONE: readonly ClockEvent[] = [];

function overlap(fromMs: number, toMs: number, otherFromMs: number, otherToMs: number): number {
  return Math.max(0, Math.min(toMs, otherToMs) - Math.max(fromMs, otherFromMs));
}

/** How much of a range the wall clock passed over in steps forward and suspends; what it passed over twice counts twice. */
function passedOverMs(events: readonly ClockEvent[], fromMs: number, toMs: number): number {
  let passed = 0;
  for (const { timestamp_ms, delta_seconds } of events) {
    if (delta_seconds > 0) passed += overlap(fromMs, toMs, timestamp_ms - delta_seconds * 1000, timestamp_ms);
  }
  return passed;
}

/** How much of a range the wall clock passed over in steps forward and suspends, so that no sample can lie there. */
export function skippedMs(events: readonly ClockEvent[], fromMs: number, toMs: number): number {
  return Math.min(passedOverMs(events, fromMs, toMs), toMs - fromMs);
}

/**
 * How much of a range the wall clock went through once before a step back and once after it, or has still to go through once more.
 * `firstSeenMs`: when whoever is asked about was first seen; he was not there for the part of the first time that lies before that.
 */
export function repeatedMs(events: readonly ClockEvent[], fromMs: number, toMs: number, firstSeenMs = Number.NEGATIVE_INFINITY): number {
  let repeated = 0;
  for (const { timestamp_ms, delta_seconds } of events) {
    if (delta_seconds < 0) repeated += overlap(fromMs, toMs, Math.max(timestamp_ms, firstSeenMs), timestamp_ms - delta_seconds * 1000);
  }
  return repeated;
}

/** How long the clock was in a range up to now, however often; after a step back it may have been beyond now. */
export function livedMs(events: readonly ClockEvent[], fromMs: number, toMs: number, nowMs: number, firstSeenMs: number): number {
  const sinceFrom = Math.max(0, Math.min(toMs, nowMs) - fromMs);
  return Math.max(0, sinceFrom - passedOverMs(events, fromMs, toMs) + repeatedMs(events, fromMs, toMs, firstSeenMs));
}

/**
 * The time from now on that has not come yet, up to what was lived of it before a step back, as an event: it parts samples and is no gap
 * between them. None where the range ends by now.
 */
export function notYet(events: readonly ClockEvent[], nowMs: number, toMs: number, firstSeenMs: number): readonly ClockEvent[] {
  if (toMs <= nowMs) return NONE;
  let untilMs = toMs;
  for (const { timestamp_ms, delta_seconds } of events) {
    if (delta_seconds < 0 && timestamp_ms - delta_seconds * 1000 > nowMs) {
      untilMs = Math.min(untilMs, Math.max(nowMs, timestamp_ms, firstSeenMs));
    }
  }
  return [{ kind: 'step', timestamp_ms: untilMs, delta_seconds: (untilMs - nowMs) / 1000 }];
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
