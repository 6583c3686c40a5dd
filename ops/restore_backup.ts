import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { hasRootRights } from '../src/client/root-helper.ts';
import { chooseArchive, extractBackup, listBackups } from './backup/archives.ts';
import { DATABASE } from './backup/manifest.ts';
import type { Job, JobArguments, JobContext, JobResult } from './lib/job.ts';
import { checkService, samplesSince } from './restore/check-service.ts';
import { restClientNow, restoreConfig } from './restore/restore-config.ts';
import { freeStamp, Refused, type Rollback, restoreFiles, rollBack } from './restore/restore-files.ts';
import { type Plan, planRestore, stagingFolder } from './restore/restore-plan.ts';
import { failureOf, previewOf, type Restored, reportOf } from './restore/restore-report.ts';
import { swapDatabase } from './restore/swap-database.ts';
import { lockDataFolder, type Services, systemdServices } from './restore/units.ts';
import { lockNamed } from './schedule/job-lock.ts';

export const restoreBackup: Job = {
  name: 'restore_backup',
  summary: 'Restore a backup: verify it, stop the service, swap the files, start and check the service',
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
  run: (context, args) => runCommand(context, args).catch((error: Error) => failureOf(error, context)),
};

async function runCommand(context: JobContext, args: JobArguments): Promise<JobResult> {
  const { environment } = context;
  const { extract, list, yes } = args.options;
  if (list === true) return listBackups(context);
  if (typeof extract === 'string') return extractBackup(context, args.positionals[0], resolve(extract));
  const services = await systemdServices(context.configFile, environment);
  if (services.running.length > 0 && yes === true && !hasRootRights(environment))
    throw new Refused('stopping systemd units needs root; run: sudo edge-health ops restore_backup …');
  return runRestore(context, args, services);
}

/** Verifies a backup and shows what restoring it would change, or restores it. */
export function runRestore(context: JobContext, { options, positionals }: JobArguments, services: Services): Promise<JobResult> {
  const { dataFolder } = context;
  return withLock(dataFolder, 'restore_backup', 'another restore_backup is running; wait until it has finished', async () => {
    try {
      const archive = await chooseArchive(context, positionals[0]);
      const choice = { configToo: options['config-too'] === true, overwrite: options['overwrite'] === true };
      const plan = await planRestore(context, archive, choice);
      if (options['yes'] !== true || options['dry-run'] === true)
        return previewOf(plan, services.running, await samplesSince(plan.checked.manifest, context));
      const restored = await withLock(dataFolder, 'backup_logs', 'a backup is being made; wait until it has finished', () =>
        restore(context, plan, services),
      );
      return reportOf(plan, services.running, restored);
    } finally {
      await rm(stagingFolder(dataFolder), { recursive: true, force: true });
    }
  });
}

async function withLock<T>(dataFolder: string, job: string, refusal: string, work: () => Promise<T>): Promise<T> {
  const lock = lockNamed(dataFolder, job);
  if (!lock) throw new Refused(refusal);
  return work().finally(() => lock.release());
}

/**
 * Stops the services, swaps the files, starts the services that ran before, and checks the result. On any failure, undoes everything and
 * starts the services again. Once the services are stopped, signals no longer end it: a late restore is better than half a restore.
 */
export async function restore(context: JobContext, plan: Plan, services: Services, onStep?: (step: string) => void): Promise<Restored> {
  const { dataFolder, nowMs, progress } = context;
  const { collected, config, staging } = plan;
  const { database } = plan.checked.manifest;
  const { running, runtimeFolders } = services;
  const time = await freeStamp(context);
  const rollback: Rollback = [];
  try {
    if (running.length > 0) progress(`restore: stopping ${running.join(', ')}`);
    rollback.unshift(() => services.start());
    await services.stop();
    const lock = await lockDataFolder(dataFolder);
    rollback.unshift(async () => lock.isOpen && lock.close());

    progress('restore: swapping the files');
    const restored = join(staging, DATABASE);
    const previous = database && (await swapDatabase({ dataFolder, restored, runtimeFolders, stamp: time, onStep }, rollback));
    const files = [...(await restoreFiles(collected, time, rollback)), ...(config?.actions ?? [])];
    const previousConfig = config && (await restoreConfig(context, config, time, rollback));
    lock.close();
    if (running.length === 0) return { previous, previousConfig, files, samplesFound: null };

    progress(`restore: starting ${running.join(', ')}`);
    rollback.unshift(() => services.stop());
    await services.start();
    const rest = config ? restClientNow(context) : context.rest;
    const samplesFound = database && (await checkService(rest, database, { nowMs: nowMs() })).samples;
    return { previous, previousConfig, files, samplesFound };
  } catch (error) {
    const previous = `${dataFolder}/edge-health.db, or beside it with .previous-${time} in its name`;
    throw await rollBack(rollback, error as Error, previous);
  }
}
