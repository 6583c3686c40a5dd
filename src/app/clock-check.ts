import type { Log } from '../core/ports.ts';
import { CLOCK_JUMP_SECONDS, type ClockEvent, type ClockReading, compareClocks } from '../core/time/clock-watch.ts';
import type { Clocks } from '../core/time/time.ts';

/** Interval of comparing all three clocks: reading boot time costs one or two system calls. */
const COMPARE_SECONDS = 1;

/** Detects suspends and steps of the wall clock. */
export class ClockCheck {
  readonly #clocks: Clocks;
  readonly #log: Log;
  readonly #record: (event: ClockEvent) => void;
  #last: ClockReading | null = null;

  constructor(clocks: Clocks, log: Log, record: (event: ClockEvent) => void) {
    this.#clocks = clocks;
    this.#log = log;
    this.#record = record;
  }

  /**
   * Called with every sample. A jump of the wall clock is detected at the first sample after it, so that the gap around it is at most one
   * period; otherwise the clocks are compared once per second at most.
   */
  check(): void {
    const monotonicSeconds = this.#clocks.monotonicSeconds();
    const wallMilliseconds = this.#clocks.wallMilliseconds();
    const last = this.#last;
    if (last) {
      const passedSeconds = monotonicSeconds - last.monotonicSeconds;
      const wallJump = (wallMilliseconds - last.wallMilliseconds) / 1000 - passedSeconds;
      if (passedSeconds < COMPARE_SECONDS && Math.abs(wallJump) < CLOCK_JUMP_SECONDS) return;
    }
    const reading: ClockReading = { monotonicSeconds, wallMilliseconds, bootSeconds: this.#clocks.bootSeconds() };
    this.#last = reading;
    if (!last) return;
    for (const event of compareClocks(last, reading)) {
      this.#record(event);
      const what = event.kind === 'suspend' ? 'suspend detected' : 'wall clock step detected';
      this.#log('notice', what, { seconds: event.delta_seconds });
    }
  }
}
