import { readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { serviceOf } from '../../src/client/rest.ts';
import { loadConfig } from '../../src/config/load.ts';
import { takeLock } from '../../src/store/lock.ts';
import { tailBesideDatabase, tailInMemory, tailInRuntimeFolder } from '../../src/store/tail-folder.ts';
import { findService } from '../../src/system/running-service.ts';
import type { JobContext } from '../lib/job.ts';
import { checkService } from './check-service.ts';
import { holdersOf } from './holders.ts';
import { DATABASE } from './manifest.ts';
import { stamp } from './names.ts';
import { putConfig } from './put-config.ts';
import { type Placed, putFiles } from './put-files.ts';
import { type Plan, Refused } from './restore-plan.ts';
import { type Swapped, swapDatabase, type Undone } from './swap-database.ts';
import type { Services } from './units.ts';

/** How long a service may take from its start until it answers and its storage is well. */
const START_SECONDS = 90;

export interface Restored {
  readonly swapped: Swapped | null;
  readonly placed: readonly Placed[];
  /** Where files of the configuration went that gave way; null: none did. */
  readonly configAside: string | null;
  /** Samples that the service finds again; null: none was running before, and so none was asked. */
  readonly samplesFound: number | null;
}

export interface RestoreRun {
  readonly overwrite: boolean;
  readonly startSeconds?: number;
  readonly onStep?: (step: string) => void;
}

/** It failed, and everything is as it was before; or what is not. */
export class RolledBack extends Error {
  override readonly name = 'RolledBack';
}

async function takeFolder(dataFolder: string): Promise<{ close(): void }> {
  const file = join(dataFolder, 'lock');
  const lock = takeLock(file);
  if (lock === null) {
    const pids = await holdersOf(file);
    const who = pids.length === 0 ? 'a service' : `process ${pids.join(', ')}`;
    throw new Refused(
      `${who} is using ${dataFolder}; stop it (Ctrl-C where it was started${pids.length > 0 ? `, or: kill ${pids.join(' ')}` : ''}), then restore`,
    );
  }
  return lock;
}

function tailFolders(dataFolder: string, services: Services): string[] {
  const uid = process.getuid?.() ?? 0;
  return [...services.runtimeFolders.map(tailInRuntimeFolder), tailInMemory(dataFolder, uid), tailBesideDatabase(dataFolder)];
}

/** The time, for names of what is set aside; with a number where there are such names already. */
async function freeStamp({ configFile, dataFolder }: JobContext, nowMs: number): Promise<string> {
  const folders = [dataFolder, dirname(configFile), ...['metrics', 'alerts', 'logs'].map((name) => join(dataFolder, name))];
  const names = (await Promise.all(folders.map((folder) => readdir(folder).catch(() => [])))).flat();
  for (let n = 1; ; n += 1) {
    const time = n === 1 ? stamp(nowMs) : `${stamp(nowMs)}-${n}`;
    if (!names.some((name) => name.includes(`set-aside-${time}`))) return time;
  }
}

/**
 * Puts an unpacked backup in the place of what is there: stops, swaps, starts what ran before, and checks. Whatever fails, everything is put
 * back and started again, and RolledBack says why. Once files are being moved it is not ended by a signal: half is worse than late.
 */
export async function restore(context: JobContext, plan: Plan, services: Services, run: RestoreRun): Promise<Restored> {
  const { dataFolder, nowMs, progress } = context;
  const { config, merged, staging } = plan;
  const { database } = plan.checked.manifest;
  const time = await freeStamp(context, nowMs());
  const undone: Undone = [];
  let lock: { close(): void } | null = null;
  let isStarted = false;
  try {
    if (services.running.length > 0) progress(`restore: stopping ${services.running.join(', ')}`);
    await services.stop();
    lock = await takeFolder(dataFolder);
    progress('restore: putting files in place');
    let swapped: Swapped | null = null;
    if (database) {
      const tails = tailFolders(dataFolder, services);
      const { onStep } = run;
      const swap = { dataFolder, restored: join(staging, DATABASE), tailFolders: tails, stamp: time, ...(onStep ? { onStep } : {}) };
      swapped = await swapDatabase(swap, undone);
    }
    const placeOf = (path: string): string => join(dataFolder, path);
    const asideOf = (path: string): string => join(dataFolder, `${path}.set-aside-${time}`);
    const placed = await putFiles({ from: staging, files: merged, placeOf, asideOf, replaces: run.overwrite }, undone);
    const configAside = config ? await putConfig(context, config, time, undone) : null;
    placed.push(...(config?.fates ?? []));
    lock.close();
    lock = null;
    let samplesFound: number | null = null;
    if (services.running.length > 0) {
      progress(`restore: starting ${services.running.join(', ')}`);
      isStarted = true;
      await services.start();
      if (database) {
        const never = new AbortController().signal;
        const options = { nowMs: nowMs(), seconds: run.startSeconds ?? START_SECONDS, signal: never };
        samplesFound = (await checkService(restNow(context, config !== null), database, options)).samples;
      }
    }
    await rm(staging, { recursive: true, force: true });
    return { swapped, placed, configAside, samplesFound };
  } catch (error) {
    const problem = await putBack(error as Error);
    throw problem;
  }

  async function putBack(error: Error): Promise<Error> {
    const steps: (() => Promise<unknown>)[] = [];
    if (isStarted) steps.push(() => services.stop());
    steps.push(...undone);
    steps.push(async () => lock?.close());
    if (services.running.length > 0) steps.push(() => services.start());
    steps.push(() => rm(staging, { recursive: true, force: true }));
    try {
      for (const step of steps) await step();
    } catch (worse) {
      return new RolledBack(
        `${error.message}; and putting back what was failed as well: ${(worse as Error).message}. The database of before is ${dataFolder}/edge-health.db, or beside it with .set-aside-${time} in its name`,
      );
    }
    return error instanceof Refused ? error : new RolledBack(`${error.message}; everything is as it was before`);
  }
}

/** The service may have another port or token with the restored configuration. */
function restNow({ configFile, environment, rest }: JobContext, isRestored: boolean): JobContext['rest'] {
  const loaded = isRestored ? loadConfig(configFile) : null;
  return loaded?.ok ? serviceOf(loaded.config.rest, null, () => findService(configFile, environment)?.url ?? null) : rest;
}
