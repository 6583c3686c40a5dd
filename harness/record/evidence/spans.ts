import type { WatchedSpan } from '../../engine/evidence.ts';
import type { Stretch } from './stretch.ts';
import type { Way } from './way.ts';

/** Time stamps are told in milliseconds, the boot-time clock in hundredths of a second (/proc/uptime). */
const ROUNDING_SECONDS = 0.02;
/** Of sums of differences of clocks. */
const ROUNDING_SLOTS = 1e-3;

interface Heard {
  /** Distinct statuses stamped in the span, and those of its last stretch that are stamped after it. */
  count: number;
  ahead: number;
  /** Time in which there was no subscription. */
  deafSeconds: number;
}

interface Span {
  readonly from: number;
  to: number;
  awakeSeconds: number;
  readonly hertz: number;
  /** Where the watcher missed a part: a span of one stretch. */
  readonly stalledSeconds: number;
  readonly heard: Readonly<Record<Way, Heard>>;
}

export interface Tally {
  readonly expected: number;
  readonly received: number;
  readonly unheard: number;
}

/**
 * Watched spans, and the slots in each: ⌊rate × time awake⌋, of which no more can be received. A stretch in which the watcher itself
 * was kept from running is a span of its own, so that what arrives late after it hides no loss elsewhere.
 */
export class Spans {
  readonly #spans: Span[] = [];

  /** Opens or prolongs the span that the stretch belongs to. */
  add(stretch: Stretch): void {
    const last = this.#spans.at(-1);
    const { from, to, awakeSeconds, hertz, stalledSeconds } = stretch;
    if (last !== undefined && !stretch.fresh && stalledSeconds === 0 && last.stalledSeconds === 0 && last.hertz === hertz) {
      last.to = to;
      last.awakeSeconds += awakeSeconds;
      // What was stamped after the entry before has its place in this stretch.
      for (const heard of Object.values(last.heard)) heard.ahead = 0;
      return;
    }
    const silent = (): Heard => ({ count: 0, ahead: 0, deafSeconds: 0 });
    this.#spans.push({ from, to, awakeSeconds, hertz, stalledSeconds, heard: { topic: silent(), events: silent() } });
  }

  /** A distinct status that arrived in the last stretch and is stamped at `at`. */
  count(way: Way, at: number): void {
    const last = this.#spans.at(-1);
    if (last === undefined) return;
    if (at >= last.from - ROUNDING_SECONDS) {
      last.heard[way].count++;
      if (at > last.to + ROUNDING_SECONDS) last.heard[way].ahead++;
      return;
    }
    // Late: it belongs to a span before, or to a time in which nobody looked.
    for (let index = this.#spans.length - 2; index >= 0; index--) {
      const span = this.#spans[index] as Span;
      if (at > span.to + ROUNDING_SECONDS) return;
      if (at < span.from - ROUNDING_SECONDS) continue;
      span.heard[way].count++;
      return;
    }
  }

  deaf(way: Way, awakeSeconds: number): void {
    const last = this.#spans.at(-1);
    if (last !== undefined) last.heard[way].deafSeconds += awakeSeconds;
  }

  watched(): WatchedSpan[] {
    const watched: { from: number; to: number; awakeSeconds: number }[] = [];
    for (const { from, to, awakeSeconds, stalledSeconds } of this.#spans) {
      const end = Math.max(from, to - stalledSeconds);
      const last = watched.at(-1);
      if (last !== undefined && last.to === from) {
        last.to = end;
        last.awakeSeconds += awakeSeconds;
      } else if (end > from) watched.push({ from, to: end, awakeSeconds: awakeSeconds });
    }
    return watched;
  }

  /** Stretches that the watcher missed, at the end of the minute that tells of them. */
  stalls(): { from: number; to: number }[] {
    const stalled = this.#spans.filter(({ stalledSeconds }) => stalledSeconds > 0);
    return stalled.map(({ from, to, stalledSeconds }) => ({ from: Math.max(from, to - stalledSeconds), to }));
  }

  tally(way: Way): Tally {
    let [expected, received, unheard] = [0, 0, 0];
    for (const { awakeSeconds, hertz, heard } of this.#spans) {
      const { count, ahead, deafSeconds } = heard[way];
      const slots = Math.floor(awakeSeconds * hertz + ROUNDING_SLOTS);
      const got = Math.min(slots, count - ahead);
      expected += slots;
      received += got;
      unheard += Math.min(slots - got, Math.ceil(deafSeconds * hertz));
    }
    return { expected, received, unheard };
  }
}
