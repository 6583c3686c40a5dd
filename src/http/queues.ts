/** Lets a few do something at a time; the others wait, and `isFirst` ones are let in before all that are not. */
export class Semaphore {
  #free: number;
  readonly #first: (() => void)[] = [];
  readonly #others: (() => void)[] = [];

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  /** Resolves with the function that lets the next one in; it may be called again. */
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

/** Gives each turn of the event loop to one piece of work of all that wait, so that samples are taken between. */
export class TurnQueue {
  #last: Promise<unknown> = Promise.resolve();

  next(): Promise<unknown> {
    this.#last = this.#last.then(() => new Promise(setImmediate));
    return this.#last;
  }
}
