import { chmod, link, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncFolder } from '../../src/core/files/atomic-file.ts';
import type { ManifestFile } from '../backup/manifest.ts';
import { stamp } from '../backup/names.ts';
import { FILE_MODE, makeFolder } from '../lib/files.ts';
import type { JobContext } from '../lib/job.ts';

/** A restore that cannot or must not be done; the message gives the reason and the remedy. Nothing was changed. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/** The restore failed, and everything is as before; otherwise the message lists what is not. */
export class RolledBack extends Error {
  override readonly name = 'RolledBack';
}

/** How to undo what was done, the last step first. */
export type Rollback = (() => Promise<unknown>)[];

/** Undoes what was done before an error, and returns the error that says so. */
export async function rollBack(rollback: Rollback, error: Error, previousDatabase: string): Promise<Error> {
  try {
    for (const undo of rollback) await undo();
  } catch (worse) {
    const problem = `${error.message}; and the rollback failed: ${(worse as Error).message}`;
    return new RolledBack(`${problem}. The previous database is ${previousDatabase}`);
  }
  return error instanceof Refused ? error : new RolledBack(`${error.message}; everything is as it was before`);
}

/** A file of a backup is added; is the same already; or differs from the present one, which is kept or replaced. */
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
  /** Whether the file of the backup replaces a present one that differs. */
  readonly overwrite: boolean;
}

/** What would be done with each file. */
export async function planFiles({ dataFolder, files, from, overwrite }: CollectedFiles): Promise<FileAction[]> {
  const actions: FileAction[] = [];
  for (const { path, size } of files) {
    const place = join(dataFolder, path);
    const present = await stat(place).catch(() => null);
    if (!present) actions.push({ path, action: 'added' });
    else if (present.isFile() && present.size === size && (await readFile(place)).equals(await readFile(join(from, path))))
      actions.push({ path, action: 'same' });
    else actions.push({ path, action: overwrite ? 'replaced' : 'kept' });
  }
  return actions;
}

/** Moves files into place, each in one step; a replaced file is kept with `.previous-<time>` in its name. */
export async function restoreFiles(collected: CollectedFiles, time: string, rollback: Rollback): Promise<FileAction[]> {
  const actions = await planFiles(collected); // Once more: files may have changed until the services were stopped.
  for (const { action, path } of actions) {
    if (action === 'same' || action === 'kept') continue;
    const source = join(collected.from, path);
    const place = join(collected.dataFolder, path);
    const previous = `${place}.previous-${time}`;
    await makeFolder(dirname(place));
    await chmod(source, FILE_MODE);
    if (action === 'replaced') {
      await link(place, previous);
      rollback.unshift(() => returnFile(previous, place));
    } else rollback.unshift(() => rm(place, { force: true }));
    await rename(source, place);
    await syncFolder(dirname(place));
  }
  return actions;
}

/** Gives a file its first name back. */
export async function returnFile(previous: string, place: string): Promise<void> {
  await rename(previous, place);
  await rm(previous, { force: true }); // rename leaves both names while they are of one file.
}

/** The time for the names of what is kept, with a number where such names exist already. */
export async function freeStamp({ configFile, dataFolder, nowMs }: JobContext): Promise<string> {
  const folders = [dataFolder, dirname(configFile), ...['metrics', 'alerts', 'logs'].map((name) => join(dataFolder, name))];
  const names = (await Promise.all(folders.map((folder) => readdir(folder).catch(() => [])))).flat();
  const now = stamp(nowMs());
  let time = now;
  for (let n = 2; names.some((name) => name.includes(`-${time}`)); n += 1) time = `${now}-${n}`;
  return time;
}
