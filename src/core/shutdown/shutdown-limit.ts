import { EPSILON_SECONDS } from '../time/time.ts';

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
