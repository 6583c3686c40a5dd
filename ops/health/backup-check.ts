import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { HOUR_MS, isoUtc } from '../../src/core/time.ts';
import { backupName, newestFirst, timeOfBackup } from '../backup/names.ts';
import type { Check } from './check.ts';
import { askOnce, within } from './patience.ts';
import { finding, fine, note, type Verdict } from './verdict.ts';

export interface BackupFacts {
  /** When the newest backup was begun; null: there is none. */
  readonly newestMs: number | null;
  /** When the data folder was made; null: not known. */
  readonly dataSinceMs: number | null;
  readonly nowMs: number;
  readonly maxAgeHours: number;
}

/** Clocks are corrected by a little all the time. */
const AHEAD_MS = 600_000;

/** When the newest of the backups among these names was begun; only verified ones have such a name. Null: there is none. */
export function newestBackup(names: readonly string[], nowMs: number): number | null {
  const [newest] = newestFirst(names, backupName(nowMs + AHEAD_MS));
  return newest === undefined ? null : timeOfBackup(newest);
}

export function judgeBackup({ dataSinceMs, maxAgeHours, newestMs, nowMs }: BackupFacts): Verdict {
  const allowedMs = maxAgeHours * HOUR_MS;
  const remedy = 'edge-health ops list tells how it went; edge-health ops backup_logs makes one now';
  const hours = (ms: number): number => Math.round(ms / HOUR_MS);
  if (newestMs === null) {
    const measured = { newest: null, age_hours: null };
    if (dataSinceMs === null || nowMs - dataSinceMs <= allowedMs) return note('backup', 'there is none yet', measured);
    return finding('backup', 'WARNING', 'there is none', remedy, measured);
  }
  const ageMs = nowMs - newestMs;
  const measured = { newest: isoUtc(newestMs), age_hours: Math.round(ageMs / (HOUR_MS / 10)) / 10 };
  if (ageMs < -AHEAD_MS)
    return finding(
      'backup',
      'WARNING',
      `the last one is from the future, ${measured.newest}`,
      'correct the clock, or remove that backup',
      measured,
    );
  if (ageMs <= allowedMs) return fine('backup', `the last one is ${hours(Math.max(0, ageMs))} h old`, measured);
  return finding('backup', 'WARNING', `the last one is ${hours(ageMs)} h old; at most ${maxAgeHours} h are allowed`, remedy, measured);
}

interface Found {
  readonly names: readonly string[];
  readonly dataSinceMs: number | null;
}

async function look(dataFolder: string): Promise<Found> {
  const names = await readdir(join(dataFolder, 'backups')).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const { birthtimeMs } = await stat(dataFolder);
  return { names, dataSinceMs: birthtimeMs > 0 ? birthtimeMs : null };
}

const SECONDS = 5;

export const backupCheck: Check = {
  name: 'backup',
  seconds: 8,
  run: async ({ context }, signal) => {
    const { config, dataFolder } = context;
    if (config.ops.backup_logs === 'off') return [];
    try {
      const { dataSinceMs, names } = await within(
        SECONDS,
        askOnce(`backups ${dataFolder}`, () => look(dataFolder)),
        signal,
      );
      const nowMs = context.nowMs();
      const newestMs = newestBackup(names, nowMs);
      return [judgeBackup({ newestMs, dataSinceMs, nowMs, maxAgeHours: config.ops.check.backup_max_age_hours })];
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return [note('backup', `there is no data folder ${dataFolder} yet`)];
      const remedy = code === 'EACCES' ? "run it as root or as the service's user" : `look at ${dataFolder}`;
      return [finding('backup', 'UNKNOWN', `backups cannot be listed: ${code ?? message}`, remedy)];
    }
  },
};
