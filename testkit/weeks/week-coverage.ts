import { type Scan, StampCounter } from '../../harness/observe/coverage.ts';
import type { CoverageEntry } from '../../harness/record/entries.ts';
import { type Fault, type Interval, isWithin, ofKind } from './faults.ts';

/** The samples that a synthetic service stores, or the rows that its maintenance jobs collect, and their scans. */
export class WeekCoverage {
  readonly #of: CoverageEntry['of'];
  readonly #unscanned: readonly Interval[];
  readonly #gaps: readonly Interval[];
  readonly #stamps: number[] = [];
  /** The number of stamps that were scanned. */
  #seen = 0;
  #from: number;
  #wasSetBack = false;

  constructor(of: CoverageEntry['of'], faults: readonly Fault[], beginMs: number, periodSeconds: number) {
    this.#of = of;
    const half = periodSeconds / 2;
    // Missing rows are left out by rowTimes.
    const mine = ofKind(faults, 'gap').filter((gap) => gap.of === of && of === 'stored');
    // The samples at both edges exist.
    this.#gaps = mine.map(({ at, seconds }) => ({ from: at + half + 1e-6, to: at + half + seconds - 1e-6 }));
    this.#unscanned = ofKind(faults, 'unscanned').flatMap(({ at, of: what, seconds }) =>
      what === of ? [{ from: at, to: at + seconds }] : [],
    );
    this.#from = beginMs;
  }

  /** A sample or row at `at`, with its time stamp. */
  add(at: number, stampMs: number): void {
    if (!isWithin(this.#gaps, at)) this.#stamps.push(stampMs);
  }

  /** A scan by the observer, or null if there is nothing to scan or the range cannot be read. */
  scan(at: number, toMs: number): Scan | null {
    if (this.#from >= toMs || isWithin(this.#unscanned, at)) {
      this.#from = isWithin(this.#unscanned, at) ? toMs : this.#from;
      return null;
    }
    const count = new StampCounter(this.#of, this.#from, toMs);
    for (let index = this.#wasSetBack ? 0 : this.#seen; index < this.#stamps.length; index++) count.add(this.#stamps[index] as number);
    this.#seen = this.#stamps.length;
    this.#from = toMs;
    return count.result();
  }

  setBack(nowMs: number): void {
    this.#from = Math.min(this.#from, nowMs);
    this.#wasSetBack = true;
  }
}

/** Rows are written once per minute, 20 s after its start. The rows at both edges of a gap exist. */
const ROW_AT = 20;
const MINUTE = 60;

/** Times at which rows are written, on the time axis. */
export function rowTimes(faults: readonly Fault[], end: number): number[] {
  const gaps = faults.filter((fault) => fault.kind === 'gap' && fault.of === 'collected') as Extract<Fault, { kind: 'gap' }>[];
  const regular = Array.from({ length: Math.ceil(end / MINUTE) }, (_, index) => index * MINUTE);
  const left = regular.filter((at) => !gaps.some((gap) => at > gap.at && at < gap.at + gap.seconds));
  const after = gaps.map(({ at, seconds }) => at + seconds);
  return [...new Set([...left, ...after])].sort((one, other) => one - other).map((at) => at + ROW_AT);
}
