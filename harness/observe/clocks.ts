import { type ClockReading, compareClocks } from '../../src/core/time/clock-watch.ts';
import type { Clocks } from '../../src/core/time/time.ts';
import type { Clocked } from '../record/entries.ts';

/** Smaller steps are not recorded, because the criteria work in seconds. */
const RECORDED_SECONDS = 1;
const TICK_SECONDS = 1;
/** A tick that comes later than this means that the process was stalled. */
const STALLED_SECONDS = 2;

export interface ObserverClocksOptions {
  readonly clocks: Clocks;
  /** Called for each detected step of the wall clock (positive: forward) or suspend. */
  readonly onEvent: (kind: 'step' | 'suspend', seconds: number) => void;
}

/**
 * The clocks of the observer's machine, compared once a second. A jump of only the wall clock is a step; boot time that exceeds monotonic
 * time is a suspend; a comparison that is late by the monotonic clock means that this process was stalled.
 */
export class ObserverClocks {
  readonly #options: ObserverClocksOptions;
  #last: ClockReading;
  #stalled = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: ObserverClocksOptions) {
    this.#options = options;
    this.#last = this.#read();
  }

  start(): void {
    this.#last = this.#read();
    this.#timer ??= setInterval(() => this.check(), TICK_SECONDS * 1000);
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Returns boot and monotonic time in seconds, and wall time in milliseconds. Without procfs, boot time is monotonic time. */
  now(): Clocked {
    const { bootSeconds, monotonicSeconds, wallMilliseconds } = this.#read();
    return { boot: bootSeconds ?? monotonicSeconds, mono: monotonicSeconds, wall: wallMilliseconds };
  }

  /** Seconds in which this process was stalled since the previous call, excluding stalls of up to 2 s. */
  takeStalled(): number {
    this.check();
    const stalled = this.#stalled;
    this.#stalled = 0;
    return stalled;
  }

  /** Compares the clocks now instead of at the next tick. */
  check(): void {
    const before = this.#last;
    const after = this.#read();
    this.#last = after;
    for (const { delta_seconds, kind } of compareClocks(before, after))
      if (Math.abs(delta_seconds) >= RECORDED_SECONDS) this.#options.onEvent(kind, delta_seconds);
    const late = after.monotonicSeconds - before.monotonicSeconds - TICK_SECONDS;
    if (late > STALLED_SECONDS) this.#stalled += late;
  }

  #read(): ClockReading {
    const { clocks } = this.#options;
    return {
      monotonicSeconds: clocks.monotonicSeconds(),
      wallMilliseconds: clocks.wallMilliseconds(),
      bootSeconds: clocks.bootSeconds(),
    };
  }
}
