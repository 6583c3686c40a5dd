import type { CoverageEntry, StampGap } from '../record/entries.ts';

export type Holding = Omit<CoverageEntry, 'type' | 'boot' | 'mono' | 'wall'>;

/** Neighbours that are further apart are listed. */
const LISTED_SECONDS = { stored: 60, collected: 150 } as const;
/** Of one look. A service that leaves more gaps than this has failed long since, and `longest_seconds` is of all. */
const MAX_LISTED = 1000;

/** What a look at time stamps from `from` (inclusive) to `to` (exclusive) finds; they come in the order in which they are held. */
export class HoldingCount {
  readonly #of: Holding['of'];
  readonly #from: number;
  readonly #to: number;
  readonly #gaps: StampGap[] = [];
  #count = 0;
  #first: number | null = null;
  #last: number | null = null;
  #longestMs = 0;

  constructor(of: Holding['of'], from: number, to: number) {
    this.#of = of;
    this.#from = from;
    this.#to = to;
  }

  /** One that is not in the range is left aside; one that is older than what came before it, as after a clock was put back, ends no gap. */
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

  result(): Holding {
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
