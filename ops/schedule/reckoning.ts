import { type ClockReading, compareClocks } from '../../src/core/clock-watch.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import type { Trigger } from '../lib/job.ts';
import type { Timetable } from './timetable.ts';

/** A run that begins later than this after its time has missed it. */
export const ON_TIME_MS = 30_000;
/** Before this a clock has not been set yet: nobody ran this program then. */
export const EARLIEST_MS = Date.UTC(2026, 0, 1);
/** Clocks put back by up to so much do not repeat what runs at fixed times, and else nothing within a minute. As cron(8) has it. */
const PUT_BACK_MS = 3 * HOUR_MS;

/** Up to where the times of all jobs are accounted for. */
export interface Reckoning {
  /** At the last beat. */
  readonly reading: ClockReading;
  /**
   * The latest time by a clock that was set, up to which the scheduler is known to have run, in earlier lives too; null: never.
   * It is ahead of the clock where that is not set yet: what is skipped by setting it was missed only from here on.
   */
  readonly coveredMs: number | null;
}

export interface Passed {
  readonly reckoning: Reckoning;
  /** What passed since the last beat: times after this, up to now, are due. */
  readonly fromMs: number;
  /** Clocks were put back: what was to come is to be worked out anew. */
  readonly isBack: boolean;
  /** By how much the clock was set, and how long the machine slept; 0: not at all. */
  readonly steppedSeconds: number;
  readonly sleptSeconds: number;
}

/** What passed between two beats. */
export function pass({ coveredMs, reading: before }: Reckoning, reading: ClockReading): Passed {
  let [steppedSeconds, sleptSeconds] = [0, 0];
  for (const { delta_seconds, kind } of compareClocks(before, reading)) {
    if (kind === 'step') steppedSeconds = delta_seconds;
    else sleptSeconds = delta_seconds;
  }
  const nowMs = reading.wallMilliseconds;
  const isSet = nowMs >= EARLIEST_MS;
  const isBack = nowMs < before.wallMilliseconds;
  // A clock put back is believed, be it that it was wrong before; but not one that lost its time.
  const covered = isBack && isSet ? nowMs : isSet ? Math.max(coveredMs ?? 0, nowMs) : coveredMs;
  return {
    reckoning: { reading, coveredMs: covered },
    fromMs: isBack ? nowMs : steppedSeconds > 0 ? afterStep(before.wallMilliseconds, coveredMs, nowMs) : before.wallMilliseconds,
    isBack,
    steppedSeconds,
    sleptSeconds,
  };
}

/** A clock that is set forwards was behind: what lies between is what the machine was off for, beyond what had been covered. */
function afterStep(beforeMs: number, coveredMs: number | null, nowMs: number): number {
  if (coveredMs !== null) return Math.min(nowMs, Math.max(beforeMs, coveredMs));
  return beforeMs < EARLIEST_MS ? nowMs : beforeMs;
}

export interface Decision {
  /** Times that passed without a run. */
  readonly missed: number;
  readonly run: Exclude<Trigger, 'manual'> | null;
  /** The time that `run` is for. */
  readonly dueMs: number | null;
}

/** What the times of a job after `fromMs` up to now call for. However many were missed, one run makes up for them. */
export function decide(timetable: Timetable, fromMs: number, nowMs: number, makesUp: boolean): Decision {
  const { count, lastMs } = timetable.within(fromMs, nowMs);
  if (lastMs === null) return { missed: 0, run: null, dueMs: null };
  const isOnTime = nowMs - lastMs <= ON_TIME_MS;
  return { missed: isOnTime ? count - 1 : count, run: isOnTime ? 'schedule' : makesUp ? 'catch_up' : null, dueMs: lastMs };
}

/** The next time of a job after clocks were put back to `nowMs`, where the time that had its run last lies ahead. */
export function nextAfterPutBack(timetable: Timetable, nowMs: number, lastDueMs: number | null): number | null {
  const aheadMs = (lastDueMs ?? nowMs) - nowMs;
  const isRepeated = aheadMs > 0 && aheadMs <= (timetable.isFixed ? PUT_BACK_MS : MINUTE_MS);
  return timetable.next(isRepeated ? (lastDueMs as number) : nowMs);
}

/** What is left of a job from an earlier life of the scheduler. */
export interface Past {
  /** When the scheduler was last known to run. */
  readonly beatMs: number;
  /** The time it was to run next; in the past, or with a run that did not end: it is still owed. */
  readonly nextMs: number | null;
  readonly wasRunning: boolean;
}

/** What the times of a job that passed while there was no scheduler call for. */
export function decideAtStart(timetable: Timetable, past: Past, nowMs: number, makesUp: boolean): Decision {
  const isOwed = past.wasRunning || (past.nextMs !== null && past.nextMs <= past.beatMs);
  // A clock that is not set yet, or behind: nothing can be said until it is set.
  const isBehind = nowMs < EARLIEST_MS || nowMs <= past.beatMs;
  const decision = isBehind ? { missed: 0, run: null, dueMs: null } : decide(timetable, past.beatMs, nowMs, makesUp);
  if (!isOwed || decision.run !== null) return decision;
  return { missed: decision.missed, run: makesUp ? 'catch_up' : null, dueMs: decision.dueMs ?? past.nextMs };
}
