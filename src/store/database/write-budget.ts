import { DAY_MS } from '../../core/time/time.ts';

/**
 * Daily write limit of remote nodes' alerts, equal to this machine's own daily writes. Any host on the network can publish alerts at any
 * rate.
 */
const BYTES_PER_DAY = 20e6;
/** A page goes to the write-ahead log with a header of 24 bytes, and later to the database, where the disk writes a block of 4096. */
const BYTES_PER_PAGE = 2048 + 24 + 4096;
/** A change updates a row and an index entry in two tables, and the index of the open episodes. */
const BYTES_PER_CHANGE = 5 * BYTES_PER_PAGE;

/** Counts the bytes written per day. A day begins with its first write. */
export class WriteBudget {
  #startMs = 0;
  #spent = 0;

  /** Number of changes that may be written now, each at its highest cost. */
  changes(nowMs: number): number {
    // After the clock was set back the day is not over; a difference of a day in either direction starts a new one.
    if (Math.abs(nowMs - this.#startMs) >= DAY_MS) {
      this.#startMs = nowMs;
      this.#spent = 0;
    }
    return Math.max(0, Math.ceil((BYTES_PER_DAY - this.#spent) / BYTES_PER_CHANGE));
  }

  /** Adds written pages of the log. */
  spend(pages: number): void {
    this.#spent += pages * BYTES_PER_PAGE;
  }
}
