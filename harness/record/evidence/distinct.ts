import type { Received } from '../entries.ts';
import type { Stretch } from './stretch.ts';

/** So long a time stamp is remembered, at least: the same again is the same status. */
export const DISTINCT_SECONDS = 300;
/** Unless the clock was put back: then it is another, stamped at another time. Clocks are slewed and rounded by less than this. */
const SAME_SECONDS = 2;
/** A late joiner is sent ten statuses again; at low rates these are older than five minutes. */
const DISTINCT_PERIODS = 20;
/** A status that is stamped up to this long after the clocks of its entry came in while the entry was written. */
const AHEAD_SECONDS = 10;
/** A clock that is off by less than this is the watcher's own. */
const SKEW_MS = 500;

/** Tells where on the run's axis a status was stamped, and whether it was received before. */
export class Distinct {
  /** Time stamp → place on the axis. Two generations, of which the older goes as a whole. */
  #young = new Map<number, number>();
  #old = new Map<number, number>();
  #turned = Number.NEGATIVE_INFINITY;
  #latest = Number.NEGATIVE_INFINITY;
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
    const fastest = received.fastest_ms ?? 0;
    const skewMs = remote && Math.abs(fastest) > SKEW_MS ? fastest : 0;
    let stamp = received.first;
    this.#one(stamp, placeOf((stamp + skewMs) / 1000, stretch), onDistinct);
    for (const step of received.steps) {
      stamp += step;
      this.#one(stamp, placeOf((stamp + skewMs) / 1000, stretch), onDistinct);
    }
  }

  #one(stamp: number, at: number, onDistinct: (at: number) => void): void {
    const before = this.#young.get(stamp) ?? this.#old.get(stamp) ?? Number.NEGATIVE_INFINITY;
    if (Math.abs(at - before) < SAME_SECONDS) {
      this.duplicates++;
      return;
    }
    this.#young.set(stamp, at);
    if (at < this.#latest) this.outOfOrder++;
    else this.#latest = at;
    onDistinct(at);
  }

  #turn(now: number, window: number): void {
    if (now - this.#turned < window) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#turned = now;
  }
}

/** The latest place that a stamp can mean by one of the clocks of the stretch; one that none explains is taken to be of the end. */
function placeOf(stampSeconds: number, { wallOffsets, to }: Stretch): number {
  let place = Number.NEGATIVE_INFINITY;
  for (const offset of wallOffsets) {
    const at = stampSeconds - offset;
    if (at <= to + AHEAD_SECONDS) place = Math.max(place, at);
  }
  return place === Number.NEGATIVE_INFINITY ? to : place;
}
