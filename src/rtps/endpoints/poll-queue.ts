/** Items processed per poll: a thousand of them, each with something to send, would delay samples by a tenth of a second. */
const MAX_PER_POLL = 64;
/** Pause after a full poll, since otherwise each received datagram would process as many items again. */
const PAUSE_SECONDS = 0.005;
/** Shortest time between two polls of all items, per item: thousands of separate deadlines would otherwise cause as many full polls. */
const MIN_INTERVAL_SECONDS = 20e-6;

/**
 * A poll queue for many items that are mostly idle: a poll processes the items that were woken, and all of them only when the earliest
 * deadline is due. Without it, each datagram would cause a poll of all of hundreds of peers.
 */
export class PollQueue<Item> {
  readonly #onBusy: () => void;
  readonly #busy = new Set<Item>();
  readonly #woken = new Set<Item>();
  /** Items that were not woken need no processing before this time. */
  #dueSeconds = Number.POSITIVE_INFINITY;
  #pausedUntilSeconds = Number.NEGATIVE_INFINITY;

  /** `onBusy`: called when the empty queue gets its first item. */
  constructor(onBusy: () => void = () => {}) {
    this.#onBusy = onBusy;
  }

  get isIdle(): boolean {
    return this.#busy.size === 0;
  }

  /** Queues an item for the next poll. */
  wake(item: Item): void {
    if (this.#busy.size === 0) this.#onBusy();
    this.#busy.add(item);
    this.#woken.add(item);
  }

  /** Removes an item until it is woken. */
  rest(item: Item): void {
    this.#busy.delete(item);
    this.#woken.delete(item);
  }

  /**
   * `process` returns when to process the item again: monotonic seconds; null: when it is woken. Returns when to poll again: the earliest
   * of these times, or sooner when more items are queued than one poll processes.
   */
  poll(nowSeconds: number, process: (item: Item) => number | null): number {
    if (nowSeconds < this.#pausedUntilSeconds) return this.isIdle ? Number.POSITIVE_INFINITY : this.#pausedUntilSeconds;
    if (nowSeconds >= this.#dueSeconds) {
      // All items in their order of arrival; when one poll cannot process all, the woken ones stay first.
      if (this.#busy.size <= MAX_PER_POLL) this.#woken.clear();
      for (const item of this.#busy) this.#woken.add(item);
      this.#dueSeconds = Number.POSITIVE_INFINITY;
    }
    const next = this.#next();
    if (next.length === MAX_PER_POLL) this.#pausedUntilSeconds = nowSeconds + PAUSE_SECONDS;
    for (const item of next) {
      // Removed first, because an item that is woken during its processing must be processed again.
      this.#woken.delete(item);
      const again = process(item);
      if (again === null) this.rest(item);
      else this.#dueSeconds = Math.min(this.#dueSeconds, again);
    }
    if (this.isIdle) this.#dueSeconds = Number.POSITIVE_INFINITY;
    else this.#dueSeconds = Math.max(this.#dueSeconds, nowSeconds + this.#busy.size * MIN_INTERVAL_SECONDS);
    return this.#woken.size > 0 ? Math.max(nowSeconds, this.#pausedUntilSeconds) : this.#dueSeconds;
  }

  #next(): Item[] {
    const next: Item[] = [];
    for (const item of this.#woken) {
      if (next.length === MAX_PER_POLL) break;
      next.push(item);
    }
    return next;
  }
}
