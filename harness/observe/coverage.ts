import type { Clocked, CoverageEntry, StampGap } from '../record/entries.ts';

/** The result of one scan of stored samples or collected rows. */
export type Scan = Omit<CoverageEntry, 'type' | keyof Clocked>;

/** Scans the time stamps from `fromMs` (inclusive) to `toMs` (exclusive), in ms since the epoch; null: they cannot be read now. */
export type Scanner = (fromMs: number, toMs: number) => Promise<Scan | null>;

/** Longer steps between neighbouring time stamps are listed as gaps. */
const LISTED_SECONDS = { stored: 60, collected: 150 } as const;
/** Listed gaps per scan. A service that leaves more has failed already, and `longest_seconds` covers all of them. */
const MAX_LISTED = 1000;

/** Counts time stamps in the order in which they are stored, and finds the gaps between them. */
export class StampCounter {
  readonly #of: Scan['of'];
  readonly #from: number;
  readonly #to: number;
  readonly #gaps: StampGap[] = [];
  #count = 0;
  #first: number | null = null;
  #last: number | null = null;
  #longestMs = 0;

  constructor(of: Scan['of'], from: number, to: number) {
    this.#of = of;
    this.#from = from;
    this.#to = to;
  }

  /** Ignores a stamp out of the range. One that is older than those before it, as after a clock was set back, ends no gap. */
  add(ms: number): void {
    if (ms < this.#from || ms >= this.#to) return;
    this.#count += 1;
    const last = this.#last;
    if (last !== null && ms <= last) return;
    this.#first ??= ms;
    this.#last = ms;
    if (last === null) return;
    this.#longestMs = Math.max(this.#longestMs, ms - last);
    if (ms - last <= LISTED_SECONDS[this.#of] * 1000 || this.#gaps.length >= MAX_LISTED) return;
    this.#gaps.push({ from: last, to: ms, seconds: (ms - last) / 1000 });
  }

  result(): Scan {
    return {
      of: this.#of,
      from: this.#from,
      to: this.#to,
      count: this.#count,
      first: this.#first,
      last: this.#last,
      longest_seconds: this.#longestMs / 1000,
      gaps: this.#gaps,
    };
  }
}
