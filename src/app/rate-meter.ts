const WINDOW_SECONDS = 60;

/** Events per second over the last minute, counted in buckets of a second: constant cost at any rate. */
export class RateMeter {
  readonly #buckets = new Uint32Array(WINDOW_SECONDS + 1);
  #firstSeconds: number | null = null;
  #lastBucket = 0;
  #lastSeconds = 0;

  count(atSeconds: number): void {
    this.#firstSeconds ??= atSeconds;
    this.#advance(atSeconds);
    const slot = Math.floor(atSeconds) % this.#buckets.length;
    this.#buckets[slot] = (this.#buckets[slot] ?? 0) + 1;
    this.#lastSeconds = atSeconds;
  }

  /** Events per second over the last whole minute, or since the first event; null during the first two seconds. */
  hertz(nowSeconds: number): number | null {
    if (this.#firstSeconds === null) return null;
    const span = Math.min(WINDOW_SECONDS, Math.floor(nowSeconds) - Math.ceil(this.#firstSeconds));
    if (span < 2) return null;
    this.#advance(Math.max(nowSeconds, this.#lastSeconds));
    let sum = 0;
    const last = Math.floor(nowSeconds) - 1;
    for (let second = last; second > last - span; second -= 1) sum += this.#buckets[second % this.#buckets.length] ?? 0;
    return sum / span;
  }

  #advance(atSeconds: number): void {
    const bucket = Math.floor(atSeconds);
    for (let second = Math.max(this.#lastBucket + 1, bucket - WINDOW_SECONDS); second <= bucket; second += 1) {
      this.#buckets[second % this.#buckets.length] = 0;
    }
    this.#lastBucket = Math.max(this.#lastBucket, bucket);
  }
}
