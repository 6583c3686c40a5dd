import { readdir, realpath, rm, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { wayToPermission } from '../src/system/permission.ts';
import { hasRootRights } from '../src/system/root-helper.ts';
import { megabytes } from './backup/disk-space.ts';
import type { DatabaseCounts } from './backup/manifest.ts';
import { backupFolder, backupsIn, newestFirst, newestNow, timeOfBackup } from './backup/names.ts';
import { UnusableConfig } from './backup/put-config.ts';
import type { Fate, Placed } from './backup/put-files.ts';
import { Damaged, extractArchive, readArchive } from './backup/read-archive.ts';
import { type Restored, RolledBack, restore } from './backup/restore.ts';
import { type Plan, planRestore, Refused, samplesSince, stagingFolder } from './backup/restore-plan.ts';
import { type Services, systemdServices } from './backup/units.ts';
import { diskProblem } from './lib/disk-problem.ts';
import { makeFolder } from './lib/folder.ts';
import type { Job, JobArguments, JobContext, JobResult, JobStatus } from './lib/job.ts';
import { lockNamed } from './schedule/job-lock.ts';

function outcome(status: JobStatus, texts: readonly string[], document: object): JobResult {
  const lines = texts.map((text, index) => (index === 0 ? `${status.padEnd(8)}  ${text}` : `          ${text}`));
  return { status, lines, document: { status, text: texts, ...document } };
}

/** The archive that is meant: a path, the name of one in the folder of backups, or the newest there. */
async function archiveOf({ dataFolder, nowMs }: JobContext, given: string): Promise<string> {
  const folder = backupFolder(dataFolder);
  if (given === 'latest') {
    const [newest] = newestFirst(await backupsIn(folder), newestNow(nowMs()));
    if (newest === undefined) throw new Refused(`there is no backup in ${folder}; name a file, or make one: edge-health ops backup_logs`);
    return join(folder, newest);
  }
  for (const path of [resolve(given), join(folder, given)]) {
    const found = await realpath(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EACCES') throw new Refused(`no permission for ${path}; ${wayToPermission('run it with sudo')}`);
      return null;
    });
    if (found !== null && (await stat(found)).isFile()) return found;
  }
  throw new Refused(`there is no backup ${given}; see: edge-health ops restore_backup --list`);
}

async function list({ dataFolder, nowMs }: JobContext): Promise<JobResult> {
  const folder = backupFolder(dataFolder);
  const names = newestFirst(await backupsIn(folder), newestNow(nowMs()));
  if (names.length === 0)
    return outcome('WARNING', [`there is no backup in ${folder}; make one: edge-health ops backup_logs`], { backups: [] });
  const backups = [];
  for (const name of names) {
    const { size } = await stat(join(folder, name));
    backups.push({ name, made: new Date(timeOfBackup(name) as number).toISOString(), size_bytes: size });
  }
  const lines = backups.map(
    ({ made, name, size_bytes }) => `${name}  ${made.slice(0, 16).replace('T', ' ')} UTC  ${megabytes(size_bytes)}`,
  );
  return outcome('OK', [`${names.length} in ${folder}, the newest first:`, ...lines], { folder, backups });
}

async function extract(context: JobContext, archive: string, folder: string): Promise<JobResult> {
  const made = await makeFolder(folder);
  if ((await readdir(folder)).length > 0) throw new Refused(`${folder} is not empty; name a folder that is empty or not there yet`);
  const checked = await readArchive(archive, { signal: context.signal });
  try {
    await extractArchive(archive, checked, { folder, signal: context.signal });
  } catch (error) {
    for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true, force: true });
    if (made !== null) await rm(made, { recursive: true, force: true });
    throw error;
  }
  return outcome('OK', [`restore: ${basename(archive)} is whole, and unpacked to ${folder}`], {
    archive,
    folder,
    manifest: checked.manifest,
  });
}

function describe(database: DatabaseCounts): string {
  const { episodes, nodes, samples } = database;
  const times = nodes.flatMap(({ first, last }) => (first !== null && last !== null ? [first, last] : [])).sort();
  const range = times.length > 0 ? ` from ${times[0]} to ${times.at(-1)}` : '';
  return `${samples} samples of ${nodes.length} node${nodes.length === 1 ? '' : 's'}${range}, ${episodes} alert episodes`;
}

const FATES: Readonly<Record<Fate, string>> = {
  added: 'added',
  same: 'the same already',
  kept: 'kept as they are here, as they differ (--overwrite takes those of the backup)',
  replaced: 'replaced, those of now set aside',
};

function describeFiles(fates: readonly Placed[]): string[] {
  return (Object.keys(FATES) as Fate[]).flatMap((fate) => {
    const files = fates.filter((one) => one.fate === fate).map(({ path }) => path);
    const shown = files.length > 6 ? `${files.slice(0, 6).join(', ')} and ${files.length - 6} more` : files.join(', ');
    return files.length === 0 ? [] : [`${files.length} file${files.length === 1 ? '' : 's'} ${FATES[fate]}: ${shown}`];
  });
}

/** What becomes of the configuration that the backup holds. */
function describeConfig({ checked, config }: Plan, isDone: boolean): string[] {
  if (!checked.manifest.files.some(({ path }) => path.startsWith('config/'))) return [];
  if (config === null) return ['the configuration stays as it is here (--config-too takes that of the backup)'];
  if (config.diff === '') return ['the configuration is the same already'];
  return isDone ? [] : ['the configuration would change so:', ...config.diff.trimEnd().split('\n')];
}

