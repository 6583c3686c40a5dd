/** So many are looked at in one poll: looking at a thousand, of whom each is sent something, would hold up samples for a tenth of a second. */
const AT_ONCE = 64;
/** After as many as that, everything else has its turn: each datagram that comes meanwhile would look at as many again. */
const PAUSE_SECONDS = 0.005;
/** All are looked at no more often than this times their number, or thousands of deadlines would be as many looks at all. */
const APART_SECONDS = 20e-6;

/**
 * Those that may have something to say, of many that mostly have not: looked at is who was woken since, and all of them only when the
 * first of their deadlines is due. With hundreds of peers that are being found, each datagram would else be a look at all of them.
 */
export class Attention<Who> {
  readonly #onBusy: () => void;
  readonly #busy = new Set<Who>();
  readonly #woken = new Set<Who>();
  /** Nobody who was not woken has anything to say before this moment. */
  #dueSeconds = Number.POSITIVE_INFINITY;
  #pausedUntilSeconds = Number.NEGATIVE_INFINITY;

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

  /**
   * `look` says when to look again: monotonic seconds, null for not until it is woken. Returns when to poll again: the earliest of these
   * moments, or soon where more are to be looked at than one poll takes.
   */
  poll(nowSeconds: number, look: (who: Who) => number | null): number {
    if (nowSeconds < this.#pausedUntilSeconds) return this.isIdle ? Number.POSITIVE_INFINITY : this.#pausedUntilSeconds;
    if (nowSeconds >= this.#dueSeconds) {
      // In the order in which they came; but where they are more than one poll takes, who has waited longest stays in front.
      if (this.#busy.size <= AT_ONCE) this.#woken.clear();
      for (const who of this.#busy) this.#woken.add(who);
      this.#dueSeconds = Number.POSITIVE_INFINITY;
    }
    const next = this.#next();
    if (next.length === AT_ONCE) this.#pausedUntilSeconds = nowSeconds + PAUSE_SECONDS;
    for (const who of next) {
      // Whoever is woken while he is looked at is looked at again.
      this.#woken.delete(who);
      const again = look(who);
      if (again === null) this.rest(who);
      else this.#dueSeconds = Math.min(this.#dueSeconds, again);
    }
    if (this.isIdle) this.#dueSeconds = Number.POSITIVE_INFINITY;
    else this.#dueSeconds = Math.max(this.#dueSeconds, nowSeconds + this.#busy.size * APART_SECONDS);
    return this.#woken.size > 0 ? Math.max(nowSeconds, this.#pausedUntilSeconds) : this.#dueSeconds;
  }

  #next(): Who[] {
    const next: Who[] = [];
    for (const who of this.#woken) {
      if (next.length === AT_ONCE) break;
      next.push(who);
    }
    return next;
  }
}
