import { rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { inspectDatabase } from '../../src/store/inspect.ts';
import { makeFolder } from '../lib/folder.ts';
import type { JobContext } from '../lib/job.ts';
import { samplesOf } from './check-service.ts';
import { DATABASE_FILE } from './database.ts';
import { DiskSpace, megabytes, NotEnoughSpace } from './disk-space.ts';
import { DATABASE, type ManifestFile } from './manifest.ts';
import { type ConfigPlan, planConfig } from './put-config.ts';
import { fatesOf, type Placed } from './put-files.ts';
import { type CheckedArchive as Checked, Damaged, extractArchive, readArchive } from './read-archive.ts';

/** Left free on the disk when everything is unpacked. */
const MARGIN_BYTES = 16e6;
const MERGED = /^(metrics|alerts|logs)\//;
const CONFIG = /^config\//;

export interface RestoreOptions {
  readonly configToo: boolean;
  /** Whether collected files of the same name give way to the backup's. */
  readonly overwrite: boolean;
}

/** A restore that cannot or must not be done; the message says what to do. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/** An archive that was checked to the last bit and unpacked beside the data, and what would become of its files. */
export interface Plan {
  readonly archive: string;
  readonly checked: Checked;
  readonly staging: string;
  readonly merged: readonly ManifestFile[];
  /** Null: the configuration stays. */
  readonly config: ConfigPlan | null;
  readonly fates: readonly Placed[];
  /** What the operator should know before. */
  readonly warnings: readonly string[];
}

export function stagingFolder(dataFolder: string): string {
  return join(dataFolder, 'restore.partial');
}

/** Unpacks a backup beside the data, having checked it, and looks what it would change. Nothing that is in use is touched. */
export async function planRestore(context: JobContext, archive: string, { configToo, overwrite }: RestoreOptions): Promise<Plan> {
  const { dataFolder, progress, signal } = context;
  progress('restore: checking the archive');
  const checked = await readArchive(archive, { signal });
  const { files } = checked.manifest;
  const wanted = files.filter(({ path }) => path === DATABASE || MERGED.test(path) || (configToo && CONFIG.test(path)));
  const staging = stagingFolder(dataFolder);
  await makeFolder(dataFolder);
  await rm(staging, { recursive: true, force: true });
  const bytes = wanted.reduce((sum, { size }) => sum + size, 0);
  await new DiskSpace(dataFolder, MARGIN_BYTES).require(bytes).catch((error: Error) => {
    throw error instanceof NotEnoughSpace
      ? new Refused(`there is no room to unpack ${megabytes(bytes)} in ${dataFolder}; remove what is not needed there`)
      : error;
  });
  await makeFolder(staging);
  progress('restore: unpacking');
  const paths = new Set(wanted.map(({ path }) => path));
  await extractArchive(archive, checked, { folder: staging, wants: (path) => paths.has(path), signal });
  checkDatabase(staging, checked);
  const merged = wanted.filter(({ path }) => MERGED.test(path));
  const inConfig = wanted.filter(({ path }) => CONFIG.test(path));
  const config = configToo ? await planConfig(context, staging, inConfig) : null;
  const placeOf = (path: string): string => join(dataFolder, path);
  const fates = [...(await fatesOf({ from: staging, placeOf, files: merged, replaces: overwrite })), ...(config?.fates ?? [])];
  const warnings = [...warningsOf(checked, context), ...(config?.warnings ?? [])];
  return { archive, checked, staging, merged, config, fates, warnings };
}

function checkDatabase(staging: string, { manifest }: Checked): void {
  if (!manifest.database) return;
  try {
    const facts = inspectDatabase(join(staging, DATABASE), { thorough: true });
    const samples = facts.nodes.reduce((sum, node) => sum + node.samples, 0);
    if (samples !== manifest.database.samples || facts.episodes !== manifest.database.episodes)
      throw new Error(
        `it has ${samples} samples and ${facts.episodes} episodes, not ${manifest.database.samples} and ${manifest.database.episodes}`,
      );
  } catch (error) {
    throw new Damaged(`the database of the backup cannot be used: ${(error as Error).message}`);
  }
}

function warningsOf({ manifest }: Checked, { nowMs }: JobContext): string[] {
  const warnings: string[] = [];
  if (manifest.host !== hostname()) warnings.push(`it is of another machine: ${manifest.host}, while this is ${hostname()}`);
  if (Date.parse(manifest.made) > nowMs()) warnings.push('it was made in the future: this clock or that of then is wrong');
  if (!manifest.database) warnings.push(`it has no database (${manifest.database_missing}): the present one stays`);
  return warnings;
}

/** What was recorded since a backup, and would go aside with the present database; null: nobody can tell without stopping the service. */
export async function samplesSince({ dataFolder, nowMs, rest, signal }: JobContext, { manifest }: Checked): Promise<number | null> {
  const to = new Date(nowMs() + 60_000).toISOString();
  if (Date.parse(manifest.made) >= nowMs()) return null;
  try {
    const { nodes } = await rest.json<{ nodes: { node_name: string }[] }>('/status', { signal });
    let samples = 0;
    for (const { node_name } of nodes) samples += await samplesOf(rest, node_name, manifest.made, to, signal);
    return samples;
  } catch {
    signal.throwIfAborted();
    // The service does not answer, so nobody can count: only where there is no database nothing was recorded.
    return (await stat(join(dataFolder, DATABASE_FILE)).catch(() => null)) === null ? 0 : null;
  }
}
