import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../../src/system/data-folder.ts';

/** The folder of the scheduler's state and of the locks; it is made when it is missing. */
export function opsFolder(dataFolder: string): string {
  const folder = join(dataFolder, 'ops');
  if (!fs.existsSync(folder)) makeFolder(folder, 0o750);
  return folder;
}

/**
 * Where the state lies that changes all the time: in memory (tmpfs) where there is any, since it would wear out flash. systemd has a folder
 * for it; a checkout gets a private one in /dev/shm that is named after its data folder.
 */
export function liveFolder(dataFolder: string, environment: NodeJS.ProcessEnv): string {
  const runtime = environment['RUNTIME_DIRECTORY']?.split(':')[0];
  if (runtime) return runtime;
  const name = createHash('sha256').update(fs.realpathSync(dataFolder)).digest('hex').slice(0, 16);
  const inMemory = `/dev/shm/edge-health-ops-${process.getuid?.() ?? 0}-${name}`;
  try {
    fs.mkdirSync(inMemory, { mode: 0o700, recursive: true });
    const stats = fs.lstatSync(inMemory);
    // Anybody can make folders in /dev/shm: one that is not ours alone is not used.
    if (stats.isDirectory() && stats.uid === process.getuid?.() && (stats.mode & 0o077) === 0) return inMemory;
  } catch {
    // No tmpfs here, or somebody else's folder in our place.
  }
  const onDisk = join(opsFolder(dataFolder), 'state');
  makeFolder(onDisk, 0o750);
  return onDisk;
}

/** Replaces a small file, or leaves the old one, whatever happens meanwhile. */
export function replaceFile(file: string, text: string): void {
  const temporary = `${file}.new`;
  try {
    fs.writeFileSync(temporary, text, { mode: 0o640 });
    fs.renameSync(temporary, file);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
}
