import { type Alert, alertId } from '../core/alert.ts';
import { isPlausible, type NodeWatch } from '../core/node-watch.ts';
import { TokenBucket } from '../core/node-watch-limit.ts';
import { isoUtc } from '../core/time.ts';

/** A node may publish at 1000 Hz. */
const STATUSES_PER_SECOND = 1200;
/** Of these so many pass also when others send more than all nodes together may: a flood silences nobody. */
const ASSURED_PER_SECOND = 20;
/** Changes of a node's alerts, in the long run and at once. */
const CHANGES_PER_SECOND = 0.5;
const CHANGES_AT_ONCE = 60;
/** Jumps of a node's clock with which its statuses are still stored: each begins another hour in the database. */
const JUMPS_PER_SECOND = 1 / 60;
const JUMPS_AT_ONCE = 5;
/** Alerts about a node's silence: one that comes and goes must not fill log and disk. */
const SILENCES_PER_SECOND = 1 / 600;
const SILENCES_AT_ONCE = 5;
/** A node is established once statuses of it have come over so long, */
export const ESTABLISHED_SECONDS = 60;
/** at so many times that lie so far apart. */
const ARRIVALS = 4;
const APART_SECONDS = 15;
/** A publish rate is noted when it differs by this factor from the last one noted, at most once an hour. */
const RATE_FACTOR = 1.2;
const NOTE_RATE_SECONDS = 3600;

/** Why a status is shown but not stored; null: it is stored. */
export type NotStored = 'impossible time' | 'too many jumps' | null;

/** When a node was heard, monotonic seconds. */
export interface Heard {
  readonly firstSeconds: number;
  readonly lastSeconds: number;
  readonly isEstablished: boolean;
}

/** One other node: its watch, its limits and what is remembered of it. */
export class GatheredNode {
  readonly name: string;
  readonly watch: NodeWatch;
  readonly #statuses = new TokenBucket(STATUSES_PER_SECOND, STATUSES_PER_SECOND);
  readonly #assured = new TokenBucket(ASSURED_PER_SECOND, ASSURED_PER_SECOND);
  readonly changes = new TokenBucket(CHANGES_PER_SECOND, CHANGES_AT_ONCE);
  readonly silences = new TokenBucket(SILENCES_PER_SECOND, SILENCES_AT_ONCE);
  readonly #jumps = new TokenBucket(JUMPS_PER_SECOND, JUMPS_AT_ONCE);
  /** Monotonic seconds, before this process began maybe. */
  readonly #firstHeardSeconds: number;
  lastHeardSeconds: number;
  /** It was heard over time: it keeps its place and is stored; the others are newcomers. */
  isEstablished: boolean;
  /** Something of it is stored from before it was one of the nodes. */
  wasKnown = false;
  #arrivals = 0;
  #arrivalSeconds = Number.NEGATIVE_INFINITY;
  /** The open alert about its silence. */
  silence: Alert | null = null;
  /** When it left the graph, wall-clock milliseconds; null: it is there, or vanished. */
  leftMs: number | null = null;
  /** It was said that its clock is wrong. */
  wasImpossible = false;
  #rate: { readonly hertz: number; readonly atSeconds: number } | null = null;

  constructor(name: string, watch: NodeWatch, { firstSeconds, isEstablished, lastSeconds }: Heard) {
    this.name = name;
    this.watch = watch;
    this.#firstHeardSeconds = firstSeconds;
    this.lastHeardSeconds = lastSeconds;
    this.isEstablished = isEstablished;
  }

  /** From when it was first heard to when it was last. */
  get spanSeconds(): number {
    return this.lastHeardSeconds - this.#firstHeardSeconds;
  }

  /** Whether nothing has come for longer than it may take. */
  isSilent(nowSeconds: number): boolean {
    return nowSeconds - this.lastHeardSeconds > this.watch.allowedSeconds;
  }

  /** Notes that a status came; whether a newcomer has been heard for long enough by that: then it is to be established. */
  hear(nowSeconds: number): boolean {
    this.lastHeardSeconds = nowSeconds;
    if (this.isEstablished || nowSeconds - this.#arrivalSeconds < APART_SECONDS) return false;
    this.#arrivalSeconds = nowSeconds;
    this.#arrivals += 1;
    return this.#arrivals >= ARRIVALS && this.spanSeconds >= ESTABLISHED_SECONDS;
  }

  /** Whether one more status may pass; it is counted then. `all`: what all nodes may send together. */
  mayPass(nowSeconds: number, all: TokenBucket): boolean {
    return this.#statuses.take(nowSeconds) && (all.take(nowSeconds) || this.#assured.take(nowSeconds));
  }

  /** Whether a status may be stored; a jump is counted. */
  notStored(timestampMs: number, isJump: boolean, nowMs: number, nowSeconds: number): NotStored {
    if (!isPlausible(timestampMs, nowMs)) return 'impossible time';
    return isJump && !this.#jumps.take(nowSeconds) ? 'too many jumps' : null;
  }

  /** The publish rate in Hz, when that is to be noted; else null. */
  rateToNote(nowSeconds: number): number | null {
    const { stamps } = this.watch;
    if (!stamps.isPeriodKnown || (this.#rate && nowSeconds - this.#rate.atSeconds < NOTE_RATE_SECONDS)) return null;
    const hertz = plainHertz(stamps.periodSeconds);
    if (this.#rate && Math.max(hertz / this.#rate.hertz, this.#rate.hertz / hertz) < RATE_FACTOR) return null;
    this.#rate = { hertz, atSeconds: nowSeconds };
    return hertz;
  }
}

export const SILENCE_METRIC = 'health_status';

/** The alert about a node's silence, as it is raised. */
export function silenceAlert({ name, watch }: GatheredNode, silentSeconds: number, uniqueId: string, nowMs: number): Alert {
  const toMilliseconds = (seconds: number): number => Math.round(seconds * 1000) / 1000;
  return {
    alert_id: alertId(name, SILENCE_METRIC, uniqueId),
    severity: 'ERROR',
    metric: SILENCE_METRIC,
    value: toMilliseconds(silentSeconds),
    threshold: toMilliseconds(watch.allowedSeconds),
    timestamp: isoUtc(nowMs),
    resolved: false,
  };
}

/** A rate as somebody would configure it, where it is that but for jitter: whole hertz, or one in whole seconds. */
function plainHertz(periodSeconds: number): number {
  const hertz = 1 / periodSeconds;
  const plain = hertz >= 1 ? Math.round(hertz) : 1 / Math.round(periodSeconds);
  return Math.abs(plain / hertz - 1) < 0.03 ? plain : Number(hertz.toPrecision(3));
}
