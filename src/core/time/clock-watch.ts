import { type Clocks, roundToMilliseconds } from './time.ts';

/** The three clocks, read at the same moment. */
export interface ClockReading {
  readonly monotonicSeconds: number;
  readonly wallMilliseconds: number;
  readonly bootSeconds: number | null;
}

/** A step of the wall clock or a suspend. `delta_seconds` is signed for a step, positive for a suspend. */
export interface ClockEvent {
  readonly kind: 'step' | 'suspend';
  readonly timestamp_ms: number;
  readonly delta_seconds: number;
}

/** Times in milliseconds that this boot stamped before its wall clock stepped, and what corrects them. */
export interface ClockCorrection {
  readonly fromMs: number;
  readonly toMs: number;
  readonly deltaMs: number;
}

/** `bootSeconds`: boot time at the step. Times of earlier boots, when the clock may have been right, are not corrected. */
export function correctionOf({ delta_seconds, timestamp_ms }: ClockEvent, bootSeconds: number): ClockCorrection {
  const deltaMs = Math.round(delta_seconds * 1000);
  const toMs = timestamp_ms - deltaMs;
  return { fromMs: toMs - bootSeconds * 1000, toMs, deltaMs };
}

export function corrected(ms: number, { deltaMs, fromMs, toMs }: ClockCorrection): number {
  return ms >= fromMs && ms <= toMs ? ms + deltaMs : ms;
}

/**
 * Jumps smaller than this are slewing, scheduling between two clock reads, or the 10 ms resolution of /proc/uptime. NTP daemons step only
 * beyond 128 ms to 1 s, and no evaluation here needs a resolution finer than a sampling period.
 */
export const CLOCK_JUMP_SECONDS = 0.5;

/**
 * Distinguishes a clock step from a suspend by the clocks that moved relative to the monotonic clock: boot time and wall clock in a
 * suspend, the wall clock alone in a step. Both can have happened between two readings.
 */
export function compareClocks(before: ClockReading, after: ClockReading): ClockEvent[] {
  const monotonic = after.monotonicSeconds - before.monotonicSeconds;
  const wallJump = (after.wallMilliseconds - before.wallMilliseconds) / 1000 - monotonic;
  const slept = before.bootSeconds === null || after.bootSeconds === null ? 0 : after.bootSeconds - before.bootSeconds - monotonic;
  const events: ClockEvent[] = [];
  const event = (kind: ClockEvent['kind'], seconds: number): void => {
    events.push({ kind, timestamp_ms: after.wallMilliseconds, delta_seconds: roundToMilliseconds(seconds) });
  };
  const suspended = slept >= CLOCK_JUMP_SECONDS ? slept : 0;
  if (suspended > 0) event('suspend', suspended);
  const stepped = wallJump - suspended;
  if (Math.abs(stepped) >= CLOCK_JUMP_SECONDS) event('step', stepped);
  return events;
}

/**
 * Interval of reading boot time while the wall clock does not jump. It bounds how late a suspend is detected during which the wall clock
 * was set back by the length of the suspend; any other suspend moves the wall clock.
 */
const BOOT_READ_SECONDS = 60;

/** Detects suspends and steps of the wall clock. */
export class ClockCheck {
  readonly #clocks: Clocks;
  readonly #record: (event: ClockEvent) => void;
  #last: ClockReading | null = null;
  #bootReadSeconds = Number.NEGATIVE_INFINITY;

  constructor(clocks: Clocks, record: (event: ClockEvent) => void) {
    this.#clocks = clocks;
    this.#record = record;
  }

  /**
   * Called with every sample, so that the gap around a jump is at most one period. Between two readings of boot time, which cost a system
   * call, boot time is advanced by the monotonic time passed.
   */
  check(): void {
    const monotonicSeconds = this.#clocks.monotonicSeconds();
    const wallMilliseconds = this.#clocks.wallMilliseconds();
    const last = this.#last;
    if (last && monotonicSeconds - this.#bootReadSeconds < BOOT_READ_SECONDS) {
      const passedSeconds = monotonicSeconds - last.monotonicSeconds;
      const wallJump = (wallMilliseconds - last.wallMilliseconds) / 1000 - passedSeconds;
      if (Math.abs(wallJump) < CLOCK_JUMP_SECONDS) {
        const bootSeconds = last.bootSeconds === null ? null : last.bootSeconds + passedSeconds;
        this.#last = { monotonicSeconds, wallMilliseconds, bootSeconds };
        return;
      }
    }
    this.#bootReadSeconds = monotonicSeconds;
    this.#last = { monotonicSeconds, wallMilliseconds, bootSeconds: this.#clocks.bootSeconds() };
    if (!last) return;
    for (const event of compareClocks(last, this.#last)) this.#record(event);
  }
}
