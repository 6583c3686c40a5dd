import { readdir, realpath, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { serviceOf } from '../src/client/rest.ts';
import { loadConfig } from '../src/config/load.ts';
import { inspectDatabase } from '../src/store/inspect.ts';
import { takeLock } from '../src/store/lock.ts';
import { wayToPermission } from '../src/system/permission.ts';
import { hasRootRights } from '../src/system/root-helper.ts';
import { findService } from '../src/system/running-service.ts';
import { checkService, samplesSince } from './backup/check-service.ts';
import { DiskSpace, megabytes, NotEnoughSpace } from './backup/disk-space.ts';
import { DATABASE } from './backup/manifest.ts';
import { backupFolder, backupsIn, newestFirst, newestNow, stamp, timeOfBackup } from './backup/names.ts';
import { type CheckedArchive, Damaged, extractArchive, readArchive } from './backup/read-archive.ts';
import { planConfig, planFiles, Refused, restoreConfig, restoreFiles } from './backup/restore-files.ts';
import { type Plan, previewOf, type Restored, reportOf, resultOf } from './backup/restore-report.ts';
import { lockHolders, type Previous, type Rollback, swapDatabase } from './backup/swap-database.ts';
import { type Services, systemdServices } from './backup/units.ts';
import { diskProblem } from './lib/disk-problem.ts';
import { makeFolder } from './lib/folder.ts';
import type { Job, JobArguments, JobContext, JobResult } from './lib/job.ts';
import { lockNamed } from './schedule/job-lock.ts';

/** Left free on the disk when everything is extracted. */
const MARGIN_BYTES = 16e6;
/** How long a service may take from its start until it answers and its storage is ok. */
const START_SECONDS = 90;

/** The restore failed, and everything is as before; otherwise the message lists what is not. */
class RolledBack extends Error {
  override readonly name = 'RolledBack';
}

async function run(context: JobContext, args: JobArguments): Promise<JobResult> {
  const { configFile, environment } = context;
  const { options, positionals } = args;
  try {
    if (options['list'] === true) return await list(context);
    if (typeof options['extract'] === 'string')
      return await extract(context, await chooseArchive(context, positionals[0]), resolve(options['extract']));
    const services = await systemdServices(configFile, environment);
    if (services.running.length > 0 && options['yes'] === true && !hasRootRights(environment))
      throw new Refused('it has to stop systemd units, which needs root: sudo edge-health ops restore_backup …');
    return await runRestore(context, args, services);
  } catch (error) {
    return failed(error as Error, context);
  }
}

/** As `run`, with services that a test provides. */
export async function runRestore(context: JobContext, { options, positionals }: JobArguments, services: Services): Promise<JobResult> {
  const { dataFolder, rest, nowMs, signal } = context;
  const lock = lockNamed(dataFolder, 'restore_backup');
  if (!lock) throw new Refused('another restore_backup is running; wait until it has finished');
  try {
    const archive = await chooseArchive(context, positionals[0]);
    const choice = { configToo: options['config-too'] === true, overwrite: options['overwrite'] === true };
    const plan = await planRestore(context, archive, choice);
    if (options['yes'] !== true || options['dry-run'] === true) {
      const { database, made } = plan.checked.manifest;
      const newerSamples = database ? await samplesSince(rest, made, { dataFolder, nowMs: nowMs(), signal }) : 0;
      return previewOf(plan, services.running, newerSamples);
    }
    const backupLock = lockNamed(dataFolder, 'backup_logs');
    if (!backupLock) throw new Refused('a backup is being made; wait until it has finished');
    try {
      return reportOf(plan, services.running, await restore(context, plan, services));
    } finally {
      backupLock.release();
    }
  } finally {
    await rm(stagingFolder(dataFolder), { recursive: true, force: true });
    lock.release();
  }
}

/** The archive by its path, by its name in the folder of backups, or the newest there. */
async function chooseArchive({ dataFolder, nowMs }: JobContext, name = 'latest'): Promise<string> {
  const folder = backupFolder(dataFolder);
  if (name === 'latest') {
    const [newest] = newestFirst(await backupsIn(folder), newestNow(nowMs()));
    if (newest === undefined) throw new Refused(`there is no backup in ${folder}; name a file, or make one: edge-health ops backup_logs`);
    return join(folder, newest);
  }
  for (const path of [resolve(name), join(folder, name)]) {
    const found = await realpath(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EACCES') throw new Refused(`no permission for ${path}; ${wayToPermission('run it with sudo')}`);
      return null;
    });
    if (found !== null && (await stat(found)).isFile()) return found;
  }
  throw new Refused(`there is no backup ${name}; see: edge-health ops restore_backup --list`);
}

export interface RestoreChoice {
  readonly configToo: boolean;
  /** Whether collected files of the backup replace those that differ. */
  readonly overwrite: boolean;
}

const isCollected = (path: string): boolean => /^(metrics|alerts|logs)\//.test(path);
const isConfig = (path: string): boolean => path.startsWith('config/');
const stagingFolder = (dataFolder: string): string => join(dataFolder, 'restore.partial');

