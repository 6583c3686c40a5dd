/**
 * Calls a function at most once per `pauseMs`, and `collectMs` after the first request, so that what arrives together, such as the
 * statuses of all nodes, needs one call.
 */
export class Throttle {
  readonly #action: () => void;
  readonly #pauseMs: number;
  readonly #collectMs: number;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #actedMs = Number.NEGATIVE_INFINITY;

  constructor(action: () => void, pauseMs: number, collectMs: number) {
    this.#action = action;
    this.#pauseMs = pauseMs;
    this.#collectMs = collectMs;
  }

  /** When the function was last called, in performance.now() time. */
  get actedMs(): number {
    return this.#actedMs;
  }

  request(): void {
    if (this.#timer !== null) return;
    const delayMs = Math.max(this.#collectMs, this.#actedMs + this.#pauseMs - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#actedMs = performance.now();
      this.#action();
    }, delayMs);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
