import type { Clocked, CoverageEntry, StampGap } from '../record/entries.ts';

/** The result of one scan of stored samples or collected rows. */
export type Scan = Omit<CoverageEntry, 'type' | keyof Clocked>;

/**
 * Scans the time stamps from `fromMs` (inclusive) to `toMs` (exclusive), in ms since the epoch. Returns null if they cannot be read now.
 */
export type Scanner = (fromMs: number, toMs: number) => Promise<Scan | null>;

/** Gaps between neighbouring time stamps that exceed this are listed. */
const LISTED_SECONDS = { stored: 60, collected: 150 } as const;
/** The maximum number of listed gaps per scan. A service with more gaps has already failed, and `longest_seconds` covers all of them. */
const MAX_LISTED = 1000;

/** Counts time stamps in storage order, and finds the gaps between them. */
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

  /** Ignores a stamp outside the range. A stamp older than an earlier one, as after a clock was set back, does not end a gap. */
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

const KINDS = ['stored', 'collected'] as const;
type ByKind<T> = Record<(typeof KINDS)[number], T>;

/**
 * Scans stored samples and collected rows, each from the end of the previous scan. A range that cannot be read is left to the next scan.
 */
export class Scans {
  readonly #scanners: Readonly<ByKind<Scanner | null>>;
  readonly #from: ByKind<number>;
  /** Scans run one at a time. */
  #last: Promise<unknown> = Promise.resolve();

  /** `from`: the start of the first scan, which is the end of the last recorded scan or the start of the run, in ms since the epoch. */
  constructor(scanners: Readonly<ByKind<Scanner | null>>, from: Readonly<ByKind<number>>) {
    this.#scanners = scanners;
    this.#from = { ...from };
  }

  /** Marks the start of the run: samples before it are not scanned. */
  beginAt(wallMs: number): void {
    for (const kind of KINDS) this.#from[kind] = wallMs;
  }

  /** Never rejects. */
  scanUntil(toMs: number): Promise<readonly Scan[]> {
    return this.#enqueue(() => this.#scan(toMs));
  }

  /**
   * Handles a wall clock that was set back: scans what was stored up to the former time. The next scan starts at the current time, so that
   * an hour that occurs twice is scanned twice.
   */
  clockSetBack(formerMs: number, nowMs: number): Promise<readonly Scan[]> {
    return this.#enqueue(async () => {
      const scans = await this.#scan(formerMs);
      for (const kind of KINDS) this.#from[kind] = Math.min(this.#from[kind], nowMs);
      return scans;
    });
  }

  #enqueue(work: () => Promise<readonly Scan[]>): Promise<readonly Scan[]> {
    const scans = this.#last.then(work);
    this.#last = scans;
    return scans;
  }

  async #scan(toMs: number): Promise<readonly Scan[]> {
    const scans: Scan[] = [];
    for (const kind of KINDS) {
      const from = this.#from[kind];
      // What cannot be read now is scanned the next time; until then it counts as not scanned.
      const scan = from < toMs ? await this.#scanners[kind]?.(from, toMs).catch(() => null) : null;
      if (!scan) continue;
      this.#from[kind] = scan.to;
      scans.push(scan);
    }
    return scans;
  }
}