/** Verifies a backup, extracts it beside the data, and finds out what it would change. Nothing that is in use is touched. */
export async function planRestore(context: JobContext, archive: string, { configToo, overwrite }: RestoreChoice): Promise<Plan> {
  const { dataFolder, progress, signal } = context;
  progress('restore: checking the archive');
  const checked = await readArchive(archive, { signal });
  const includes = (path: string): boolean => path === DATABASE || isCollected(path) || (configToo && isConfig(path));

  const staging = stagingFolder(dataFolder);
  await makeFolder(dataFolder);
  await rm(staging, { recursive: true, force: true });
  const bytes = checked.manifest.files.reduce((sum, { path, size }) => (includes(path) ? sum + size : sum), 0);
  await new DiskSpace(dataFolder, MARGIN_BYTES).require(bytes).catch((error: Error) => {
    if (!(error instanceof NotEnoughSpace)) throw error;
    throw new Refused(`not enough disk space to extract ${megabytes(bytes)} in ${dataFolder}; remove what is not needed there`);
  });
  await makeFolder(staging);
  progress('restore: extracting');
  await extractArchive(archive, checked, { folder: staging, includes, signal });
  checkDatabase(join(staging, DATABASE), checked);

  const configFiles = checked.manifest.files.filter(({ path }) => isConfig(path));
  const config = configToo ? await planConfig(context, staging, configFiles) : null;
  const collected = { files: checked.manifest.files.filter(({ path }) => isCollected(path)), from: staging, dataFolder, overwrite };
  const files = [...(await planFiles(collected)), ...(config?.actions ?? [])];
  const warnings = [...warningsOf(checked, context), ...(config?.warnings ?? [])];
  return { archive, checked, staging, collected, config, files, warnings };
}

function checkDatabase(path: string, { manifest: { database } }: CheckedArchive): void {
  if (!database) return;
  try {
    const { episodes, nodes } = inspectDatabase(path, { thorough: true });
    const samples = nodes.reduce((sum, node) => sum + node.samples, 0);
    if (samples !== database.samples || episodes !== database.episodes)
      throw new Error(`it has ${samples} samples and ${episodes} episodes, not ${database.samples} and ${database.episodes}`);
  } catch (error) {
    throw new Damaged(`the database of the backup cannot be used: ${(error as Error).message}`);
  }
}

function warningsOf({ manifest }: CheckedArchive, { nowMs }: JobContext): string[] {
  const warnings: string[] = [];
  if (manifest.host !== hostname()) warnings.push(`it is of another machine: ${manifest.host}, while this is ${hostname()}`);
  if (Date.parse(manifest.made) > nowMs()) warnings.push('it was made in the future: the clock is wrong, or was wrong then');
  if (!manifest.database) warnings.push(`it has no database (${manifest.database_missing}): the current one stays`);
  return warnings;
}

/**
 * Restores an extracted backup: stops the services, swaps the files, starts what ran before, and checks it. When anything fails, everything is
 * undone and started again, and RolledBack gives the reason. From the stop on no signal ends it: half a restore is worse than a late one.
 */
export async function restore(
  context: JobContext,
  plan: Plan,
  services: Services,
  onStep: (step: string) => void = () => undefined,
): Promise<Restored> {
  const { dataFolder, nowMs, progress } = context;
  const { config, staging } = plan;
  const { database } = plan.checked.manifest;
  const units = services.running.join(', ');
  const time = await freeStamp(context);
  const rollback: Rollback = [];
  const removeStaging = (): Promise<void> => rm(staging, { recursive: true, force: true });
  let lock: { close(): void } | null = null;
  let isStarted = false;
  try {
    if (units !== '') progress(`restore: stopping ${units}`);
    await services.stop();
    lock = await lockDataFolder(dataFolder);

    progress('restore: swapping the files');
    let previous: Previous | null = null;
    if (database) {
      const { runtimeFolders } = services;
      previous = await swapDatabase({ dataFolder, restored: join(staging, DATABASE), runtimeFolders, stamp: time, onStep }, rollback);
    }
    const files = await restoreFiles(plan.collected, time, rollback);
    const previousConfig = config ? await restoreConfig(context, config, time, rollback) : null;
    lock.close();
    lock = null;

    let samplesFound: number | null = null;
    if (units !== '') {
      progress(`restore: starting ${units}`);
      isStarted = true;
      await services.start();
      const options = { nowMs: nowMs(), seconds: START_SECONDS, signal: new AbortController().signal };
      if (database) samplesFound = (await checkService(clientNow(context, config !== null), database, options)).samples;
    }
    await removeStaging();
    return { previous, previousConfig, files: [...files, ...(config?.actions ?? [])], samplesFound };
  } catch (error) {
    const { message } = error as Error;
    try {
      if (isStarted) await services.stop();
      for (const undo of rollback) await undo();
      lock?.close();
      if (units !== '') await services.start();
      await removeStaging();
    } catch (worse) {
      throw new RolledBack(
        `${message}; and the rollback failed: ${(worse as Error).message}. The previous database is ${dataFolder}/edge-health.db, or beside it with .previous-${time} in its name`,
      );
    }
    throw error instanceof Refused ? error : new RolledBack(`${message}; everything is as it was before`);
  }
}

