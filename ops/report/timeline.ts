import { isoUtc } from '../../src/core/time.ts';
import type { ServiceRow } from './collected-rows.ts';
import type { Period } from './period.ts';

/** Longer times without a row are listed. */
export const GAP_SECONDS = 300;
/** Smaller differences between clocks are the grain of /proc/uptime and the time between two readings. */
const JUMP_SECONDS = 1;
/** NTP slews a clock by at most 500 ppm. */
const SLEW = 0.0005;

export interface Gap {
  readonly from: string;
  readonly to: string;
  readonly seconds: number;
  /** `period`: at an end of the period; `reboot`: the machine was started in between; `sleep`: it slept for most of it. */
  readonly kind: 'collection' | 'sleep' | 'reboot' | 'period';
}

export interface Timeline {
  /** The longest time between two rows. */
  readonly longestGapSeconds: number;
  /** Longer than GAP_SECONDS, also to the ends of the period. */
  readonly gaps: readonly Gap[];
  readonly clockSteps: readonly { readonly at: string; readonly seconds: number }[];
  readonly sleeps: readonly { readonly at: string; readonly seconds: number }[];
}

/**
 * Rows in the order in which they were written, whatever the wall clock said meanwhile: boots in the order of their last rows (a
 * clock is right at the end of a boot rather than at its beginning), and within a boot by the seconds since. Rows that do not tell
 * their boot come where the wall clock puts them.
 */
export function inOrder(rows: readonly ServiceRow[]): ServiceRow[] {
  const { known = [], unknown = [] } = Object.groupBy(rows, ({ bootId }) => (bootId === null ? 'unknown' : 'known'));
  const ordered = [...Map.groupBy(known, ({ bootId }) => bootId).values()]
    .map((boot) => boot.toSorted((a, b) => (a.bootSeconds ?? a.ms / 1000) - (b.bootSeconds ?? b.ms / 1000)))
    .sort((a, b) => (a.at(-1)?.ms ?? 0) - (b.at(-1)?.ms ?? 0))
    .flat();
  const merged: ServiceRow[] = [];
  let next = 0;
  for (const row of ordered) {
    for (; next < unknown.length && (unknown[next] as ServiceRow).ms < row.ms; next += 1) merged.push(unknown[next] as ServiceRow);
    merged.push(row);
  }
  return [...merged, ...unknown.slice(next)];
}

export function isSameBoot(a: ServiceRow, b: ServiceRow): boolean {
  return a.bootId !== null && a.bootId === b.bootId;
}

export function isReboot(before: ServiceRow, after: ServiceRow): boolean {
  return before.bootId !== null && after.bootId !== null && before.bootId !== after.bootId;
}

const rounded = (seconds: number): number => Math.round(seconds * 10) / 10;

const wallSeconds = (before: ServiceRow, after: ServiceRow): number => (after.ms - before.ms) / 1000;

/** Real time between two rows; of different boots only the wall clock tells. */
export function secondsBetween(before: ServiceRow, after: ServiceRow): number {
  if (!isSameBoot(before, after) || before.bootSeconds === null || after.bootSeconds === null)
    return Math.max(0, wallSeconds(before, after));
  return after.bootSeconds - before.bootSeconds;
}

/** What of it the machine slept. */
export function sleptBetween(before: ServiceRow, after: ServiceRow): number {
  if (!isSameBoot(before, after) || before.monotonicSeconds === null || after.monotonicSeconds === null) return 0;
  const slept = secondsBetween(before, after) - (after.monotonicSeconds - before.monotonicSeconds);
  return slept >= JUMP_SECONDS ? slept : 0;
}

function stepBetween(before: ServiceRow, after: ServiceRow): number {
  if (!isSameBoot(before, after) || before.bootSeconds === null || after.bootSeconds === null) return 0;
  const real = secondsBetween(before, after);
  const step = wallSeconds(before, after) - real;
  return Math.abs(step) >= JUMP_SECONDS + SLEW * real ? step : 0;
}

/** `rows` in order. */
export function timeline(rows: readonly ServiceRow[], { fromMs, toMs }: Period): Timeline {
  const gaps: Gap[] = [];
  const clockSteps: { at: string; seconds: number }[] = [];
  const sleeps: { at: string; seconds: number }[] = [];
  const gap = (from: number, to: number, seconds: number, kind: Gap['kind']): void => {
    gaps.push({ from: isoUtc(from), to: isoUtc(to), seconds: rounded(seconds), kind });
  };
  const first = rows[0];
  const last = rows.at(-1);
  if (first && last) gap(fromMs, first.ms, Math.max(0, (first.ms - fromMs) / 1000), 'period');
  for (const [i, after] of rows.entries()) {
    const before = rows[i - 1];
    if (!before) continue;
    const seconds = secondsBetween(before, after);
    const slept = sleptBetween(before, after);
    const step = stepBetween(before, after);
    if (slept > 0) sleeps.push({ at: isoUtc(after.ms), seconds: rounded(slept) });
    if (step !== 0) clockSteps.push({ at: isoUtc(after.ms), seconds: rounded(step) });
    gap(before.ms, after.ms, seconds, isReboot(before, after) ? 'reboot' : slept > seconds / 2 ? 'sleep' : 'collection');
  }
  if (first && last) gap(last.ms, toMs, Math.max(0, (toMs - last.ms) / 1000), 'period');
  return {
    longestGapSeconds: gaps.reduce((longest, { kind, seconds }) => (kind === 'period' ? longest : Math.max(longest, seconds)), 0),
    gaps: gaps.filter(({ seconds }) => seconds > GAP_SECONDS),
    clockSteps,
    sleeps,
  };
}

export interface Slots {
  /** Time from one row to the next as it mostly was. */
  readonly seconds: number;
  readonly expected: number;
  readonly withRow: number;
  readonly answered: number;
}

/**
 * How many of the period's slots, minutes as a rule, have a row, and one with an answer. Counted in real time: a clock that is set
 * neither adds slots nor takes any. `rows` in order.
 */
export function slots(rows: readonly ServiceRow[], { fromMs, toMs }: Period, { clockSteps }: Timeline): Slots {
  const between = rows.slice(1).map((row, i) => secondsBetween(rows[i] as ServiceRow, row));
  const median = between.toSorted((a, b) => a - b)[Math.floor(between.length / 2)] ?? 60;
  const seconds = 60 * Math.max(1, Math.round(median / 60));
  const stepped = clockSteps.reduce((sum, step) => sum + step.seconds, 0);
  const expected = Math.max(1, Math.round(((toMs - fromMs) / 1000 - stepped) / seconds));
  let elapsed = 0;
  const times = rows.map((row, i) => {
    elapsed += i === 0 ? 0 : (between[i - 1] as number);
    return { elapsed, answered: row.answered };
  });
  const answered = times.filter((time) => time.answered);
  return { seconds, expected, withRow: Math.min(expected, apart(times, seconds)), answered: Math.min(expected, apart(answered, seconds)) };
}

/** How many are at least half a slot after the one counted before: a row made by hand besides is none of its own. */
function apart(times: readonly { readonly elapsed: number }[], slotSeconds: number): number {
  let last = Number.NEGATIVE_INFINITY;
  let count = 0;
  for (const { elapsed } of times) {
    if (elapsed - last < slotSeconds / 2) continue;
    last = elapsed;
    count += 1;
  }
  return count;
}
