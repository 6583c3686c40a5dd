import type { HoldingEntry } from '../../harness/record/entries.ts';
import { type Holding, HoldingCount } from '../../harness/watch/holding.ts';
import { type Fault, type Interval, isWithin, ofKind } from './faults.ts';

/** What a synthetic service stores, or its operations collect, and the looks at it. */
export class WeekHolding {
  readonly #of: HoldingEntry['of'];
  readonly #blind: readonly Interval[];
  readonly #gaps: readonly Interval[];
  readonly #stamps: number[] = [];
  /** Everything before was looked at, or lies behind. */
  #seen = 0;
  #from: number;
  #wentBack = false;

  constructor(of: HoldingEntry['of'], faults: readonly Fault[], beginMs: number, slotSeconds: number) {
    this.#of = of;
    const half = slotSeconds / 2;
    // Rows that are not written are not added in the first place.
    const mine = ofKind(faults, 'gap').filter((gap) => gap.of === of && of === 'stored');
    // Between the two around it, which are there.
    this.#gaps = mine.map(({ at, seconds }) => ({ from: at + half + 1e-6, to: at + half + seconds - 1e-6 }));
    this.#blind = ofKind(faults, 'blind').flatMap(({ at, of: what, seconds }) => (what === of ? [{ from: at, to: at + seconds }] : []));
    this.#from = beginMs;
  }

  /** A sample or row at `at`, with its time stamp. */
  add(at: number, stampMs: number): void {
    if (!isWithin(this.#gaps, at)) this.#stamps.push(stampMs);
  }

  /** As the watcher looks; null: it cannot. */
  look(at: number, toMs: number): Holding | null {
    if (this.#from >= toMs || isWithin(this.#blind, at)) {
      this.#from = isWithin(this.#blind, at) ? toMs : this.#from;
      return null;
    }
    const count = new HoldingCount(this.#of, this.#from, toMs);
    for (let index = this.#wentBack ? 0 : this.#seen; index < this.#stamps.length; index++) count.add(this.#stamps[index] as number);
    this.#seen = this.#stamps.length;
    this.#from = toMs;
    return count.result();
  }

  putBack(nowMs: number): void {
    this.#from = Math.min(this.#from, nowMs);
    this.#wentBack = true;
  }
}