async function preview(context: JobContext, plan: Plan, services: Services): Promise<JobResult> {
  const { checked, fates, warnings } = plan;
  const { database, host, made, product_version } = checked.manifest;
  const younger = database ? await samplesSince(context, checked) : 0;
  const aside = `what was recorded since (${younger === null ? 'how much is known once the service answers' : `${younger} samples`}) is set aside with the present database, not lost`;
  const texts = [
    `restore: ${basename(plan.archive)} is whole: made ${made} by version ${product_version} on ${host}, ${checked.manifest.files.length} files`,
    ...warnings.map((warning) => `mind: ${warning}`),
    ...(database ? [`database: ${describe(database)}`, aside] : []),
    ...describeFiles(fates),
    ...describeConfig(plan, false),
    services.running.length > 0
      ? `${services.running.join(' and ')} would be stopped and started again`
      : 'no unit of systemd would be stopped',
    'nothing was changed; add --yes to do it',
  ];
  return outcome(warnings.length > 0 ? 'WARNING' : 'OK', texts, {
    done: false,
    archive: plan.archive,
    manifest: checked.manifest,
    younger_samples: younger,
    files: fates,
    units: services.running,
    warnings,
  });
}

function told(plan: Plan, services: Services, { configAside, placed, samplesFound, swapped }: Restored): JobResult {
  const { database } = plan.checked.manifest;
  const started =
    services.running.length > 0
      ? `${services.running.join(' and ')} run again${samplesFound === null ? '' : `, with storage ok and ${samplesFound} samples found`}`
      : 'start the service as usual: npm start, or systemctl start edge-health edge-health-ops';
  const texts = [
    `restore: ${basename(plan.archive)} is restored`,
    ...(database ? [`database: ${describe(database)}`] : []),
    ...(swapped?.setAside ? [`the database of before: ${swapped.setAside}; remove it when you are sure`] : []),
    ...(swapped?.tailAside ? [`its last samples, which it had not taken in: ${swapped.tailAside}`] : []),
    ...describeFiles(placed),
    ...describeConfig(plan, true),
    ...(configAside ? [`the configuration of before: ${configAside}`] : []),
    started,
  ];
  return outcome('OK', texts, {
    done: true,
    archive: plan.archive,
    manifest: plan.checked.manifest,
    set_aside: swapped?.setAside ?? null,
    tail_set_aside: swapped?.tailAside ?? null,
    config_set_aside: configAside,
    files: placed,
    units: services.running,
    samples_found: samplesFound,
  });
}

/** As `run`, on services that a test brings. */
export async function runRestore(context: JobContext, { options, positionals }: JobArguments, services: Services): Promise<JobResult> {
  const staging = stagingFolder(context.dataFolder);
  const lock = lockNamed(context.dataFolder, 'restore_backup');
  if (!lock) throw new Refused('another restore_backup is running; wait for its end');
  try {
    const overwrite = options['overwrite'] === true;
    const archive = await archiveOf(context, positionals[0] ?? 'latest');
    const plan = await planRestore(context, archive, { configToo: options['config-too'] === true, overwrite });
    if (options['yes'] !== true || options['dry-run'] === true) return await preview(context, plan, services);
    const backing = lockNamed(context.dataFolder, 'backup_logs');
    if (!backing) throw new Refused('a backup is being made; wait for its end');
    try {
      return told(plan, services, await restore(context, plan, services, { overwrite }));
    } finally {
      backing.release();
    }
  } finally {
    await rm(staging, { recursive: true, force: true });
    lock.release();
  }
}

async function run(context: JobContext, given: JobArguments): Promise<JobResult> {
  const { configFile, environment } = context;
  const { options, positionals } = given;
  try {
    if (options['list'] === true) return await list(context);
    if (typeof options['extract'] === 'string')
      return await extract(context, await archiveOf(context, positionals[0] ?? 'latest'), resolve(options['extract']));
    const services = await systemdServices(configFile, environment);
    if (services.running.length > 0 && options['yes'] === true && !hasRootRights(environment))
      throw new Refused('it has to stop units of systemd, which only root may: sudo edge-health ops restore_backup …');
    return await runRestore(context, given, services);
  } catch (error) {
    return failed(error as Error, context);
  }
}

/** A refusal changed nothing; nor did what ended by a signal, which is heeded only until something is changed. */
function failed(error: Error, { dataFolder, signal }: JobContext): JobResult {
  const isForeseen = [Refused, UnusableConfig, Damaged, RolledBack].some((kind) => error instanceof kind);
  const isEnded = signal.aborted && !isForeseen;
  const problem = isEnded
    ? `${(signal.reason as Error).message} before anything was changed`
    : isForeseen
      ? error.message
      : diskProblem(error, dataFolder);
  if (problem === null) throw error;
  return outcome('CRITICAL', [`restore: not done: ${problem}`], { done: false, error: problem });
}

export const restoreBackup: Job = {
  name: 'restore_backup',
  summary: 'Puts a backup back: checks it, stops, restores, starts and checks again',
  usage: 'restore_backup [FILE|latest] [--yes] [--overwrite] [--config-too] | --extract DIR | --list',
  help: `Without --yes it checks the whole backup and only says what it would do. The present database is set aside, never removed; files of metrics,
alerts and logs that are missing here are added. On an appliance run it as root, which stops and starts the units.

  FILE            a path, or a name as --list has it; the newest by default
  --list          which backups there are
  --yes           does it
  --dry-run       only says what it would do, as without --yes
  --overwrite     files of metrics, alerts and logs that differ give way to those of the backup (and are set aside)
  --config-too    the configuration's files and shutdown.d as well (those of now are set aside), with the secrets of now;
                  without --yes, what would change in them is shown
  --extract DIR   only unpacks everything into a folder
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
