import type { Clocked } from '../../harness/record/entries.ts';
import type { ServiceRow } from './collected-rows.ts';

/** Rows so close together look at all the time between them; likewise at an end of the period. One a minute is usual, and one may fail. */
export const NEAR_SECONDS = 150;

/** A row with its place among the others. */
export interface PlacedRow extends ServiceRow {
  readonly clocks: Clocked;
  /** Empty: not known. */
  readonly boot: string;
  /** The row begins a stretch of its own: nobody can tell what was between it and the one before. */
  readonly fresh: boolean;
}

/**
 * Rows in the order in which they were written, whatever the wall clock said meanwhile: boots in the order of their last rows (a
 * clock is right at the end of a boot rather than at its beginning), and within a boot by the seconds since. Rows that do not tell
 * their boot come where the wall clock puts them, and are taken to be of the boot of the row before.
 */
export function inOrder(rows: readonly ServiceRow[]): PlacedRow[] {
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
  return placed([...merged, ...unknown.slice(next)]);
}

function placed(rows: readonly ServiceRow[]): PlacedRow[] {
  const result: PlacedRow[] = [];
  /** By the last answer: which run of the service it was. */
  let started: string | null = null;
  let before: PlacedRow | undefined;
  for (const row of rows) {
    const boot = row.bootId ?? before?.boot ?? '';
    const clocks = clocksOf(row, before?.boot === boot ? before : undefined);
    const near = before !== undefined && before.boot === boot && clocks.boot - before.clocks.boot <= NEAR_SECONDS;
    // Between two answers of one run of the service it ran, however far they are apart.
    const sameRun = before?.boot === boot && before.answered && row.answered && row.started !== null && row.started === started;
    before = { ...row, boot, clocks, fresh: !near && !sameRun };
    result.push(before);
    if (row.answered) started = row.started;
  }
  return result;
}

/** What a row does not tell goes on from the row before as the wall clock did. */
function clocksOf(row: ServiceRow, before: PlacedRow | undefined): Clocked {
  const wall = row.ms;
  const seconds = before ? Math.max(0, (wall - before.clocks.wall) / 1000) : 0;
  const boot = row.bootSeconds ?? (before ? before.clocks.boot + seconds : wall / 1000);
  const mono = row.monotonicSeconds ?? (before ? before.clocks.mono + (boot - before.clocks.boot) : boot);
  return { boot, mono, wall };
}

/** The clocks so many seconds later, when nothing happens to them meanwhile. */
export function later({ boot, mono, wall }: Clocked, seconds: number): Clocked {
  return { boot: boot + seconds, mono: mono + seconds, wall: wall + seconds * 1000 };
}
