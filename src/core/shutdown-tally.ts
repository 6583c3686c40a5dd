import { cutMessage, type ShutdownRecord } from './shutdown-record.ts';

/** Refusals recorded individually: this many at once, and one more per minute. A record writes about 10 kB to flash. */
const AT_ONCE = 60;
const ONE_MORE_SECONDS = 60;
/** How often a new record for aggregated refusals is begun. */
const TOGETHER_SECONDS = 3600;

interface Together {
  readonly record: ShutdownRecord;
  readonly sinceSeconds: number;
  readonly isSaved: boolean;
}

/**
 * Records every refused call within bounds: the first ones individually, the others counted in one record, which must be saved from time
 * to time.
 */
export class RefusalTally {
  #level = AT_ONCE;
  #atSeconds = Number.NEGATIVE_INFINITY;
  #together: Together | null = null;

  /** Adds a refusal. Returns the record to save at once; null: it was aggregated, see due(). */
  add(refusal: ShutdownRecord, nowSeconds: number): ShutdownRecord | null {
    this.#level = Math.min(AT_ONCE, this.#level + (nowSeconds - this.#atSeconds) / ONE_MORE_SECONDS);
    this.#atSeconds = nowSeconds;
    if (this.#level >= 1) {
      this.#level -= 1;
      return refusal;
    }
    const { record, sinceSeconds } = this.#begun(refusal, nowSeconds);
    const calls = record.calls + 1;
    const { reason, requested_by, timeout, address, port, user, timestamp } = refusal;
    const message = cutMessage(`${calls} calls refused in a burst; the last: ${refusal.message}`);
    const counted = { ...record, reason, requested_by, timeout, address, port, user, calls, message, ended: timestamp };
    this.#together = { record: counted, sinceSeconds, isSaved: false };
    return null;
  }

  /** The refusals aggregated since the last call; null: none. */
  due(): ShutdownRecord | null {
    if (!this.#together || this.#together.isSaved) return null;
    this.#together = { ...this.#together, isSaved: true };
    return this.#together.record;
  }

  #begun(refusal: ShutdownRecord, nowSeconds: number): Together {
    const together = this.#together;
    // An unsaved record is continued; replacing it would lose its calls.
    if (together && (!together.isSaved || nowSeconds - together.sinceSeconds < TOGETHER_SECONDS)) return together;
    return { record: { ...refusal, calls: 0 }, sinceSeconds: nowSeconds, isSaved: false };
  }
}
