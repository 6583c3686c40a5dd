import { readdir, realpath, rm, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { permissionRemedy } from '../../src/core/platform/permission.ts';
import { makeFolder } from '../lib/files.ts';
import type { JobContext, JobResult } from '../lib/job.ts';
import { Refused } from '../restore/restore-files.ts';
import { resultOf } from '../restore/restore-report.ts';
import { megabytes } from './disk-space.ts';
import { backupFolder, backupsIn, newestFirst, newestNow, timeOfBackup } from './names.ts';
import { extractArchive, readArchive } from './read-archive.ts';

/** Finds an archive by its path, by its name in the backup folder, or as the newest one there. */
export async function chooseArchive({ dataFolder, nowMs }: JobContext, name = 'latest'): Promise<string> {
  const folder = backupFolder(dataFolder);
  if (name === 'latest') {
    const [newest] = newestFirst(await backupsIn(folder), newestNow(nowMs()));
    if (newest === undefined) throw new Refused(`there is no backup in ${folder}; name a file, or make one: edge-health ops backup_logs`);
    return join(folder, newest);
  }
  // A plain name refers to the backup folder first (--list prints such names), whatever the current directory.
  for (const path of name.includes('/') ? [resolve(name)] : [join(folder, name), resolve(name)]) {
    const found = await realpath(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EACCES' && name.includes('/'))
        throw new Refused(`permission denied: ${path}; ${permissionRemedy('run it with sudo')}`);
      return null;
    });
    if (found !== null && (await stat(found)).isFile()) return found;
  }
  throw new Refused(`there is no backup ${name}; see: edge-health ops restore_backup --list`);
}

export async function listBackups({ dataFolder, nowMs }: JobContext): Promise<JobResult> {
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

/** Extracts everything into an empty or new folder, and leaves no file there on failure. */
export async function extractBackup(context: JobContext, name: string | undefined, folder: string): Promise<JobResult> {
  const { signal } = context;
  const archive = await chooseArchive(context, name);
  const made = await makeFolder(folder);
  if ((await readdir(folder)).length > 0) throw new Refused(`${folder} is not empty; name an empty or a new folder`);
  const checked = await readArchive(archive, signal);
  try {
    await extractArchive(archive, checked, signal, { folder });
  } catch (error) {
    for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true, force: true });
    if (made !== null) await rm(made, { recursive: true, force: true });
    throw error;
  }
  const text = `restore: ${basename(archive)} is intact, and extracted to ${folder}`;
  return resultOf('OK', [text], { archive, folder, manifest: checked.manifest });
}
