/**
 * One timer for all deadlines, set to the earliest one: an idle participant causes no wake-ups.
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

  /** When the timer will fire: monotonic seconds, Infinity when it is not set. */
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
    // One millisecond more, since a timer may fire slightly early and would have to be set again.
    const milliseconds = Math.max(1, Math.ceil((dueSeconds - this.#monotonicSeconds()) * 1000) + 1);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#dueSeconds = Number.POSITIVE_INFINITY;
      this.#onDue();
    }, milliseconds);
    this.#timer.unref();
  }
}
