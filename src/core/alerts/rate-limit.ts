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
