import type { HealthStatus } from '../health-status.ts';
import { METRICS } from '../metrics.ts';
import { STATUSES } from './alert.ts';
import { initialStaleState, type StaleChange, type StaleState, stepStale } from './episode.ts';

/** Identifies a status of a node: its timestamp and, for rates with several statuses per timestamp, its content. */
export interface Stamp {
  readonly ms: number;
  readonly print: number;
}

/** A hash of a status' content. NaN: unavailable; `values` in the order of METRICS, `status` as in STATUSES. */
export function fingerprint(values: readonly number[], status: number): number {
  return values.reduce(addToPrint, status);
}

function addToPrint(print: number, value: number): number {
  return print * 31 + (Number.isNaN(value) ? -1000 : value);
}

export function stampOf(status: HealthStatus): Stamp {
  let print = STATUSES.indexOf(status.status);
  for (const metric of METRICS) print = addToPrint(print, status[metric] ?? Number.NaN);
  return { ms: Date.parse(status.timestamp), print };
}

/** A clock before this time was never set. */
const EARLIEST_MS = Date.UTC(2020, 0);
/** A time further ahead than this means that one of the two clocks is wrong; delays only make times late. */
const AHEAD_MS = 60_000;

/** Whether a remote time may be used: a time further ahead would sort after all valid data. */
export function isPlausible(timestampMs: number, nowMs: number): boolean {
  // A local clock that was never set cannot be used for the comparison.
  return timestampMs >= EARLIEST_MS && (timestampMs <= nowMs + AHEAD_MS || nowMs < EARLIEST_MS);
}

/** Stored data of earlier runs about a remote node. */
export interface KnownNode {
  readonly name: string;
  /** Wall-clock milliseconds of this machine, accurate to a few minutes; null: no data is stored any more. */
  readonly firstSeenMs: number | null;
  readonly lastSeenMs: number | null;
  /** The node's latest statuses, in order of arrival. */
  readonly recent: readonly Stamp[];
}

/**
 * Class of a status by its timestamp. `next`: later than all before. `late`: out of order. `duplicate`: a repetition, as DDS writers
 * send to a reader that rejoins. `jump`: the clock was set, or the node was absent for long. `wrong clock`: the timestamp is not plausible,
 * so it has no place among the others.
 */
export type Arrival = 'next' | 'late' | 'duplicate' | 'jump' | 'wrong clock';

/** A timestamp further from the newest than this is a jump. */
export const JUMP_MS = 3_600_000;
/** This many consecutive timestamps older than the newest, each later than the one before, mean that the clock was set back. */
const BACK_AFTER = 3;
/** Number of stamps remembered to recognize duplicates. */
const REMEMBERED = 256;
/** The period is the median of this many measurements, which tolerates losing nearly half of the statuses. */
const MEASUREMENTS = 9;
/** Where timestamps are rounded, so that several statuses share one, a period is measured over at least this many. */
const ROUNDED_STATUSES = 8;
/** Assumed period until two timestamps are known. */
const FIRST_PERIOD_MS = 1000;
const SHORTEST_PERIOD_MS = 1;
const LONGEST_PERIOD_MS = 3_600_000;

/** The lower median of the last measurements of a node's publish period; between 1 ms and 1 h, and 1 s until it is measured. */
class PeriodMeasurement {
  readonly #measuredMs = new Float64Array(MEASUREMENTS);
  /** Measurements so far, including those that were replaced. */
  #count = 0;
  #periodMs = FIRST_PERIOD_MS;

  get periodSeconds(): number {
    return this.#periodMs / 1000;
  }

  get isMeasured(): boolean {
    return this.#count > 0;
  }

  /** Whether there are enough measurements to record the period. */
  get isKnown(): boolean {
    return this.#count > MEASUREMENTS / 2;
  }

  add(periodMs: number): void {
    const at = this.#count % MEASUREMENTS;
    const isNew = this.#count < MEASUREMENTS || this.#measuredMs[at] !== periodMs;
    this.#measuredMs[at] = periodMs;
    this.#count += 1;
    if (!isNew) return;
    const median = medianOf(this.#measuredMs, Math.min(this.#count, MEASUREMENTS));
    this.#periodMs = Math.min(LONGEST_PERIOD_MS, Math.max(SHORTEST_PERIOD_MS, median));
  }
}

/**
 * Classifies statuses and measures the publish period from a node's own timestamps. Arrival times are not used: ten statuses that a late
 * joiner receives at once are ten seconds of a node at 1 Hz.
 */
export class NodeStamps {
  readonly #knownMs = new Float64Array(REMEMBERED).fill(Number.NaN);
  readonly #knownPrints = new Float64Array(REMEMBERED);
  /** No remembered timestamp is later. */
  #highestMs = Number.NEGATIVE_INFINITY;
  #next = 0;
  #newestMs = Number.NaN;
  #lateMs = Number.NaN;
  #lateInARow = 0;
  /** Not measured as long as the timestamps never increase. */
  readonly period = new PeriodMeasurement();
  /** Start of the measurement in progress, and the number of statuses since. */
  #measuredFromMs = Number.NaN;
  #statuses = 0;
  /** Whether two statuses had the same timestamp. */
  #areRounded = false;

