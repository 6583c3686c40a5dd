import { type Metric, type Reading, toHundredths } from '../core/metrics.ts';
import type { Source } from './source.ts';

/** How a collector is doing, for /status and /metrics. */
export interface ProbeState {
  readonly metric: Metric;
  readonly available: boolean;
  /** Why there is no value now; null when there is one. */
  readonly problem: string | null;
  /** Seconds since the last good reading; null: there was none yet. */
  readonly age_seconds: number | null;
  readonly duration_seconds: number;
  readonly failures: number;
}

/** A reading older than this does not count as current; a source that takes longer is unavailable. */
export const DEADLINE_SECONDS = 0.5;

/**
 * Isolates one source: at most one read is under way, whatever the source does costs its own metric only, and what went
 * wrong can be told. Time comes in from outside.
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

  /** Starts a read unless one still hangs; `settled` is called once when it has ended, not at all if none was started. */
  start(settled: () => void): boolean {
    if (this.#busy) return false;
    this.#busy = true;
    this.#startedSeconds = this.#nowSeconds();
    let answered = false;
    const answer = (error: Error | null, value: number): void => {
      if (answered) return; // A source that answers twice is wrong, but harms nobody.
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

  /** The value if it was read lately, else null. */
  reading(nowSeconds: number): Reading {
    if (this.#problem !== null || nowSeconds - this.#goodSeconds > DEADLINE_SECONDS) return null;
    return this.#value;
  }

  state(nowSeconds: number): ProbeState {
    const age = nowSeconds - this.#goodSeconds;
    const waiting = this.#busy ? nowSeconds - this.#startedSeconds : 0;
    const hanging = waiting > DEADLINE_SECONDS ? `no answer for ${waiting.toFixed(1)} s` : null;
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
