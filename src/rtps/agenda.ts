/**
 * One timer for all deadlines: it is set to the earliest one and does nothing in between. A participant without anything to do costs
 * nothing.
 */
export class Agenda {
  readonly #monotonicSeconds: () => number;
  readonly #onDue: () => void;
  #timer: NodeJS.Timeout | null = null;
  #dueSeconds = Number.POSITIVE_INFINITY;

  constructor(monotonicSeconds: () => number, onDue: () => void) {
    this.#monotonicSeconds = monotonicSeconds;
    this.#onDue = onDue;
  }

  /** When the timer will go off: monotonic seconds, Infinity when it is not set. */
  get dueSeconds(): number {
    return this.#dueSeconds;
  }

  /** Sets the timer to this moment; Infinity: never. */
  set(dueSeconds: number): void {
    if (dueSeconds === this.#dueSeconds) return;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#dueSeconds = dueSeconds;
    if (!Number.isFinite(dueSeconds)) return;
    // A millisecond more: timers may go off a little early, which would only mean to come again.
    const milliseconds = Math.max(1, Math.ceil((dueSeconds - this.#monotonicSeconds()) * 1000) + 1);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#dueSeconds = Number.POSITIVE_INFINITY;
      this.#onDue();
    }, milliseconds);
    this.#timer.unref();
  }
}
