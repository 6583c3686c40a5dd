/** Calls a function at most once in a while: at once when it was quiet, else when the pause is over. */
export class Throttle {
  readonly #act: () => void;
  readonly #pauseMs: number;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #isDue = false;

  constructor(act: () => void, pauseMs: number) {
    this.#act = act;
    this.#pauseMs = pauseMs;
  }

  ask(): void {
    if (this.#timer !== null) {
      this.#isDue = true;
      return;
    }
    this.#timer = setTimeout(() => this.#pauseOver(), this.#pauseMs);
    this.#act();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#isDue = false;
  }

  #pauseOver(): void {
    this.#timer = null;
    if (!this.#isDue) return;
    this.#isDue = false;
    this.ask();
  }
}
