import { chmod, link, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncFolder } from '../../src/core/files/atomic-file.ts';
import type { ManifestFile } from '../backup/manifest.ts';
import { stamp } from '../backup/names.ts';
import { FILE_MODE, makeFolder } from '../lib/files.ts';
import type { JobContext } from '../lib/job.ts';

/** A restore that is impossible or not allowed; the message gives the reason and the remedy. Nothing was changed. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/** The restore failed and was rolled back completely; otherwise the message lists what was not. */
export class RolledBack extends Error {
  override readonly name = 'RolledBack';
}

/** Functions that undo the completed steps, the last step first. */
export type Rollback = (() => Promise<unknown>)[];

/** Undoes the steps before an error, and returns an error that describes the outcome. */
export async function rollBack(rollback: Rollback, error: Error, previousDatabase: string): Promise<Error> {
  try {
    for (const undo of rollback) await undo();
  } catch (worse) {
    const problem = `${error.message}; and the rollback failed: ${(worse as Error).message}`;
    return new RolledBack(`${problem}. The previous database is ${previousDatabase}`);
  }
  return error instanceof Refused ? error : new RolledBack(`${error.message}; everything is as it was before`);
}

/** A file of a backup is added, is identical to the current one, or differs from it; then the current one is kept or replaced. */
export type Action = 'added' | 'same' | 'kept' | 'replaced';

export interface FileAction {
  readonly path: string;
  readonly action: Action;
}

/** Metrics, alerts and logs of a backup. */
export interface CollectedFiles {
  readonly files: readonly ManifestFile[];
  /** The folder of the extracted backup. */
  readonly from: string;
  readonly dataFolder: string;
  /** Whether the file of the backup replaces a current one that differs. */
  readonly overwrite: boolean;
}

/** The planned action for each file. */
export async function planFiles({ dataFolder, files, from, overwrite }: CollectedFiles): Promise<FileAction[]> {
  const actions: FileAction[] = [];
  for (const { path, size } of files) {
    const target = join(dataFolder, path);
    const present = await stat(target).catch(() => null);
    if (!present) actions.push({ path, action: 'added' });
    else if (present.isFile() && present.size === size && (await readFile(target)).equals(await readFile(join(from, path))))
      actions.push({ path, action: 'same' });
    else actions.push({ path, action: overwrite ? 'replaced' : 'kept' });
  }
  return actions;
}

/** Moves files to their targets, each atomically. A replaced file is kept with `.previous-<time>` in its name. */
export async function restoreFiles(collected: CollectedFiles, time: string, rollback: Rollback): Promise<FileAction[]> {
  const actions = await planFiles(collected); // Planned again, because files may have changed until the services were stopped.
  for (const { action, path } of actions) {
    if (action === 'same' || action === 'kept') continue;
    const source = join(collected.from, path);
    const target = join(collected.dataFolder, path);
    const previous = `${target}.previous-${time}`;
    await makeFolder(dirname(target));
    await chmod(source, FILE_MODE);
    if (action === 'replaced') {
      await link(target, previous);
      rollback.unshift(() => returnFile(previous, target));
    } else rollback.unshift(() => rm(target, { force: true }));
    await rename(source, target);
    await syncFolder(dirname(target));
  }
  return actions;
}

/** Restores the original name of a file. */
export async function returnFile(previous: string, target: string): Promise<void> {
  await rename(previous, target);
  await rm(previous, { force: true }); // rename leaves both names in place if they refer to the same file.
}

/** The time stamp for the names of kept files, with a number if such names already exist. */
export async function freeStamp({ configFile, dataFolder, nowMs }: JobContext): Promise<string> {
  const folders = [dataFolder, dirname(configFile), ...['metrics', 'alerts', 'logs'].map((name) => join(dataFolder, name))];
  const names = (await Promise.all(folders.map((folder) => readdir(folder).catch(() => [])))).flat();
  const now = stamp(nowMs());
  let time = now;
  for (let n = 2; names.some((name) => name.includes(`-${time}`)); n += 1) time = `${now}-${n}`;
  return time;
}
