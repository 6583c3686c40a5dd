import { cutMessage, type ShutdownRecord } from '../core/shutdown/shutdown.ts';
import { EPSILON_SECONDS } from '../core/time/time.ts';

/** The limit of all callers together is this many times that of one caller, so that a single caller cannot exhaust it. */
const CALLERS = 3;

interface Bucket {
  readonly level: number;
  readonly atSeconds: number;
}

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
  #all: Bucket | null = null;
  readonly #callers = new Map<string, Bucket>();

  constructor(perMinute: number) {
    this.#perMinute = perMinute;
  }

  /** Buckets of recent callers; full ones are removed. */
  get size(): number {
    return this.#callers.size;
  }

  setPerMinute(perMinute: number): void {
    this.#perMinute = perMinute;
  }

  /** Takes a token. Null: the call may pass; else the limit that it reached. */
  take(caller: string, nowSeconds: number): ReachedLimit | null {
    const perMinuteOfAll = this.#perMinute * CALLERS;
    const all = this.#filled(this.#all, perMinuteOfAll, nowSeconds);
    // Checked first: beyond it no caller is added, which bounds their number.
    if (!hasToken(all)) return reached(all, 'all callers', perMinuteOfAll);
    this.#forgetFull(nowSeconds);
    const own = this.#filled(this.#callers.get(caller) ?? null, this.#perMinute, nowSeconds);
    if (!hasToken(own)) return reached(own, 'one caller', this.#perMinute);
    this.#callers.set(caller, { ...own, level: own.level - 1 });
    this.#all = { ...all, level: all.level - 1 };
    return null;
  }

  #filled(bucket: Bucket | null, capacity: number, nowSeconds: number): Bucket {
    if (!bucket) return { level: capacity, atSeconds: nowSeconds };
    const gained = ((nowSeconds - bucket.atSeconds) * capacity) / 60;
    return { level: Math.min(capacity, bucket.level + gained), atSeconds: nowSeconds };
  }

  #forgetFull(nowSeconds: number): void {
    for (const [caller, bucket] of this.#callers) {
      if (this.#filled(bucket, this.#perMinute, nowSeconds).level >= this.#perMinute) this.#callers.delete(caller);
    }
  }
}

function reached({ level }: Bucket, of: ReachedLimit['of'], perMinute: number): ReachedLimit {
  return { of, perMinute, waitSeconds: ((1 - level) * 60) / perMinute };
}

function hasToken({ level }: Bucket): boolean {
  return level + EPSILON_SECONDS >= 1;
}

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
