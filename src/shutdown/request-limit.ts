import { TokenBucket } from '../core/alerts/rate-limit.ts';
import { type ShutdownRecord, truncateMessage } from '../core/shutdown/shutdown.ts';

/** The limit of all callers together is this many times that of one caller, so that a single caller cannot exhaust it. */
const CALLERS = 3;

/** A limit that a call has reached, and the seconds until the next one may pass. */
export interface ReachedLimit {
  readonly of: 'one caller' | 'all callers';
  readonly perMinute: number;
  readonly waitSeconds: number;
}

/**
 * Rate limit of safe shutdown requests: a token bucket per caller and one for all. A bucket holds a minute's calls and refills within a
 * minute. A refused call takes no token, so waiting always helps.
 */
export class RequestLimit {
  #perMinute: number;
  #all: TokenBucket;
  readonly #callers = new Map<string, TokenBucket>();

  constructor(perMinute: number) {
    this.#perMinute = perMinute;
    this.#all = bucketOf(perMinute * CALLERS);
  }

  /** Buckets of recent callers; full ones are removed. */
  get size(): number {
    return this.#callers.size;
  }

  /** A changed limit begins with full buckets. */
  setPerMinute(perMinute: number): void {
    if (perMinute === this.#perMinute) return;
    this.#perMinute = perMinute;
    this.#all = bucketOf(perMinute * CALLERS);
    this.#callers.clear();
  }

  /** Takes a token. Null: the call may pass; else the limit that it reached. */
  take(caller: string, nowSeconds: number): ReachedLimit | null {
    const perMinute = this.#perMinute;
    const waitForAll = this.#all.waitSeconds(nowSeconds);
    // Checked first: beyond it no caller is added, which bounds their number.
    if (waitForAll > 0) return { of: 'all callers', perMinute: perMinute * CALLERS, waitSeconds: waitForAll };
    for (const [name, bucket] of this.#callers) if (bucket.isFull(nowSeconds)) this.#callers.delete(name);
    const own = this.#callers.get(caller) ?? bucketOf(perMinute);
    const waitSeconds = own.waitSeconds(nowSeconds);
    if (waitSeconds > 0) return { of: 'one caller', perMinute, waitSeconds };
    own.take(nowSeconds);
    this.#all.take(nowSeconds);
    this.#callers.set(caller, own);
    return null;
  }
}

function bucketOf(perMinute: number): TokenBucket {
  return new TokenBucket(perMinute / 60, perMinute);
}

/** Refusals recorded individually: this many at once, and one more per minute. A record writes about 10 kB to flash. */
const BURST = 60;
const PER_SECOND = 1 / 60;
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
  readonly #individual = new TokenBucket(PER_SECOND, BURST);
  #aggregated: AggregatedRefusals | null = null;

  /** Adds a refusal. Returns the record to save at once; null: it was aggregated, see due(). */
  add(refusal: ShutdownRecord, nowSeconds: number): ShutdownRecord | null {
    if (this.#individual.take(nowSeconds)) return refusal;
    const { record, sinceSeconds } = this.#currentRecord(refusal, nowSeconds);
    const calls = record.calls + 1;
    const { reason, requested_by, timeout, address, port, user, timestamp } = refusal;
    const message = truncateMessage(`${calls} calls refused in a burst; the last: ${refusal.message}`);
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
