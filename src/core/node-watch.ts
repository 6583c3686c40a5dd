import type { HealthStatus } from './health-status.ts';
import { METRICS } from './metrics.ts';
import { quantile } from './quantile.ts';
import { freshSilence, type SilenceChange, type SilenceState, stepSilence } from './silence.ts';
import { STATUSES } from './thresholds.ts';
import { DAY_MS } from './time.ts';

/** What statuses of one node are told apart by: the time stamp, and at rates at which several have the same one their content. */
export interface Stamp {
  readonly ms: number;
  readonly print: number;
}

/** A number that follows from a status' content. NaN: unavailable; `values` in the order of METRICS, `status` as in STATUSES. */
export function fingerprint(values: readonly number[], status: number): number {
  return values.reduce((print, value) => print * 31 + (Number.isNaN(value) ? -1000 : value), status);
}

export function stampOf(status: HealthStatus): Stamp {
  const values = METRICS.map((metric) => status[metric] ?? Number.NaN);
  return { ms: Date.parse(status.timestamp), print: fingerprint(values, STATUSES.indexOf(status.status)) };
}

/** No node says what happened before this; a clock that does was never set. */
const EARLIEST_MS = Date.UTC(2020, 0);
/** A time so far ahead is a clock that is wrong, on one side or the other. */
const AHEAD_MS = DAY_MS;

/** Whether a time of another node can be kept among this machine's: what lies far ahead would outlast everything that is true. */
export function isPlausible(timestampMs: number, nowMs: number): boolean {
  // While the own clock was never set it has no say.
  return timestampMs >= EARLIEST_MS && (timestampMs <= nowMs + AHEAD_MS || nowMs < EARLIEST_MS);
}

/** What the store knows of a node that earlier runs have heard. */
export interface HeardNode {
  readonly name: string;
  /** Wall-clock milliseconds of this machine, true to some minutes; null: nothing is stored of it any longer. */
  readonly firstHeardMs: number | null;
  readonly lastHeardMs: number | null;
  /** Its last statuses, in the order in which they came. */
  readonly recent: readonly Stamp[];
}

/**
 * What a status is by its time stamp. `next`: later than all before. `late`: between those before, overtaken on its way.
 * `duplicate`: sent once more, as writers do to whoever joins again. `jump`: the clock was set, or the node was away for long.
 */
export type Arrival = 'next' | 'late' | 'duplicate' | 'jump';

/** A time stamp further from the newest than this is a jump. */
export const JUMP_MS = 3_600_000;
/** So many in a row that are older than the newest, each later than the one before, were not overtaken: the clock was set back. */
const BACK_AFTER = 3;
/** Time stamps that are remembered to know duplicates. */
const REMEMBERED = 256;
/** The period is the median of so many differences: it stands nearly half of the statuses being lost. */
const DIFFERENCES = 9;
/** Until two time stamps are known. */
const FIRST_PERIOD_MS = 1000;
const SHORTEST_PERIOD_MS = 1;
const LONGEST_PERIOD_MS = 3_600_000;

/**
 * What a node's own time stamps tell: whether a status is news, and how often it publishes. When statuses arrive plays no
 * part: ten at once, as a late joiner gets them, are ten seconds of a node at 1 Hz.
 */
export class NodeStamps {
  readonly #knownMs = new Float64Array(REMEMBERED).fill(Number.NaN);
  readonly #knownPrints = new Float64Array(REMEMBERED);
  #next = 0;
  #newestMs = Number.NaN;
  #lateMs = Number.NaN;
  #lateInARow = 0;
  readonly #differences: number[] = [];
  #oldestDifference = 0;
  #periodMs = FIRST_PERIOD_MS;

  constructor(recent: readonly Stamp[]) {
    for (const stamp of recent) this.take(stamp);
  }

  /** Seconds from one status to the next, by the node's own clock; between 1 ms and 1 h, and 1 s until two are known. */
  get periodSeconds(): number {
    return this.#periodMs / 1000;
  }

  /** Whether it was measured at all. */
  get isPeriodMeasured(): boolean {
    return this.#differences.length > 0;
  }

  /** Whether enough was measured to rely on the period for long. */
  get isPeriodKnown(): boolean {
    return this.#differences.length > DIFFERENCES / 2;
  }