/** The time for the names of what is kept, with a number where such names exist already. */
async function freeStamp({ configFile, dataFolder, nowMs }: JobContext): Promise<string> {
  const folders = [dataFolder, dirname(configFile), ...['metrics', 'alerts', 'logs'].map((name) => join(dataFolder, name))];
  const names = (await Promise.all(folders.map((folder) => readdir(folder).catch(() => [])))).flat();
  const now = stamp(nowMs());
  let time = now;
  for (let n = 2; names.some((name) => name.includes(`-${time}`)); n += 1) time = `${now}-${n}`;
  return time;
}

/** Takes the data folder from every service until the lock is closed. */
async function lockDataFolder(dataFolder: string): Promise<{ close(): void }> {
  const file = join(dataFolder, 'lock');
  const lock = takeLock(file);
  if (lock) return lock;
  const pids = await lockHolders(file);
  const holder = pids.length === 0 ? 'a service' : `process ${pids.join(', ')}`;
  const kill = pids.length === 0 ? '' : `, or: kill ${pids.join(' ')}`;
  throw new Refused(`${holder} is using ${dataFolder}; stop it (Ctrl-C where it was started${kill}), then restore`);
}

/** The restored configuration may have another port or token. */
function clientNow({ configFile, environment, rest }: JobContext, isRestored: boolean): JobContext['rest'] {
  const loaded = isRestored ? loadConfig(configFile) : null;
  return loaded?.ok ? serviceOf(loaded.config.rest, null, () => findService(configFile, environment)?.url ?? null) : rest;
}

async function list({ dataFolder, nowMs }: JobContext): Promise<JobResult> {
  const folder = backupFolder(dataFolder);
  const names = newestFirst(await backupsIn(folder), newestNow(nowMs()));
  if (names.length === 0)
    return resultOf('WARNING', [`there is no backup in ${folder}; make one: edge-health ops backup_logs`], { backups: [] });
  const backups = [];
  for (const name of names) {
    const { size } = await stat(join(folder, name));
    backups.push({ name, made: new Date(timeOfBackup(name) as number).toISOString(), size_bytes: size });
  }
  const lines = backups.map(
    ({ made, name, size_bytes }) => `${name}  ${made.slice(0, 16).replace('T', ' ')} UTC  ${megabytes(size_bytes)}`,
  );
  return resultOf('OK', [`${names.length} in ${folder}, newest first:`, ...lines], { folder, backups });
}

async function extract({ signal }: JobContext, archive: string, folder: string): Promise<JobResult> {
  const made = await makeFolder(folder);
  if ((await readdir(folder)).length > 0) throw new Refused(`${folder} is not empty; name an empty or a new folder`);
  const checked = await readArchive(archive, { signal });
  try {
    await extractArchive(archive, checked, { folder, signal });
  } catch (error) {
    for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true, force: true });
    if (made !== null) await rm(made, { recursive: true, force: true });
    throw error;
  }
  const text = `restore: ${basename(archive)} is intact, and extracted to ${folder}`;
  return resultOf('OK', [text], { archive, folder, manifest: checked.manifest });
}

/** A refusal changed nothing. Nor did a run that was ended by a signal, which is obeyed only until something is changed. */
function failed(error: Error, { dataFolder, signal }: JobContext): JobResult {
  const isExpected = [Refused, Damaged, RolledBack].some((kind) => error instanceof kind);
  const isStopped = signal.aborted && !isExpected;
  const problem = isStopped
    ? `${(signal.reason as Error).message} before anything was changed`
    : isExpected
      ? error.message
      : diskProblem(error, dataFolder);
  if (problem === null) throw error;
  return resultOf('CRITICAL', [`restore: not done: ${problem}`], { done: false, error: problem });
}

export const restoreBackup: Job = {
  name: 'restore_backup',
  summary: 'Restores a backup: verifies it, stops the service, swaps the files, starts it and checks it',
  usage: 'restore_backup [FILE|latest] [--yes] [--overwrite] [--config-too] | --extract DIR | --list',
  help: `Without --yes it verifies the backup and shows what it would do. The current database is kept under another name, never removed; files of
metrics, alerts and logs that are missing here are added. On an appliance run it as root, which stops and starts the units.

  FILE            a path, or a name that --list shows; the newest by default
  --list          lists the backups
  --yes           restores
  --dry-run       only shows what it would do, as without --yes
  --overwrite     replaces files of metrics, alerts and logs that differ (the current ones are kept under other names)
  --config-too    restores the configuration files and shutdown.d as well (the current ones are kept in another folder), with the current
                  secrets; without --yes, shows what would change in them
  --extract DIR   only extracts everything into a folder
`,
  options: {
    list: { type: 'boolean' },
    yes: { type: 'boolean' },
    'dry-run': { type: 'boolean' },
    overwrite: { type: 'boolean' },
    'config-too': { type: 'boolean' },
    extract: { type: 'string' },
  },
  positionals: 1,
  run,
};
