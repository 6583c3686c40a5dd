import type { ClockEvent } from '../../core/time/clock-watch.ts';

const NONE: readonly ClockEvent[] = [];

function overlap(fromMs: number, toMs: number, otherFromMs: number, otherToMs: number): number {
  return Math.max(0, Math.min(toMs, otherToMs) - Math.max(fromMs, otherFromMs));
}

/** Time in a range that the wall clock skipped by forward steps and suspends; a time skipped twice counts twice. */
function skippedTotalMs(events: readonly ClockEvent[], fromMs: number, toMs: number): number {
  let passed = 0;
  for (const { timestamp_ms, delta_seconds } of events) {
    if (delta_seconds > 0) passed += overlap(fromMs, toMs, timestamp_ms - delta_seconds * 1000, timestamp_ms);
  }
  return passed;
}

/** Time in a range in which no sample can lie, because the wall clock skipped it by forward steps and suspends. */
export function skippedMs(events: readonly ClockEvent[], fromMs: number, toMs: number): number {
  return Math.min(skippedTotalMs(events, fromMs, toMs), toMs - fromMs);
}

/**
 * Time in a range that a step back makes the wall clock pass twice. `firstSeenMs` is when the node was first seen; earlier times of the
 * first pass do not count for it.
 */
export function repeatedMs(events: readonly ClockEvent[], fromMs: number, toMs: number, firstSeenMs = Number.NEGATIVE_INFINITY): number {
  let repeated = 0;
  for (const { timestamp_ms, delta_seconds } of events) {
    if (delta_seconds < 0) repeated += overlap(fromMs, toMs, Math.max(timestamp_ms, firstSeenMs), timestamp_ms - delta_seconds * 1000);
  }
  return repeated;
}

/** How long the wall clock was in a range up to now, counting repetitions; after a step back it may have been later than now. */
export function clockTimeMs(events: readonly ClockEvent[], fromMs: number, toMs: number, nowMs: number, firstSeenMs: number): number {
  const sinceFrom = Math.max(0, Math.min(toMs, nowMs) - fromMs);
  return Math.max(0, sinceFrom - skippedTotalMs(events, fromMs, toMs) + repeatedMs(events, fromMs, toMs, firstSeenMs));
}

/**
 * The future part of a range, up to the times that the clock reached before a step back, as a clock event, so that it does not count as a
 * gap. Empty if the range ends by now.
 */
export function futureJump(events: readonly ClockEvent[], nowMs: number, toMs: number, firstSeenMs: number): readonly ClockEvent[] {
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
 * The forward jumps between two times, as one event at the second time. A jump is detected only some time after the clock made it,
 * possibly after the next sample, and a range may end inside one. Steps back create no gap.
 */
export function jumpsBetween(events: readonly ClockEvent[], fromMs: number, toMs: number): readonly ClockEvent[] {
  if (events.length === 0 || toMs <= fromMs) return NONE;
  const skipped = skippedMs(events, fromMs, toMs);
  return skipped === 0 ? NONE : [{ kind: 'step', timestamp_ms: toMs, delta_seconds: skipped / 1000 }];
}
