/** Puts the rows in the order in which they were written, on one time axis, independent of the wall clock. */
import type { MonitoringGap, ObservedSpan } from '../../harness/engine/evidence.ts';
import { roundToMilliseconds } from '../../src/core/time/time.ts';
import type { ServiceRow } from './collected.ts';
import type { Period } from './period.ts';

/**
 * Two rows that are at most this far apart cover the time between them, and so do a row and an end of the period. One row a minute is
 * usual, and one may be missing.
 */
export const NEAR_SECONDS = 150;
/** A smaller difference between two clocks is caused by rounding or drift. */
const JUMP_SECONDS = 1;
/** A slewed or drifting wall clock may differ by this fraction of the elapsed time. */
const DRIFT = 0.0005;
const SLEWED_SECONDS = 5;

export interface PlacedRow extends ServiceRow {
  /** Seconds since the start of the period, by the boot-time clock; across a reboot, by the wall clock. */
  readonly at: number;
  /** Seconds of CLOCK_BOOTTIME and CLOCK_MONOTONIC. Missing values are extrapolated from the previous row. */
  readonly boot: number;
  readonly mono: number;
  /** Id of the boot; empty if unknown. */
  readonly bootOf: string;
  /** True if nothing is known about the time since the previous row. */
  readonly fresh: boolean;
}

/** A suspend, a step of the wall clock, or a reboot, between a row and the previous one. */
export interface ClockEvent {
  readonly kind: 'suspend' | 'step' | 'off';
  /** For a step, positive if the clock was set forward; for a reboot, 0. */
  readonly seconds: number;
  readonly at: number;
  /** Index of the row after it. */
  readonly row: number;
  /** The wall clock showed a time between these right after the event, or while the machine was off; milliseconds. */
  readonly earliest: number;
  readonly latest: number;
}

/**
 * Boots are ordered by their last rows, because a clock is more likely to be right at the end of a boot than at its start;
 * within a boot, rows are ordered by the seconds since boot. Rows without a boot id are placed by the wall clock, and belong to
 * the boot of the previous row.
 */
export function placeRows(rows: readonly ServiceRow[], fromMs: number): PlacedRow[] {
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
  merged.push(...unknown.slice(next));

  const placed: PlacedRow[] = [];
  /** Start of the service run that responded last. */
  let started: string | null = null;
  let before: PlacedRow | undefined;
  for (const row of merged) {
    const bootOf = row.bootId ?? before?.bootOf ?? '';
    const same = before?.bootOf === bootOf ? before : undefined;
    const passed = same ? Math.max(0, (row.ms - same.ms) / 1000) : 0;
    const boot = row.bootSeconds ?? (same ? same.boot + passed : row.ms / 1000);
    const mono = row.monotonicSeconds ?? (same ? same.mono + (boot - same.boot) : boot);
    const isNear = same !== undefined && boot - same.boot <= NEAR_SECONDS;
    // Between two responses of one service run, the service was running, whatever their distance.
    const isSameRun = same?.answered === true && row.answered && row.started !== null && row.started === started;
    let at = Math.max(0, (row.ms - fromMs) / 1000);
    if (before)
      at = before.at + (sharesClock(before.bootOf, bootOf) ? Math.max(0, boot - before.boot) : Math.max(boot, (row.ms - before.ms) / 1000));
    before = { ...row, at: roundToMilliseconds(at), boot, mono, bootOf, fresh: !isNear && !isSameRun };
    placed.push(before);
    if (row.answered) started = row.started;
  }
  return placed;
}

/** A restarted container has a different boot id that starts with the kernel's, and the same clock. */
function sharesClock(before: string, now: string): boolean {
  const kernel = (id: string): string => (id.includes('/') ? (id.split('/')[0] as string) : '');
  return before === now || (kernel(now) !== '' && kernel(before) === kernel(now));
}

/** Suspends, clock steps and reboots, derived from the clocks of neighbouring rows. */
export function clockEvents(rows: readonly PlacedRow[]): ClockEvent[] {
  const events: ClockEvent[] = [];
  for (const [row, now] of rows.entries()) {
    const before = rows[row - 1];
    if (!before) continue;
    if (before.bootOf !== now.bootOf) events.push({ kind: 'off', seconds: 0, at: before.at, row, earliest: before.ms, latest: now.ms });
    if (!sharesClock(before.bootOf, now.bootOf) || now.boot <= before.boot) continue;
    const elapsed = now.boot - before.boot;
    const suspended = roundToMilliseconds(elapsed - (now.mono - before.mono));
    const stepped = roundToMilliseconds((now.ms - before.ms) / 1000 - elapsed);
    const bounds = (seconds: number) => ({ seconds, row, earliest: before.ms + seconds * 1000, latest: now.ms });
    if (suspended >= JUMP_SECONDS) events.push({ kind: 'suspend', at: Math.max(before.at, now.at - suspended), ...bounds(suspended) });
    if (Math.abs(stepped) >= Math.max(JUMP_SECONDS, elapsed * DRIFT)) events.push({ kind: 'step', at: now.at, ...bounds(stepped) });
  }
  return events;
}

export interface Coverage {
  readonly spans: readonly ObservedSpan[];
  readonly gaps: readonly MonitoringGap[];
  /** Whether the last span reaches the end of the period. */
  readonly isToEnd: boolean;
}

/** The time that the rows cover: the time between two rows, unless nothing is known about it, and both ends of the period. */
export function coverage(rows: readonly PlacedRow[], { fromMs, toMs }: Period): Coverage {
  const first = rows[0] as PlacedRow;
  const last = rows.at(-1) as PlacedRow;
  const spans: { from: number; to: number; awakeSeconds: number }[] = [];
  const gaps: MonitoringGap[] = [];
  // The time before the first row is also covered if that row shows that the service and the machine ran since then.
  const hasRun = first.answered && first.started !== null && Date.parse(first.started) <= fromMs && first.boot >= first.at;
  if (hasRun || first.at <= NEAR_SECONDS) spans.push({ from: 0, to: first.at, awakeSeconds: first.at });
  else {
    gaps.push({ from: 0, to: first.at, kind: first.boot < first.at ? 'off' : 'away' });
    spans.push({ from: first.at, to: first.at, awakeSeconds: 0 });
  }
  let span = spans[0] as (typeof spans)[number];
  for (const [i, row] of rows.entries()) {
    const before = rows[i - 1];
    if (!before) continue;
    if (row.fresh) {
      gaps.push({ from: before.at, to: row.at, kind: before.bootOf === row.bootOf ? 'away' : 'off' });
      span = { from: row.at, to: row.at, awakeSeconds: 0 };
      spans.push(span);
    } else {
      span.to = row.at;
      span.awakeSeconds += Math.max(0, row.mono - before.mono);
    }
  }
  // The wall clock, which defines the period, may have been slewed relative to the boot-time clock.
  const lagging = (toMs - fromMs) / 1000 - (last.at + (toMs - last.ms) / 1000);
  const slewed = first.bootOf === last.bootOf && lagging > 0 && lagging <= SLEWED_SECONDS ? lagging : 0;
  const untilEnd = roundToMilliseconds((toMs - last.ms) / 1000 + slewed);
  const isToEnd = untilEnd > 0 && untilEnd <= NEAR_SECONDS;
  if (isToEnd) {
    span.to = roundToMilliseconds(span.to + untilEnd);
    span.awakeSeconds += untilEnd;
  }
  return { spans: spans.filter(({ from, to }) => to > from), gaps, isToEnd };
}
