import { EPSILON_SECONDS } from './time.ts';

/** A token bucket: so many a second in the long run, and `burst` of them at once. */
export class TokenBucket {
  readonly #perSecond: number;
  readonly #burst: number;
  #level: number;
  #atSeconds = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number, burst: number) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#level = burst;
  }

  /** Whether one may pass; it is counted then. */
  take(nowSeconds: number): boolean {
    const gained = (nowSeconds - this.#atSeconds) * this.#perSecond;
    if (gained > 0) {
      this.#level = Math.min(this.#burst, this.#level + gained);
      this.#atSeconds = nowSeconds;
    }
    if (this.#level + EPSILON_SECONDS < 1) return false;
    this.#level -= 1;
    return true;
  }
}

/** Whether a line should be logged: at most one a minute of each kind, with how often it happened since the last one. */
export class LineLimit {
  readonly #kinds = new Map<string, { loggedSeconds: number; since: number }>();

  /** How often it happened since the last line, this time included; null: not to be logged now. */
  count(kind: string, nowSeconds: number): number | null {
    const known = this.#kinds.get(kind);
    if (known && nowSeconds - known.loggedSeconds < 60) {
      known.since += 1;
      return null;
    }
    const times = (known?.since ?? 0) + 1;
    this.#kinds.set(kind, { loggedSeconds: nowSeconds, since: 0 });
    return times;
  }
}
