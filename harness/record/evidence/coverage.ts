import { isoUtc, roundToMilliseconds } from '../../../src/core/time/time.ts';
import type { CoverageEvidence, CoverageGap } from '../../engine/evidence.ts';
import type { CoverageEntry } from '../entries.ts';
import type { ClockEvent } from './time-axis.ts';

/** Scans are contiguous; a distance of less than this between two of them is not a hole. */
const SEAM_MS = 1000;
/** Longer gaps are listed, as in the scans. */
const LISTED_SECONDS = { stored: 60, collected: 150 };
/** The number of samples or rows that may be missing because of where the bounds of scans fall. */
const SLACK_COUNT = 2;

interface Scan {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

/** Gaps in the stored samples or in the collected rows: between neighbours, between scans and at both ends of the run. */
export class Coverage {
  readonly #of: CoverageEntry['of'];
  readonly #beginMs: number;
  /** End of the last scan, and the last known sample or row; both are initially the start of the run. */
  #cursorMs: number;
  #lastMs: number;
  #count = 0;
  /** The longest gap that its scan does not list. */
  #unlistedSeconds = 0;
  #holesMs = 0;
  /** Gaps that may be hidden by samples with the same stamps, because the clock was set back. */
  readonly #hidden: Hidden[] = [];
  readonly #scans: Scan[] = [];
  readonly #gaps: StampRange[] = [];
  /** From the last known sample before a hole between scans to the first one after it. */
  readonly #unscanned: StampRange[] = [];
  /** How far the clock was set back since the scans last followed it back. */
  #backSeconds = 0;

  constructor(of: CoverageEntry['of'], beginMs: number) {
    this.#of = of;
    this.#beginMs = beginMs;
    this.#cursorMs = beginMs;
    this.#lastMs = beginMs;
  }

  putBack(seconds: number): void {
    this.#backSeconds += seconds;
  }

