const AT_MOST_EVERY_SECONDS = 60;

/** Passes texts on, each at most once a minute. */
export class Notes {
  readonly #pass: (text: string) => void;
  readonly #monotonicSeconds: () => number;
  readonly #last = new Map<string, number>();

  constructor(pass: (text: string) => void, monotonicSeconds: () => number) {
    this.#pass = pass;
    this.#monotonicSeconds = monotonicSeconds;
  }

  note(text: string): void {
    const now = this.#monotonicSeconds();
    const last = this.#last.get(text);
    if (last !== undefined && now - last < AT_MOST_EVERY_SECONDS) return;
    for (const [old, at] of this.#last) if (now - at >= AT_MOST_EVERY_SECONDS) this.#last.delete(old);
    this.#last.set(text, now);
    this.#pass(text);
  }
}