  take({ ms: timestampMs, print }: Stamp): Arrival {
    for (let at = this.#knownMs.indexOf(timestampMs); at >= 0; at = this.#knownMs.indexOf(timestampMs, at + 1)) {
      if (this.#knownPrints[at] === print) return 'duplicate';
    }
    this.#knownMs[this.#next] = timestampMs;
    this.#knownPrints[this.#next] = print;
    this.#next = (this.#next + 1) % REMEMBERED;
    const difference = timestampMs - this.#newestMs;
    if (difference < 0 && !this.#isSetBack(timestampMs)) return 'late';
    this.#newestMs = timestampMs;
    this.#lateInARow = 0;
    if (Number.isNaN(difference)) return 'next';
    if (difference < 0 || difference > JUMP_MS) return 'jump';
    this.#measure(difference);
    return 'next';
  }

  #isSetBack(timestampMs: number): boolean {
    this.#lateInARow = this.#lateInARow > 0 && timestampMs < this.#lateMs ? 1 : this.#lateInARow + 1;
    this.#lateMs = timestampMs;
    return this.#lateInARow >= BACK_AFTER || this.#newestMs - timestampMs > JUMP_MS;
  }

  #measure(differenceMs: number): void {
    this.#differences[this.#oldestDifference] = differenceMs;
    this.#oldestDifference = (this.#oldestDifference + 1) % DIFFERENCES;
    const median = quantile(this.#differences, 0.5);
    this.#periodMs = Math.min(LONGEST_PERIOD_MS, Math.max(SHORTEST_PERIOD_MS, median));
  }
}

/** Periods of silence that are allowed, before the grace. */
const ALLOWED_PERIODS = 3;
/** As long as a single status came nobody knows when the next is due: three periods of a node at 0.1 Hz. */
const FIRST_ALLOWED_SECONDS = 30;

/** Duplicates that come closer than this came at once. */
const AT_ONCE_SECONDS = 0.05;
/** After a longer pause it is not a beat. */
const LONGEST_BEAT_SECONDS = 60;

/**
 * Watches whether a node's statuses keep arriving, on this machine's monotonic clock; the node's own clock has no say in it.
 * It resolves at the second status in a row, counted a half period apart, so that what was sent once more does not.
 */
export class NodeWatch {
  readonly stamps: NodeStamps;
  #silence: SilenceState;
  #graceSeconds: number;
  #arrivedSeconds = Number.NaN;
  /** Seconds between arrivals of a node that always says the same; NaN: it does not. */
  #beatSeconds = Number.NaN;

  /** `expectedSinceSeconds`: from when on silence counts; null: not before it is heard. */
  constructor(recent: readonly Stamp[], expectedSinceSeconds: number | null, graceSeconds: number) {
    this.stamps = new NodeStamps(recent);
    this.#silence = freshSilence(expectedSinceSeconds, false);
    this.#graceSeconds = graceSeconds;
  }

  /** Whether its silence is an alert. */
  get isSilent(): boolean {
    return this.#silence.open;
  }

  /** Seconds from one status to the next: by the node's time stamps, and where these stand still by when statuses arrive. */
  get periodSeconds(): number {
    const { isPeriodMeasured, periodSeconds } = this.stamps;
    return isPeriodMeasured || Number.isNaN(this.#beatSeconds) ? periodSeconds : this.#beatSeconds;
  }

  /** How long it may be silent. */
  get allowedSeconds(): number {
    const isKnown = this.stamps.isPeriodMeasured || !Number.isNaN(this.#beatSeconds);
    return (isKnown ? ALLOWED_PERIODS * this.periodSeconds : FIRST_ALLOWED_SECONDS) + this.#graceSeconds;
  }

  /** When silence becomes an alert unless it is heard before; infinite: it is one, or there was nothing to hear. */
  get deadlineSeconds(): number {
    const { lastGoodSeconds, open } = this.#silence;
    return open || lastGoodSeconds === null ? Number.POSITIVE_INFINITY : lastGoodSeconds + this.allowedSeconds;
  }

  setGrace(graceSeconds: number): void {
    this.#graceSeconds = graceSeconds;
  }

  /** The node left: that it is silent counts no longer, until it is heard again. */
  leave(): void {
    this.#silence = freshSilence(null, false);
  }

  /** Counts silence from then on where it did not count. */
  expect(sinceSeconds: number): void {
    if (this.#silence.lastGoodSeconds === null) this.#silence = { ...this.#silence, lastGoodSeconds: sinceSeconds };
  }

  /** Goes on with an episode that is open already. */
  adoptOpen(): void {
    this.#silence = { ...this.#silence, open: true, goodSinceSeconds: null };
  }

  /**
   * Takes a status that arrived now. Duplicates are a sign of life as far as they come one by one, as from a node whose clock stands
   * still: several at once are only sent once more, because their writer has found us again, and count as one.
   */
  hear(stamp: Stamp, atSeconds: number): { readonly arrival: Arrival; readonly isAlive: boolean; readonly change: SilenceChange } {
    const arrival = this.stamps.take(stamp);
    const sinceSeconds = atSeconds - this.#arrivedSeconds;
    this.#arrivedSeconds = atSeconds;
    if (arrival === 'duplicate') {
      if (sinceSeconds < AT_ONCE_SECONDS) return { arrival, isAlive: false, change: null };
      if (sinceSeconds <= LONGEST_BEAT_SECONDS) this.#beatSeconds = sinceSeconds;
    }
    const { lastGoodSeconds, open } = this.#silence;
    // A second silence after the first sign of life begins anew.
    if (open && lastGoodSeconds !== null && atSeconds - lastGoodSeconds > this.allowedSeconds) this.adoptOpen();
    const { state, change } = stepSilence(this.#silence, true, atSeconds, this.allowedSeconds, this.periodSeconds / 2);
    this.#silence = state;
    return { arrival, isAlive: true, change };
  }

  /** Seconds without a status while that is an alert; null: it is none. */
  silentSeconds(atSeconds: number): number | null {
    const { lastGoodSeconds, open } = this.#silence;
    return open && lastGoodSeconds !== null ? atSeconds - lastGoodSeconds : null;
  }

  /** Looks whether it has been silent for too long; the seconds of silence when that just became an alert, else null. */
  check(atSeconds: number): number | null {
    if (atSeconds <= this.deadlineSeconds) return null;
    const { state, change, silentSeconds } = stepSilence(this.#silence, false, atSeconds, this.allowedSeconds, 0);
    this.#silence = state;
    return change === 'raise' ? silentSeconds : null;
  }
}
