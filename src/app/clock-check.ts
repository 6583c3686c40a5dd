import { type ClockEvent, type ClockReading, compareClocks } from '../core/clock-watch.ts';
import type { Log } from '../core/ports.ts';
import type { Clocks } from '../core/time.ts';

/** How often the three clocks are compared: reading boot time costs a system call or two. */
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

  /** Called with every sample; compares once a second at most. */
  check(): void {
    const monotonicSeconds = this.#clocks.monotonicSeconds();
    const last = this.#last;
    if (last && monotonicSeconds - last.monotonicSeconds < COMPARE_SECONDS) return;
    const reading: ClockReading = {
      monotonicSeconds,
      wallMilliseconds: this.#clocks.wallMilliseconds(),
      bootSeconds: this.#clocks.bootSeconds(),
    };
    this.#last = reading;
    if (!last) return;
    for (const event of compareClocks(last, reading)) {
      this.#record(event);
      const what = event.kind === 'suspend' ? 'the machine was asleep' : 'the wall clock was stepped';
      this.#log('notice', what, { seconds: event.delta_seconds });
    }
  }
}
