import { type ClockReading, compareClocks } from '../../src/core/clock-watch.ts';
import type { Clocks } from '../../src/core/time.ts';
import type { Clocked } from '../record/entries.ts';

/** Less than this is told by nobody: what is judged by it is measured in seconds. */
const TOLD_SECONDS = 1;
const TICK_SECONDS = 1;
/** Later than this, and the process was kept from running. */
const STALLED_SECONDS = 2;

export interface WatchClocksOptions {
  readonly clocks: Clocks;
  /** A step of the wall clock (positive: forward) or a suspend, as it is found. */
  readonly onEvent: (kind: 'step' | 'suspend', seconds: number) => void;
  readonly tickSeconds?: number;
}

/**
 * The clocks of the machine that watches. Once a second it compares them: what the wall clock alone did was a step, what boot time did
 * beyond the monotonic clock was a suspend, and when it comes late by that clock, this process was kept from running.
 */
export class WatchClocks {
  readonly #options: WatchClocksOptions;
  readonly #tickSeconds: number;
  #last: ClockReading;
  #stalled = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: WatchClocksOptions) {
    this.#options = options;
    this.#tickSeconds = options.tickSeconds ?? TICK_SECONDS;
    this.#last = this.#read();
  }

  start(): void {
    this.#last = this.#read();
    this.#timer ??= setInterval(() => this.check(), this.#tickSeconds * 1000);
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** As they are now: seconds of boot and of monotonic time, milliseconds of wall time. Without procfs boot time is monotonic time. */
  now(): Clocked {
    const { bootSeconds, monotonicSeconds, wallMilliseconds } = this.#read();
    return { boot: bootSeconds ?? monotonicSeconds, mono: monotonicSeconds, wall: wallMilliseconds };
  }

  /** How long this process was kept from running since the last time this was asked, in pieces of more than 2 s. */
  takeStalled(): number {
    this.check();
    const stalled = this.#stalled;
    this.#stalled = 0;
    return stalled;
  }

  /** Compares now rather than with the next tick. */
  check(): void {
    const before = this.#last;
    const after = this.#read();
    this.#last = after;
    for (const { delta_seconds, kind } of compareClocks(before, after))
      if (Math.abs(delta_seconds) >= TOLD_SECONDS) this.#options.onEvent(kind, delta_seconds);
    const late = after.monotonicSeconds - before.monotonicSeconds - this.#tickSeconds;
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
