import { cutMessage, type ShutdownRecord } from './shutdown-record.ts';

/** Refusals that are recorded one by one: this many at once, and one more a minute. A record costs flash about 10 kB. */
const AT_ONCE = 60;
const ONE_MORE_SECONDS = 60;
/** A new record for what is counted together is begun this often. */
const TOGETHER_SECONDS = 3600;

interface Together {
  readonly record: ShutdownRecord;
  readonly sinceSeconds: number;
  readonly isSaved: boolean;
}

/**
 * Sees to it that every refused call is in the record, and that no flood of them fills it: the first ones are recorded one
 * by one, the others are counted in one record, which is to be saved now and then.
 */
export class RefusalTally {
  #level = AT_ONCE;
  #atSeconds = Number.NEGATIVE_INFINITY;
  #together: Together | null = null;

  /** Takes in a refusal. Returns the record to save at once; null: it was counted with others, see due(). */
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
    const message = cutMessage(`${calls} calls in a flood, all refused; the last: ${refusal.message}`);
    const counted = { ...record, reason, requested_by, timeout, address, port, user, calls, message, ended: timestamp };
    this.#together = { record: counted, sinceSeconds, isSaved: false };
    return null;
  }

  /** What was counted together since it was last asked for; null: nothing. */
  due(): ShutdownRecord | null {
    if (!this.#together || this.#together.isSaved) return null;
    this.#together = { ...this.#together, isSaved: true };
    return this.#together.record;
  }

  #begun(refusal: ShutdownRecord, nowSeconds: number): Together {
    const together = this.#together;
    // One that has not been saved yet goes on: its calls would be lost.
    if (together && (!together.isSaved || nowSeconds - together.sinceSeconds < TOGETHER_SECONDS)) return together;
    return { record: { ...refusal, calls: 0 }, sinceSeconds: nowSeconds, isSaved: false };
  }
}
