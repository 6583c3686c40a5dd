import { type Metric, type Reading, toHundredths } from '../core/metrics.ts';
import type { Source } from './source.ts';

/** State of a collector for /status and /metrics. */
export interface ProbeState {
  readonly metric: Metric;
  readonly available: boolean;
  /** Why there is no current value; null: there is one. */
  readonly problem: string | null;
  /** Seconds since the last successful reading; null: none yet. */
  readonly age_seconds: number | null;
  readonly duration_seconds: number;
  readonly failures: number;
}

/** An older reading is not current; a source that takes longer is unavailable. */
export const DEADLINE_SECONDS = 0.5;

/**
 * Isolates a source: at most one read is in progress, a faulty source affects only its own metric, and its last error is reported. The
 * clock is passed in.
 */
export class Probe {
  readonly source: Source;
  readonly #nowSeconds: () => number;
  #value = 0;
  #goodSeconds = Number.NEGATIVE_INFINITY;
  #startedSeconds = 0;
  #durationSeconds = 0;
  #busy = false;
  #problem: string | null = 'not read yet';
  #failures = 0;

  constructor(source: Source, nowSeconds: () => number) {
    this.source = source;
    this.#nowSeconds = nowSeconds;
  }

  get metric(): Metric {
    return this.source.metric;
  }

  /** Starts a read unless one is in progress; returns whether it did. `settled` is called once when the read has ended. */
  start(settled: () => void): boolean {
    if (this.#busy) return false;
    this.#busy = true;
    this.#startedSeconds = this.#nowSeconds();
    let answered = false;
    const answer = (error: Error | null, value: number): void => {
      if (answered) return; // A second callback of a faulty source is ignored.
      answered = true;
      this.#busy = false;
      this.#finish(error, value);
      settled();
    };
    try {
      this.source.read(answer);
    } catch (error) {
      answer(error as Error, 0);
    }
    return true;
  }

  /** The last value if it is current, otherwise null. */
  reading(nowSeconds: number): Reading {
    if (this.#problem !== null || nowSeconds - this.#goodSeconds > DEADLINE_SECONDS) return null;
    return this.#value;
  }

  state(nowSeconds: number): ProbeState {
    const age = nowSeconds - this.#goodSeconds;
    const waiting = this.#busy ? nowSeconds - this.#startedSeconds : 0;
    const hanging = waiting > DEADLINE_SECONDS ? `no response for ${waiting.toFixed(1)} s` : null;
    const problem = hanging ?? this.#problem;
    return {
      metric: this.metric,
      available: problem === null,
      problem,
      age_seconds: Number.isFinite(age) ? age : null,
      duration_seconds: this.#durationSeconds,
      failures: this.#failures,
    };
  }

  #finish(error: Error | null, value: number): void {
    const now = this.#nowSeconds();
    this.#durationSeconds = now - this.#startedSeconds;
    if (!error && Number.isFinite(value)) {
      this.#value = toHundredths(value);
      this.#goodSeconds = now;
      this.#problem = null;
      return;
    }
    this.#failures += 1;
    this.#problem = error?.message ?? `${value} is not a number`;
  }
}
