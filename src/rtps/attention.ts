/**
 * Those that may have something to say, of many that mostly have not: looked at is who was woken since, and all of them only when the
 * first of their deadlines is due. With hundreds of peers that are being found, each datagram would else be a look at all of them.
 */
export class Attention<Who> {
  readonly #onBusy: () => void;
  readonly #busy = new Set<Who>();
  #woken = new Set<Who>();
  /** Nobody who was not woken has anything to say before this moment. */
  #dueSeconds = Number.POSITIVE_INFINITY;

  /** `onBusy`: there is somebody, after there was nobody. */
  constructor(onBusy: () => void = () => {}) {
    this.#onBusy = onBusy;
  }

  get isIdle(): boolean {
    return this.#busy.size === 0;
  }

  /** Something has changed for this one. */
  wake(who: Who): void {
    if (this.#busy.size === 0) this.#onBusy();
    this.#busy.add(who);
    this.#woken.add(who);
  }

  /** It has nothing to say until it is woken. */
  rest(who: Who): void {
    this.#busy.delete(who);
    this.#woken.delete(who);
  }

  /** `look` says when to look again: monotonic seconds, null for not until it is woken. Returns the earliest of these moments. */
  poll(nowSeconds: number, look: (who: Who) => number | null): number {
    const isDue = nowSeconds >= this.#dueSeconds;
    const looked = isDue ? this.#busy : this.#woken;
    let due = isDue ? Number.POSITIVE_INFINITY : this.#dueSeconds;
    if (this.#woken.size > 0) this.#woken = new Set();
    for (const who of looked) {
      const again = look(who);
      if (again === null) this.rest(who);
      else due = Math.min(due, again);
    }
    if (this.#woken.size > 0) due = nowSeconds;
    this.#dueSeconds = this.isIdle ? Number.POSITIVE_INFINITY : due;
    return this.#dueSeconds;
  }
}