  constructor(recent: readonly Stamp[]) {
    for (const stamp of recent) this.take(stamp);
  }

  /** `isPlausible`: as the function of this name decides. */
  take({ ms: timestampMs, print }: Stamp, isPlausible = true): Arrival {
    if (timestampMs > this.#highestMs) this.#highestMs = timestampMs;
    else if (this.has({ ms: timestampMs, print })) return 'duplicate';
    this.#knownMs[this.#next] = timestampMs;
    this.#knownPrints[this.#next] = print;
    this.#next = (this.#next + 1) % REMEMBERED;
    if (!isPlausible) return 'wrong clock';
    const difference = timestampMs - this.#newestMs;
    if (difference < 0 && !this.#isSetBack(timestampMs)) return 'late';
    this.#newestMs = timestampMs;
    this.#lateInARow = 0;
    if (difference >= 0 && difference <= JUMP_MS) {
      this.#measure(timestampMs, difference);
      return 'next';
    }
    this.#measuredFromMs = timestampMs;
    this.#statuses = 0;
    return Number.isNaN(difference) ? 'next' : 'jump';
  }

  /** Whether a status is remembered. */
  has({ ms: timestampMs, print }: Stamp): boolean {
    for (let at = this.#knownMs.indexOf(timestampMs); at >= 0; at = this.#knownMs.indexOf(timestampMs, at + 1))
      if (this.#knownPrints[at] === print) return true;
    return false;
  }

  #isSetBack(timestampMs: number): boolean {
    this.#lateInARow = this.#lateInARow > 0 && timestampMs < this.#lateMs ? 1 : this.#lateInARow + 1;
    this.#lateMs = timestampMs;
    return this.#lateInARow >= BACK_AFTER || this.#newestMs - timestampMs > JUMP_MS;
  }

  /** `differenceMs`: to the status before. */
  #measure(timestampMs: number, differenceMs: number): void {
    this.#statuses += 1;
    if (differenceMs === 0) this.#areRounded = true;
    if (differenceMs === 0 || (this.#areRounded && this.#statuses < ROUNDED_STATUSES)) return;
    this.period.add((timestampMs - this.#measuredFromMs) / this.#statuses);
    this.#measuredFromMs = timestampMs;
    this.#statuses = 0;
  }
}

const sorted = new Float64Array(MEASUREMENTS);

/**
 * The lower median of the first `count` values. It is sorted by insertion into one array for all nodes, because a node with jitter
 * needs it for every status.
 */
function medianOf(values: Float64Array, count: number): number {
  for (let i = 0; i < count; i += 1) {
    const value = values[i] as number;
    let at = i;
    for (; at > 0 && (sorted[at - 1] as number) > value; at -= 1) sorted[at] = sorted[at - 1] as number;
    sorted[at] = value;
  }
  return sorted[Math.ceil(count / 2) - 1] as number;
}

/** Number of periods without a status before a node is stale, not counting the grace. */
const ALLOWED_PERIODS = 3;
/** Allowed time after a single status, when the period is not known: three periods of a node at 0.1 Hz. */
const FIRST_ALLOWED_SECONDS = 30;

/** Arrivals closer than this are one burst. */
const BURST_SECONDS = 0.05;

/**
 * Watches whether a node's statuses keep arriving, on this machine's monotonic clock; the node's own clock is not used. It resolves at
 * the second consecutive status at least half a period after the first, so that a burst of repetitions does not resolve it.
 */
export class NodeWatch {
  readonly stamps: NodeStamps;
  /** Changed in place while statuses keep arriving. */
  #state: { -readonly [Member in keyof StaleState]: StaleState[Member] };
  #graceSeconds: number;
  #firstAllowedSeconds = FIRST_ALLOWED_SECONDS;
  /** When the last burst began. */
  #arrivedSeconds = Number.NaN;
  /** By arrival times, for a node whose timestamps never increase. */
  readonly #arrivalPeriod = new PeriodMeasurement();

  /** `expectedSinceSeconds`: start of the allowed time; null: it starts with the first status. */
  constructor(recent: readonly Stamp[], expectedSinceSeconds: number | null, graceSeconds: number) {
    this.stamps = new NodeStamps(recent);
    this.#state = initialStaleState(expectedSinceSeconds, false);
    this.#graceSeconds = graceSeconds;
  }

  /** Whether the node is stale. */
  get isStale(): boolean {
    return this.#state.open;
  }

  /** By the node's timestamps, or by arrival times if the timestamps never increase. */
  get #period(): PeriodMeasurement {
    const { period } = this.stamps;
    return period.isMeasured ? period : this.#arrivalPeriod;
  }

  get periodSeconds(): number {
    return this.#period.periodSeconds;
  }

  /** Whether the period was measured often enough to record it. */
  get isPeriodKnown(): boolean {
    return this.#period.isKnown;
  }

  /** Longest time without a status before the node is stale. */
  get allowedSeconds(): number {
    const { isMeasured, periodSeconds } = this.#period;
    return (isMeasured ? ALLOWED_PERIODS * periodSeconds : this.#firstAllowedSeconds) + this.#graceSeconds;
  }

  /** When the node becomes stale unless a status arrives; infinite: it is stale, or not expected. */
  get deadlineSeconds(): number {
    const { lastGoodSeconds, open } = this.#state;
    return open || lastGoodSeconds === null ? Number.POSITIVE_INFINITY : lastGoodSeconds + this.allowedSeconds;
  }

  setGrace(graceSeconds: number): void {
    this.#graceSeconds = graceSeconds;
  }

  /** The node left the graph: it cannot become stale until its next status. */
  leave(): void {
    this.#state = initialStaleState(null, false);
  }

  /** Starts the allowed time if it has not started. */
  expect(sinceSeconds: number): void {
    if (this.#state.lastGoodSeconds === null) this.#state = { ...this.#state, lastGoodSeconds: sinceSeconds };
  }

  /** The node vanished from the graph at this time, before a status of it was received: only the grace is left to it. */
  vanish(atSeconds: number): void {
    if (this.#state.open) return;
    this.#firstAllowedSeconds = 0;
    this.#state = initialStaleState(atSeconds, false);
  }

  /** Nothing can be received until this time, so that the allowed time begins again then, unless the node is stale already. */
  postpone(untilSeconds: number): void {
    if (!this.#state.open && this.#state.lastGoodSeconds !== null) this.#state = initialStaleState(untilSeconds, false);
  }

  /** Continues an open episode of an earlier run or of another observer. */
  adoptOpen(): void {
    this.#state = { ...this.#state, open: true, goodSinceSeconds: null };
  }

  /**
   * Processes a status that arrived now. Single duplicates prove that the node is sending, as from a node whose clock has stopped.
   * Duplicates in a burst are repetitions by a DDS writer that discovered this reader again, and count as one.
   */
  receive(
    stamp: Stamp,
    atSeconds: number,
    isPlausible = true,
  ): { readonly arrival: Arrival; readonly isSending: boolean; readonly isInBurst: boolean; readonly change: StaleChange } {
    const arrival = this.stamps.take(stamp, isPlausible);
    const sinceSeconds = atSeconds - this.#arrivedSeconds;
    const isInBurst = sinceSeconds < BURST_SECONDS;
    if (isInBurst && arrival === 'duplicate') return { arrival, isSending: false, isInBurst, change: null };
    if (!isInBurst) {
      this.#arrivedSeconds = atSeconds;
      if (!this.stamps.period.isMeasured && !Number.isNaN(sinceSeconds)) this.#arrivalPeriod.add(sinceSeconds * 1000);
    }
    if (!this.#state.open) {
      this.#state.lastGoodSeconds = atSeconds;
      this.#state.goodSinceSeconds ??= atSeconds;
      return { arrival, isSending: true, isInBurst, change: null };
    }
    const { lastGoodSeconds } = this.#state;
    // A second gap after the first status restarts the time until the episode resolves.
    if (lastGoodSeconds !== null && atSeconds - lastGoodSeconds > this.allowedSeconds) this.adoptOpen();
    const { state, change } = stepStale(this.#state, true, atSeconds, this.allowedSeconds, this.periodSeconds / 2);
    this.#state = state;
    return { arrival, isSending: true, isInBurst, change };
  }

  /** Seconds without a status while the node is stale, else null. */
  staleSeconds(atSeconds: number): number | null {
    const { lastGoodSeconds, open } = this.#state;
    return open && lastGoodSeconds !== null ? atSeconds - lastGoodSeconds : null;
  }

  /** Checks the deadline; the seconds without a status if the node just became stale, else null. */
  check(atSeconds: number): number | null {
    if (atSeconds <= this.deadlineSeconds) return null;
    const { state, change, staleSeconds } = stepStale(this.#state, false, atSeconds, this.allowedSeconds, 0);
    this.#state = state;
    return change === 'raise' ? staleSeconds : null;
  }
}
