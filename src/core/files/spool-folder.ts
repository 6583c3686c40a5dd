import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { shortName } from './runtime-folder.ts';

/** The spool's folder in a runtime directory of systemd. */
export function spoolInRuntimeFolder(runtimeFolder: string): string {
  return join(runtimeFolder, 'spool');
}

/** The spool's folder on tmpfs, unique to a data folder and a user. */
export function spoolInMemory(dataPath: string, uid: number): string {
  return `/dev/shm/edge-health-${uid}-${shortName(realpathSync(dataPath))}`;
}

/** The spool's folder on machines without tmpfs. */
export function spoolBesideDatabase(dataPath: string): string {
  return join(dataPath, 'spool');
}
