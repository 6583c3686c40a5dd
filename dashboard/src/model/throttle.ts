/** Calls a function at most once per `pauseMs`: at once if no pause is running, otherwise when the current pause ends. */
export class Throttle {
  readonly #action: () => void;
  readonly #pauseMs: number;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #isDue = false;

  constructor(action: () => void, pauseMs: number) {
    this.#action = action;
    this.#pauseMs = pauseMs;
  }

  request(): void {
    if (this.#timer !== null) {
      this.#isDue = true;
      return;
    }
    this.#timer = setTimeout(() => this.#endPause(), this.#pauseMs);
    this.#action();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#isDue = false;
  }

  #endPause(): void {
    this.#timer = null;
    if (!this.#isDue) return;
    this.#isDue = false;
    this.request();
  }
}
