/** The part of Test in tap that is needed to restore the real timers. */
interface Teardown {
  teardown(restore: () => void): unknown;
}

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly action: () => void;
}

/**
 * Time that passes on command: it replaces setTimeout until the end of the test. What is due happens in order, and promises settle in
 * between.
 */
export class VirtualTime {
  /** Seconds, as a monotonic clock gives them. */
  readonly now = (): number => this.#seconds;
  #seconds: number;
  #orders = 0;
  readonly #timers = new Map<object, Timer>();

  constructor(t: Teardown, seconds = 0) {
    this.#seconds = seconds;
    const { setTimeout, clearTimeout } = globalThis;
    t.teardown(() => Object.assign(globalThis, { setTimeout, clearTimeout }));
    Object.assign(globalThis, {
      setTimeout: (action: () => void, milliseconds = 0) => {
        const handle = { unref: () => handle, ref: () => handle, hasRef: () => false };
        this.#timers.set(handle, { at: this.#seconds + Math.max(1, milliseconds) / 1000, order: this.#orders++, action });
        return handle;
      },
      clearTimeout: (handle: object) => void this.#timers.delete(handle),
    });
  }

  /** Timers that are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Runs everything that is due in the next `seconds`. */
  async pass(seconds: number): Promise<void> {
    const end = this.#seconds + seconds;
    for (;;) {
      await settled();
      const next = this.#next();
      if (!next || next[1].at > end) break;
      this.#timers.delete(next[0]);
      this.#seconds = Math.max(this.#seconds, next[1].at);
      next[1].action();
    }
    this.#seconds = end;
  }

  /** The clock advances and nothing happens: the process was stopped. */
  freeze(seconds: number): void {
    this.#seconds += seconds;
  }

  #next(): [object, Timer] | null {
    let next: [object, Timer] | null = null;
    for (const entry of this.#timers) {
      const [, { at, order }] = entry;
      if (!next || at < next[1].at || (at === next[1].at && order < next[1].order)) next = entry;
    }
    return next;
  }
}

/** Lets every promise settle that can. */
function settled(): Promise<void> {
  return new Promise((done) => setImmediate(done));
}
