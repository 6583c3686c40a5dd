import { EPSILON_SECONDS } from '../time/time.ts';

/** A token bucket: `perSecond` in the long run, and up to `burst` at once. */
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

  /** Takes a token; false: none is left. */
  take(nowSeconds: number): boolean {
    if (this.waitSeconds(nowSeconds) > 0) return false;
    this.#level -= 1;
    return true;
  }

  /** Seconds until a token can be taken; 0: now. */
  waitSeconds(nowSeconds: number): number {
    this.#refill(nowSeconds);
    return this.#level + EPSILON_SECONDS < 1 ? (1 - this.#level) / this.#perSecond : 0;
  }

  isFull(nowSeconds: number): boolean {
    this.#refill(nowSeconds);
    return this.#level >= this.#burst;
  }

  #refill(nowSeconds: number): void {
    const gained = (nowSeconds - this.#atSeconds) * this.#perSecond;
    if (gained <= 0) return;
    this.#level = Math.min(this.#burst, this.#level + gained);
    this.#atSeconds = nowSeconds;
  }
}

/** Limits log lines to one per minute and kind. */
export class LineLimit {
  readonly #kinds = new Map<string, { loggedSeconds: number; since: number }>();

  /** Number of occurrences since the last line, including this one; null: do not log now. */
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
