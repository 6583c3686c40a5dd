import type { HoldingEvidence, HoldingGap } from '../../engine/evidence.ts';
import type { HoldingEntry } from '../entries.ts';
import type { ClockEvent } from './axis.ts';
import { explain, type MachineOff, type StampRange } from './excuses.ts';

/** Looks follow each other; what is between two of them by less than this is no hole. */
const SEAM_MS = 1000;
/** What is longer than this is listed, as the looks list what is between neighbours. */
const LISTED_SECONDS = { stored: 60, collected: 150 };
/** So many samples or rows may be missing by where the bounds of looks fall. */
const SLACK_COUNT = 2;

interface Look {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

/** What looks at the stored samples, or at the collected rows, found: gaps between neighbours, at the seams and at both ends. */
export class Holding {
  readonly #of: HoldingEntry['of'];
  readonly #beginMs: number;
  /** Up to where was looked, and the last sample or row that is known; both are the begin of the run at first. */
  #cursorMs: number;
  #lastMs: number;
  #count = 0;
  /** The longest gap of a look, where it is not among those that it lists. */
  #unlistedSeconds = 0;
  #holesMs = 0;
  /** What may be hidden by samples that carry the same stamps, since the clock was put back. */
  readonly #hidden: Hidden[] = [];
  readonly #looks: Look[] = [];
  readonly #gaps: StampRange[] = [];
  /** From the last known sample before a hole between looks to the first one after it. */
  readonly #blind: StampRange[] = [];
  /** How far the clock was put back since the looks last went back with it. */
  #backSeconds = 0;

  constructor(of: HoldingEntry['of'], beginMs: number) {
    this.#of = of;
    this.#beginMs = beginMs;
    this.#cursorMs = beginMs;
    this.#lastMs = beginMs;
  }

  putBack(seconds: number): void {
    this.#backSeconds += seconds;
  }

  add({ count, first, from, gaps, last, longest_seconds, to }: HoldingEntry): void {
    let backSeconds = 0;
    if (from < this.#cursorMs - SEAM_MS) {
      backSeconds = this.#backSeconds;
      this.#backSeconds = 0;
    }
    const older = this.#olderIn(from, to);
    if (older.count > 0) {
      // What was missing before the clock was put back goes on in what may be hidden since.
      const missingSeconds = (this.#cursorMs - this.#lastMs) / 1000;
      this.#hidden.push({ from, to, seconds: missingSeconds + hiddenSeconds({ from, to, count }, older) });
    }
    const seam = { from: this.#lastMs, to: first ?? to, backSeconds };
    if (from > this.#cursorMs + SEAM_MS) {
      this.#holesMs += from - this.#cursorMs;
      this.#blind.push(seam);
      this.#lastMs = last ?? from;
    } else if (first !== null) {
      // Where the first one may be an older one from the middle of the range, it does not tell how long nothing came.
      if (older.count === 0 || older.isFromBegin) this.#gaps.push(seam);
      this.#lastMs = last ?? first;
    } else {
      // Nothing since the clock was put back: the gap goes on, told in the new time.
      this.#lastMs -= backSeconds * 1000;
    }
    for (const gap of gaps) this.#gaps.push({ from: gap.from, to: gap.to, backSeconds: 0 });
    const listedSeconds = gaps.reduce((longest, gap) => Math.max(longest, (gap.to - gap.from) / 1000), 0);
    if (longest_seconds > listedSeconds) this.#unlistedSeconds = Math.max(this.#unlistedSeconds, longest_seconds);
    this.#count += count;
    this.#cursorMs = to;
    this.#looks.push({ from, to, count });
  }

  /** Null: nobody looked. `endMs`: of the wall clock at the end of the run. */
  evidence(endMs: number, events: readonly ClockEvent[], offs: readonly MachineOff[]): HoldingEvidence | null {
    if (this.#looks.length === 0) return null;
    const ranges = [...this.#gaps, { from: this.#lastMs, to: this.#cursorMs, backSeconds: 0 }];
    const listedMs = LISTED_SECONDS[this.#of] * 1000;
    let longestSeconds = this.#unlistedSeconds;
    const gaps: HoldingGap[] = [];
    for (const range of ranges) {
      const gap = explain(range, events, offs);
      longestSeconds = Math.max(longestSeconds, gap.seconds);
      if (range.to - range.from > listedMs || gap.seconds * 1000 > listedMs) gaps.push(gap);
    }
    // Time that came twice and was looked at once at most is as good as a hole.
    let blindSeconds = this.#backSeconds;
    for (const hidden of this.#hidden) blindSeconds = Math.max(blindSeconds, hidden.seconds - passedOver(hidden, events));
    const blind = [...this.#blind];
    if (endMs > this.#cursorMs + SEAM_MS) blind.push({ from: this.#lastMs, to: endMs, backSeconds: 0 });
    for (const range of blind) blindSeconds = Math.max(blindSeconds, explain(range, events, offs).seconds);
    const uncoveredMs = this.#holesMs + Math.max(0, endMs - this.#cursorMs);
    const covered = Math.max(0, 1 - uncoveredMs / Math.max(1, endMs - this.#beginMs));
    return { count: this.#count, covered, gaps, longestSeconds, blindSeconds };
  }

  /** What looks before found in the same range of stamps, which is some only since the clock was put back. */
  #olderIn(from: number, to: number): Older {
    let [count, ms, isFromBegin] = [0, 0, false];
    for (const look of this.#looks) {
      isFromBegin ||= look.from <= from && look.to > from;
      const commonMs = Math.max(0, Math.min(to, look.to) - Math.max(from, look.from));
      ms += commonMs;
      count += (look.count * commonMs) / (look.to - look.from);
    }
    return { count, ms, isFromBegin };
  }
}

interface Older {
  readonly count: number;
  /** Of the range, in which they lie. */
  readonly ms: number;
  /** They lie right at its begin, too. */
  readonly isFromBegin: boolean;
}

interface Hidden {
  readonly from: number;
  readonly to: number;
  readonly seconds: number;
}

/** How much of a range of stamps suspends and forward steps took away. */
function passedOver({ from, to }: Hidden, events: readonly ClockEvent[]): number {
  return events.reduce((sum, { earliest, latest, seconds }) => {
    const commonSeconds = (Math.min(to, latest) - Math.max(from, earliest - seconds * 1000)) / 1000;
    return sum + Math.max(0, Math.min(seconds, commonSeconds));
  }, 0);
}

/**
 * Since a clock was put back, a look finds samples of both times that carry the same stamps, and the older ones may hide a gap of the
 * newer: how long it may be, by how many there should be had the newer come as steadily as the older.
 */
function hiddenSeconds({ count, from, to }: Look, older: Older): number {
  const newer = Math.max(0, count - older.count) + SLACK_COUNT;
  return (to - from) / 1000 - (newer * older.ms) / older.count / 1000;
}
