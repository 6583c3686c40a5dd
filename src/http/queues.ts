/** Limits the number of concurrent operations. Waiting operations with `isFirst` run before those without. */
export class Semaphore {
  #free: number;
  readonly #first: (() => void)[] = [];
  readonly #others: (() => void)[] = [];

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  /** Resolves with the function that releases the semaphore; further calls of it have no effect. */
  async acquire(isFirst: boolean): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => (isFirst ? this.#first : this.#others).push(resolve));
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const next = this.#first.shift() ?? this.#others.shift();
      if (next) next();
      else this.#free += 1;
    };
  }
}

/** Runs at most one piece of waiting work per turn of the event loop, so that samples are taken in between. */
export class TurnQueue {
  #last: Promise<unknown> = Promise.resolve();

  next(): Promise<unknown> {
    this.#last = this.#last.then(() => new Promise(setImmediate));
    return this.#last;
  }
}
