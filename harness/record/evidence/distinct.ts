import type { Received } from '../entries.ts';
import type { Stretch } from './stretch.ts';

/** So long a time stamp is remembered, at least, and at most twice as long: the same again is the same status. */
export const DISTINCT_SECONDS = 300;
/** Unless the clock was put back meanwhile: then one that is stamped so much later is another. */
const SAME_SECONDS = 2;
/** A late joiner is sent ten statuses again; at low rates these are older than five minutes. */
const DISTINCT_PERIODS = 20;
/** A status that is stamped up to this long after the clocks of its entry came in while the entry was written. */
const AHEAD_SECONDS = 10;
/** Statuses follow each other in so many periods, or so many seconds. */
const NEXT_PERIODS = 5;
const NEXT_SECONDS = 5;
/** A clock that is off by less than this is the watcher's own. */
const SKEW_MS = 500;

/** Tells where on the run's axis a status was stamped, and whether it was received before. */
export class Distinct {
  /** Time stamp → place on the axis. Two generations, of which the older goes as a whole. */
  #young = new Map<number, number>();
  #old = new Map<number, number>();
  #turned = Number.NEGATIVE_INFINITY;
  #latest = Number.NEGATIVE_INFINITY;
  /** When the clock was last put back. */
  #putBackAt = Number.NEGATIVE_INFINITY;
  duplicates = 0;
  outOfOrder = 0;

  /**
   * Hands the place of every status that was not received before to `onDistinct`. `remote`: the stamps are of another machine's
   * clock, which is then seen by how long they seem to take.
   */
  add(received: Received, stretch: Stretch, remote: boolean, onDistinct: (at: number) => void): void {
    if (received.first === null) return;
    const window = Math.max(DISTINCT_SECONDS, DISTINCT_PERIODS / stretch.hertz);
    this.#turn(stretch.to, window);
    const [now = 0] = stretch.wallOffsets;
    if (stretch.wallOffsets.some((offset) => offset > now)) this.#putBackAt = stretch.to;
    const isRepeating = stretch.to - this.#putBackAt < 2 * window;
    const fastest = received.fastest_ms ?? 0;
    const skewMs = remote && Math.abs(fastest) > SKEW_MS ? fastest : 0;
    let stamp = received.first;
    this.#one(stamp, this.#placeOf(stamp + skewMs, stretch), isRepeating, onDistinct);
    for (const step of received.steps) {
      stamp += step;
      this.#one(stamp, this.#placeOf(stamp + skewMs, stretch), isRepeating, onDistinct);
    }
  }

  /** `isRepeating`: the clock was put back not long ago, so that the same stamps come for the second time. */
  #one(stamp: number, at: number, isRepeating: boolean, onDistinct: (at: number) => void): void {
    const before = this.#young.get(stamp) ?? this.#old.get(stamp);
    if (before !== undefined && (!isRepeating || at - before < SAME_SECONDS)) {
      this.duplicates++;
      return;
    }
    this.#young.set(stamp, at);
    if (at < this.#latest) this.outOfOrder++;
    else this.#latest = at;
    onDistinct(at);
  }

  /**
   * Where the clock was set in the stretch, or shortly before, a stamp may mean several places: the one right after the status before
   * is taken, else the latest in the stretch or before it. A stamp that no clock explains is taken to be of the end.
   */
  #placeOf(stampMs: number, { hertz, to, wallOffsets }: Stretch): number {
    const places = wallOffsets.map((offset) => Math.round(stampMs - offset * 1000) / 1000);
    const next = this.#latest + Math.max(NEXT_SECONDS, NEXT_PERIODS / hertz);
    const following = places.filter((at) => at > this.#latest && at <= Math.min(next, to));
    if (following.length > 0) return Math.min(...following);
    const before = places.filter((at) => at <= to);
    if (before.length > 0) return Math.max(...before);
    const ahead = places.filter((at) => at <= to + AHEAD_SECONDS);
    return ahead.length > 0 ? Math.min(...ahead) : to;
  }

  #turn(now: number, window: number): void {
    if (now - this.#turned < window) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#turned = now;
  }
}
