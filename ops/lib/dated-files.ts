import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DAY_MS, isoUtc } from '../../src/core/time.ts';

/** `2026-03-04`: the UTC day of a time in milliseconds since the epoch. */
export function utcDay(ms: number): string {
  return isoUtc(ms).slice(0, 10);
}

/** Names in a folder that match; `pattern` captures the day first. Empty where the folder is not there. */
export async function datedFiles(folder: string, pattern: RegExp): Promise<{ readonly name: string; readonly day: string }[]> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  return names.flatMap((name) => {
    const day = pattern.exec(name)?.[1];
    return day === undefined ? [] : [{ name, day }];
  });
}

/**
 * Which of these days are over: older than `keepDays` by this clock, and not among the newest `keepDays` days that there are. So a
 * clock that is absurdly ahead, or a machine that was off for months, never empties the folder.
 */
export function daysOver(days: readonly string[], keepDays: number, nowMs: number): string[] {
  const distinct = [...new Set(days)].sort();
  const oldest = utcDay(Math.max(0, nowMs - keepDays * DAY_MS));
  return distinct.slice(0, Math.max(0, distinct.length - keepDays)).filter((day) => day < oldest);
}

/** Removes the files of the days that are over; their names. */
export async function pruneDatedFiles(folder: string, pattern: RegExp, keepDays: number, nowMs: number): Promise<string[]> {
  const files = await datedFiles(folder, pattern);
  const over = new Set(
    daysOver(
      files.map(({ day }) => day),
      keepDays,
      nowMs,
    ),
  );
  const names = files.filter(({ day }) => over.has(day)).map(({ name }) => name);
  for (const name of names) await rm(join(folder, name), { force: true });
  return names;
}
