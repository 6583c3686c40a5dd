import { CLOCK_JUMP_SECONDS, type ClockEvent, type ClockReading, compareClocks } from '../core/clock-watch.ts';
import type { Log } from '../core/ports.ts';
import type { Clocks } from '../core/time.ts';

/** How often all three clocks are compared: reading boot time costs a system call or two. */
const COMPARE_SECONDS = 1;

/** Notices that the machine was asleep, or that its wall clock was set. */
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
   * Called with every sample. A jump of the wall clock is noticed with the first sample after it, so that no more than a period seems to be
   * missing around it; apart from that the clocks are compared once a second at most.
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
      const what = event.kind === 'suspend' ? 'the machine was asleep' : 'the wall clock was stepped';
      this.#log('notice', what, { seconds: event.delta_seconds });
    }
  }
}
