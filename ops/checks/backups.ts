import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { HOUR_MS, isoUtc } from '../../src/core/time/time.ts';
import { backupName, newestFirst, timeOfBackup } from '../backup/names.ts';
import { shareWithTimeout } from '../lib/timeout.ts';
import { type Check, type CheckResult, resultsFor } from './check.ts';

export interface BackupFacts {
  /** Start of the newest backup, or null if there is none. */
  readonly newestMs: number | null;
  /** When the data folder was created; null if unknown. */
  readonly dataSinceMs: number | null;
  readonly nowMs: number;
  readonly maxAgeHours: number;
}

/** Tolerance for small corrections of the clock. */
const AHEAD_MS = 600_000;

/** Start of the newest backup among these file names, or null if there is none. Only verified backups have such names. */
export function newestBackup(names: readonly string[], nowMs: number): number | null {
  const [newest] = newestFirst(names, backupName(nowMs + AHEAD_MS));
  return newest === undefined ? null : timeOfBackup(newest);
}

export function evaluateBackup({ dataSinceMs, maxAgeHours, newestMs, nowMs }: BackupFacts): CheckResult {
  const allowedMs = maxAgeHours * HOUR_MS;
  const remedy = 'sudo edge-health ops list shows its last run; sudo edge-health ops backup_logs makes one now';
  if (newestMs === null) {
    const { note, warning } = resultsFor('backup', { newest: null, age_hours: null });
    return dataSinceMs === null || nowMs - dataSinceMs <= allowedMs ? note('none yet') : warning('none', remedy);
  }
  const ageMs = nowMs - newestMs;
  const newest = isoUtc(newestMs);
  const { ok, warning } = resultsFor('backup', { newest, age_hours: Math.round((10 * ageMs) / HOUR_MS) / 10 });
  const age = `the last one is ${Math.round(Math.max(0, ageMs) / HOUR_MS)} h old`;
  if (ageMs < -AHEAD_MS) return warning(`the last one is from the future, ${newest}`, 'correct the clock, or remove that backup');
  return ageMs <= allowedMs ? ok(age) : warning(`${age}; at most ${maxAgeHours} h are allowed`, remedy);
}

async function readBackups(dataFolder: string): Promise<{ readonly names: readonly string[]; readonly dataSinceMs: number | null }> {
  const names = await readdir(join(dataFolder, 'backups')).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const { birthtimeMs } = await stat(dataFolder);
  return { names, dataSinceMs: birthtimeMs > 0 ? birthtimeMs : null };
}

const TIMEOUT_SECONDS = 5;

export const checkBackups: Check = async ({ config, dataFolder, nowMs, signal }) => {
  if (config.ops.backup_logs === 'off') return [];
  try {
    const { dataSinceMs, names } = await shareWithTimeout(TIMEOUT_SECONDS, `backups ${dataFolder}`, () => readBackups(dataFolder), signal);
    const newestMs = newestBackup(names, nowMs());
    return [evaluateBackup({ newestMs, dataSinceMs, nowMs: nowMs(), maxAgeHours: config.ops.check.backup_max_age_hours })];
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const { note, unknown } = resultsFor('backup');
    if (code === 'ENOENT') return [note(`there is no data folder ${dataFolder} yet`)];
    const remedy = code === 'EACCES' ? "run it as root or as the service's user" : `look at ${dataFolder}`;
    return [unknown(`backups cannot be listed: ${code ?? message}`, remedy)];
  }
};
