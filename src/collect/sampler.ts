import type { DiskReading, Sample } from '../core/health-status.ts';
import type { Metric, Reading } from '../core/metrics.ts';
import { type Grid, intervalStartSeconds, planGrid } from '../core/time/grid.ts';
import type { Clocks } from '../core/time/time.ts';
import { DEADLINE_SECONDS, type Probe, type ProbeState } from './probe.ts';

export interface SamplerCounts {
  readonly taken: number;
  readonly missed: number;
}

/** At shorter periods, the sampler sleeps precisely, because timers have a resolution of 1 ms and fire late. */
const PRECISE_BELOW_SECONDS = 0.01;
const TIMER_GRAIN_SECONDS = 0.002;

/**
 * Takes one sample per sampling interval, on a fixed grid of monotonic time. It waits for readings up to half a period, but no longer than
 * DEADLINE_SECONDS, and not for a source that has been hanging since an earlier interval.
 */
export class Sampler {
  readonly #probes: readonly Probe[];
  readonly #clocks: Clocks;
  readonly #periodSeconds: number;
  readonly #onSample: (sample: Sample) => void;
  readonly #readDisks: (nowSeconds: number) => readonly DiskReading[];
  readonly #sleeper = new Int32Array(new SharedArrayBuffer(4));
  #grid: Grid | null = null;
  #nextInterval = 0;
  #timer: NodeJS.Timeout | null = null;
  #immediate: NodeJS.Immediate | null = null;
  #graceTimer: NodeJS.Timeout | null = null;
  /** The sampling interval whose readings are still awaited. */
  #open: { interval: number; monotonicSeconds: number; timestampMs: number; waiting: number } | null = null;
  #taken = 0;
  #missed = 0;

  constructor(
    probes: readonly Probe[],
    clocks: Clocks,
    periodSeconds: number,
    onSample: (sample: Sample) => void,
    readDisks: (nowSeconds: number) => readonly DiskReading[] = () => [],
  ) {
    this.#probes = probes;
    this.#clocks = clocks;
    this.#periodSeconds = periodSeconds;
    this.#onSample = onSample;
    this.#readDisks = readDisks;
  }

  /** `firstInSeconds`: time until sampling interval 0 begins. Sources that compare two readings take the first one at once. */
  start(firstInSeconds: number): void {
    this.#grid = { originSeconds: this.#clocks.monotonicSeconds() + firstInSeconds, periodSeconds: this.#periodSeconds };
    this.#nextInterval = 0;
    for (const probe of this.#probes) {
      probe.start(() => {
        // The result of the first of two readings is not used.
      });
    }
    this.#plan();
  }

  stop(): void {
    if (this.#timer) clearTimeout(this.#timer);
    if (this.#immediate) clearImmediate(this.#immediate);
    if (this.#graceTimer) clearTimeout(this.#graceTimer);
    this.#timer = null;
    this.#immediate = null;
    this.#graceTimer = null;
    this.#grid = null;
    this.#open = null;
    for (const probe of this.#probes) probe.source.close();
  }

  get counts(): SamplerCounts {
    return { taken: this.#taken, missed: this.#missed };
  }

  probeStates(): ProbeState[] {
    const now = this.#clocks.monotonicSeconds();
    return this.#probes.map((probe) => probe.state(now));
  }

  readonly #plan = (): void => {
    const grid = this.#grid;
    if (!grid) return;
    const plan = planGrid(grid, this.#nextInterval, this.#clocks.monotonicSeconds());
    if (plan.kind === 'sample') {
      this.#begin(plan.interval, plan.missed);
      // The callback may have stopped the sampler.
      if (this.#grid === grid) this.#immediate = setImmediate(this.#plan);
    } else if (this.#periodSeconds >= PRECISE_BELOW_SECONDS || plan.seconds > TIMER_GRAIN_SECONDS) {
      const early = this.#periodSeconds >= PRECISE_BELOW_SECONDS ? 0 : TIMER_GRAIN_SECONDS;
      this.#boundWait();
      this.#timer = setTimeout(this.#plan, Math.max(1, Math.ceil((plan.seconds - early) * 1000)));
    } else {
      // Above 100 Hz, a timer would miss samples. The loop processes pending events, then sleeps here for the remaining fraction of a
      // millisecond.
      Atomics.wait(this.#sleeper, 0, 0, plan.seconds * 1000);
      this.#immediate = setImmediate(this.#plan);
    }
  };

  #begin(interval: number, missed: number): void {
    const grid = this.#grid;
    this.#emit(); // An interval that still waits for a slow source ends here.
    if (!grid || this.#grid !== grid) return;
    this.#missed += missed;
    this.#nextInterval = interval + 1;
    const open = {
      interval,
      // The start of the interval and not the time of the timer: durations are computed from it, and jitter must not turn 3 s into 2.999.
      monotonicSeconds: intervalStartSeconds(grid, interval),
      timestampMs: Math.round(this.#clocks.wallMilliseconds()),
      waiting: 1,
    };
    this.#open = open;
    const settled = (): void => {
      open.waiting -= 1;
      if (open.waiting === 0 && this.#open === open) this.#emit();
    };
    for (const probe of this.#probes) {
      open.waiting += 1;
      if (!probe.start(settled)) open.waiting -= 1;
    }
    settled();
  }

  /**
   * Bounds the wait for readings that have not ended within the turn of the event loop in which they were started. Most have ended by then,
   * and even a timer that is cleared would wake the process up.
   */
  #boundWait(): void {
    if (!this.#open || this.#graceTimer || this.#periodSeconds < PRECISE_BELOW_SECONDS) return;
    const graceSeconds = Math.min(DEADLINE_SECONDS, this.#periodSeconds / 2);
    this.#graceTimer = setTimeout(() => this.#emit(), graceSeconds * 1000);
  }

  #emit(): void {
    const open = this.#open;
    if (!open) return;
    this.#open = null;
    if (this.#graceTimer) clearTimeout(this.#graceTimer);
    this.#graceTimer = null;
    this.#taken += 1;
    // Readings of this interval are used even if waiting for a hanging source has ended late.
    const now = Math.min(this.#clocks.monotonicSeconds(), open.monotonicSeconds + DEADLINE_SECONDS);
    const readings: Record<Metric, Reading> = { cpu_percent: null, memory_percent: null, disk_percent: null, temperature: null };
    for (const probe of this.#probes) readings[probe.metric] = probe.reading(now);
    const { interval, monotonicSeconds, timestampMs } = open;
    this.#onSample({ interval, monotonicSeconds, timestampMs, readings, disks: this.#readDisks(now) });
  }
}
