import { DAY_MS } from '../core/time.ts';

/**
 * What changes of other nodes' alerts may write to the disk in a day: as much as this machine's own day. Anybody on the network may publish
 * them, as often as it likes.
 */
const BYTES_PER_DAY = 20e6;
/** A page goes into the log, with 24 octets before it, and later into the database, where the disk writes a block of 4096. */
const BYTES_PER_PAGE = 2048 + 24 + 4096;
/** A change touches its row and its index entry in two tables, and the index of the open episodes. */
const BYTES_PER_CHANGE = 5 * BYTES_PER_PAGE;

/** Counts what is written in a day, beginning anew a day after the first of it. */
export class WriteBudget {
  #startMs = 0;
  #spent = 0;

  /** How many changes may be written now, each as dear as it can be. */
  changes(nowMs: number): number {
    // A clock that was set back has not gone through a day.
    if (Math.abs(nowMs - this.#startMs) >= DAY_MS) {
      this.#startMs = nowMs;
      this.#spent = 0;
    }
    return Math.max(0, Math.ceil((BYTES_PER_DAY - this.#spent) / BYTES_PER_CHANGE));
  }

  /** Counts what was written: pages of the log. */
  spend(pages: number): void {
    this.#spent += pages * BYTES_PER_PAGE;
  }
}
