import { rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { inspectDatabase } from '../../src/client/inspect-database.ts';
import { DiskSpace, megabytes } from '../backup/disk-space.ts';
import { DATABASE, type Manifest } from '../backup/manifest.ts';
import { type CheckedArchive, Damaged, extractArchive, readArchive } from '../backup/read-archive.ts';
import { makeFolder } from '../lib/files.ts';
import type { JobContext } from '../lib/job.ts';
import { type ConfigPlan, planConfig } from './restore-config.ts';
import { type CollectedFiles, type FileAction, planFiles, Refused } from './restore-files.ts';

/** A verified backup, extracted beside the data, and the effects of restoring it. */
export interface Plan {
  readonly archive: string;
  readonly checked: CheckedArchive;
  readonly staging: string;
  readonly collected: CollectedFiles;
  /** Null if the configuration stays unchanged. */
  readonly config: ConfigPlan | null;
  readonly files: readonly FileAction[];
  /** Warnings for the operator before the restore. */
  readonly warnings: readonly string[];
}

/** Space to leave free on the disk after the extraction. */
const MARGIN_BYTES = 16e6;

const isCollected = (path: string): boolean => /^(metrics|alerts|logs)\//.test(path);
const isConfig = (path: string): boolean => path.startsWith('config/');
export const stagingFolder = (dataFolder: string): string => join(dataFolder, 'restore.partial');

/** Verifies a backup, extracts it beside the data, and determines what it would change. Does not touch anything in use. */
export async function planRestore(
  context: JobContext,
  archive: string,
  { configToo, overwrite }: Pick<CollectedFiles, 'overwrite'> & { readonly configToo: boolean },
): Promise<Plan> {
  const { dataFolder, progress, signal } = context;
  progress('restore: checking the archive');
  const checked = await readArchive(archive, signal);
  const { database, files } = checked.manifest;
  const includes = (path: string): boolean => path === DATABASE || isCollected(path) || (configToo && isConfig(path));

  const staging = stagingFolder(dataFolder);
  await makeFolder(dataFolder);
  await rm(staging, { recursive: true, force: true });
  const bytes = files.reduce((sum, { path, size }) => (includes(path) ? sum + size : sum), 0);
  if (!(await new DiskSpace(dataFolder, MARGIN_BYTES).has(bytes)))
    throw new Refused(`not enough disk space to extract ${megabytes(bytes)} in ${dataFolder}; remove what is not needed there`);
  await makeFolder(staging);
  progress('restore: extracting');
  await extractArchive(archive, checked, signal, { folder: staging, includes });
  if (database) checkDatabase(join(staging, DATABASE), database);

  const collected = { files: files.filter(({ path }) => isCollected(path)), from: staging, dataFolder, overwrite };
  const configFiles = files.filter(({ path }) => isConfig(path));
  const config = configToo ? await planConfig(context, staging, configFiles) : null;
  const actions = [...(await planFiles(collected)), ...(config?.actions ?? [])];
  const warnings = [...warningsOf(checked.manifest, context.nowMs()), ...(config?.warnings ?? [])];
  return { archive, checked, staging, collected, config, files: actions, warnings };
}

function checkDatabase(path: string, expected: NonNullable<Manifest['database']>): void {
  try {
    const { episodes, nodes } = inspectDatabase(path, { thorough: true });
    const samples = nodes.reduce((sum, node) => sum + node.samples, 0);
    if (samples !== expected.samples || episodes !== expected.episodes)
      throw new Error(`it has ${samples} samples and ${episodes} episodes, not ${expected.samples} and ${expected.episodes}`);
  } catch (error) {
    throw new Damaged(`the database of the backup cannot be used: ${(error as Error).message}`);
  }
}

function warningsOf({ database, database_missing, host, made }: Manifest, nowMs: number): string[] {
  const warnings: string[] = [];
  if (host !== hostname()) warnings.push(`it is of another machine: ${host}, while this is ${hostname()}`);
  if (Date.parse(made) > nowMs) warnings.push('it was made in the future: the clock is wrong, or was wrong then');
  if (!database) warnings.push(`it has no database (${database_missing}): the current one stays`);
  return warnings;
}