  add({ count, first, from, gaps, last, longest_seconds, to }: CoverageEntry): void {
    let backSeconds = 0;
    if (from < this.#cursorMs - SEAM_MS) {
      backSeconds = this.#backSeconds;
      this.#backSeconds = 0;
    }
    const older = this.#olderIn(from, to);
    if (older.count > 0) {
      // A gap that started before the clock was set back continues in the part that may be hidden since.
      const missingSeconds = (this.#cursorMs - this.#lastMs) / 1000;
      this.#hidden.push({ from, to, seconds: missingSeconds + hiddenSeconds({ from, to, count }, older) });
    }
    const seam = { from: this.#lastMs, to: first ?? to, backSeconds };
    if (from > this.#cursorMs + SEAM_MS) {
      this.#holesMs += from - this.#cursorMs;
      this.#unscanned.push(seam);
      this.#lastMs = last ?? from;
    } else if (first !== null) {
      // If the first sample may be an older one from the middle of the range, it does not end the preceding gap.
      if (older.count === 0 || older.isFromBegin) this.#gaps.push(seam);
      this.#lastMs = last ?? first;
    } else {
      // No sample since the clock was set back: the gap continues, in the new time.
      this.#lastMs -= backSeconds * 1000;
    }
    for (const gap of gaps) this.#gaps.push({ from: gap.from, to: gap.to, backSeconds: 0 });
    const listedSeconds = gaps.reduce((longest, gap) => Math.max(longest, (gap.to - gap.from) / 1000), 0);
    if (longest_seconds > listedSeconds) this.#unlistedSeconds = Math.max(this.#unlistedSeconds, longest_seconds);
    this.#count += count;
    this.#cursorMs = to;
    this.#scans.push({ from, to, count });
  }

  /** Null if there was no scan. `endMs`: wall clock at the end of the run. */
  evidence(endMs: number, events: readonly ClockEvent[], offs: readonly MachineOff[]): CoverageEvidence | null {
    if (this.#scans.length === 0) return null;
    const ranges = [...this.#gaps, { from: this.#lastMs, to: this.#cursorMs, backSeconds: 0 }];
    const listedMs = LISTED_SECONDS[this.#of] * 1000;
    let longestSeconds = this.#unlistedSeconds;
    const gaps: CoverageGap[] = [];
    for (const range of ranges) {
      const gap = explain(range, events, offs);
      longestSeconds = Math.max(longestSeconds, gap.seconds);
      if (range.to - range.from > listedMs || gap.seconds * 1000 > listedMs) gaps.push(gap);
    }
    // Wall-clock time that occurred twice and was scanned at most once counts as a hole.
    let unscannedSeconds = this.#backSeconds;
    for (const hidden of this.#hidden) unscannedSeconds = Math.max(unscannedSeconds, hidden.seconds - skippedSeconds(hidden, events));
    const unscanned = [...this.#unscanned];
    if (endMs > this.#cursorMs + SEAM_MS) unscanned.push({ from: this.#lastMs, to: endMs, backSeconds: 0 });
    for (const range of unscanned) unscannedSeconds = Math.max(unscannedSeconds, explain(range, events, offs).seconds);
    const uncoveredMs = this.#holesMs + Math.max(0, endMs - this.#cursorMs);
    const covered = Math.max(0, 1 - uncoveredMs / Math.max(1, endMs - this.#beginMs));
    return { count: this.#count, covered, gaps, longestSeconds, unscannedSeconds };
  }

  /** Results of earlier scans in the same range of stamps; not empty only after the clock was set back. */
  #olderIn(from: number, to: number): Older {
    let [count, ms, isFromBegin] = [0, 0, false];
    for (const scan of this.#scans) {
      isFromBegin ||= scan.from <= from && scan.to > from;
      const commonMs = Math.max(0, Math.min(to, scan.to) - Math.max(from, scan.from));
      ms += commonMs;
      count += (scan.count * commonMs) / (scan.to - scan.from);
    }
    return { count, ms, isFromBegin };
  }
}

interface Older {
  readonly count: number;
  /** The part of the range that the earlier scans cover. */
  readonly ms: number;
  /** Whether they cover its start. */
  readonly isFromBegin: boolean;
}

interface Hidden {
  readonly from: number;
  readonly to: number;
  readonly seconds: number;
}

/** How much of a range of stamps was skipped by suspends and forward steps. */
function skippedSeconds({ from, to }: Hidden, events: readonly ClockEvent[]): number {
  return events.reduce((sum, { earliest, latest, seconds }) => {
    const commonSeconds = (Math.min(to, latest) - Math.max(from, earliest - seconds * 1000)) / 1000;
    return sum + Math.max(0, Math.min(seconds, commonSeconds));
  }, 0);
}

/**
 * After the clock was set back, a scan finds samples of both passes with the same stamps, and the older ones may hide a gap in the newer.
 * Returns the longest possible such gap, if the newer samples are as dense as the older.
 */
function hiddenSeconds({ count, from, to }: Scan, older: Older): number {
  const newer = Math.max(0, count - older.count) + SLACK_COUNT;
  return (to - from) / 1000 - (newer * older.ms) / older.count / 1000;
}

/** A gap between two time stamps, in ms since the epoch. */
interface StampRange {
  readonly from: number;
  readonly to: number;
  /** How far the clock was set back between them; the gap was longer by this time. */
  readonly backSeconds: number;
}

/** Wall-clock times of the last entry before the machine was off and of the first one after it. */
export interface MachineOff {
  readonly from: number;
  readonly to: number;
}

/**
 * The length of a gap without recorded suspends and forward clock steps. Such an event skips the stamps between the time before it and the
 * time after it, wherever within its bounds it happened. It explains a gap that can contain all of these stamps, because no sample is taken
 * during the event. If older samples have stamps among them, because the clock was set back, it explains only what is certain to lie within
 * its own. The time while the machine was off is not explained.
 */
export function explain({ from, to, backSeconds }: StampRange, events: readonly ClockEvent[], offs: readonly MachineOff[]): CoverageGap {
  let seconds = (to - from) / 1000 + backSeconds;
  const excused: string[] = [];
  for (const event of events) {
    const skipped = skippedMs(event, from, to);
    if (skipped <= 0) continue;
    seconds -= skipped / 1000;
    const length = `${roundToMilliseconds(event.seconds)} s`;
    excused.push(event.kind === 'suspend' ? `suspended for ${length}` : `the clock was set forward by ${length}`);
  }
  const remarks = offs.some((off) => off.from < to && off.to > from) ? ['the machine was off'] : [];
  if (backSeconds > 0) remarks.push(`the clock was set back by ${roundToMilliseconds(backSeconds)} s`);
  return { from: isoUtc(from), to: isoUtc(to), seconds: Math.max(0, seconds), excused: excused.join(', '), remark: remarks.join(', ') };
}

/** How much of the stamps from `from` to `to` an event skipped. */
function skippedMs({ earliest, latest, seconds }: ClockEvent, from: number, to: number): number {
  // Negative in both branches if the clock was set back.
  const all = seconds * 1000;
  if (Math.min(to, latest) - Math.max(from, earliest - all) >= all) return all;
  return Math.min(to, earliest) - Math.max(from, latest - all);
}
