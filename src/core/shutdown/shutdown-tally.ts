import { cutMessage, type ShutdownRecord } from './shutdown-record.ts';

/** Refusals recorded individually: this many at once, and one more per minute. A record writes about 10 kB to flash. */
const BURST = 60;
const REFILL_SECONDS = 60;
/** How often a new record for aggregated refusals is begun. */
const RECORD_SECONDS = 3600;

interface AggregatedRefusals {
  readonly record: ShutdownRecord;
  readonly sinceSeconds: number;
  readonly isSaved: boolean;
}

/**
 * Records every refused call within bounds: the first ones individually, the others counted in one record, which must be saved from time
 * to time.
 */
export class RefusalTally {
  #level = BURST;
  #atSeconds = Number.NEGATIVE_INFINITY;
  #aggregated: AggregatedRefusals | null = null;

  /** Adds a refusal. Returns the record to save at once; null: it was aggregated, see due(). */
  add(refusal: ShutdownRecord, nowSeconds: number): ShutdownRecord | null {
    this.#level = Math.min(BURST, this.#level + (nowSeconds - this.#atSeconds) / REFILL_SECONDS);
    this.#atSeconds = nowSeconds;
    if (this.#level >= 1) {
      this.#level -= 1;
      return refusal;
    }
    const { record, sinceSeconds } = this.#currentRecord(refusal, nowSeconds);
    const calls = record.calls + 1;
    const { reason, requested_by, timeout, address, port, user, timestamp } = refusal;
    const message = cutMessage(`${calls} calls refused in a burst; the last: ${refusal.message}`);
    const counted = { ...record, reason, requested_by, timeout, address, port, user, calls, message, ended: timestamp };
    this.#aggregated = { record: counted, sinceSeconds, isSaved: false };
    return null;
  }

  /** The refusals aggregated since the last call; null: none. */
  due(): ShutdownRecord | null {
    if (!this.#aggregated || this.#aggregated.isSaved) return null;
    this.#aggregated = { ...this.#aggregated, isSaved: true };
    return this.#aggregated.record;
  }

  #currentRecord(refusal: ShutdownRecord, nowSeconds: number): AggregatedRefusals {
    const aggregated = this.#aggregated;
    // An unsaved record is continued; replacing it would lose its calls.
    if (aggregated && (!aggregated.isSaved || nowSeconds - aggregated.sinceSeconds < RECORD_SECONDS)) return aggregated;
    return { record: { ...refusal, calls: 0 }, sinceSeconds: nowSeconds, isSaved: false };
  }
}
