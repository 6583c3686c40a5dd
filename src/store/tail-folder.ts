import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { shortName } from '../core/short-name.ts';

/** The tail's folder in a runtime directory of systemd's. */
export function tailInRuntimeFolder(runtimeFolder: string): string {
  return join(runtimeFolder, 'tail');
}

/** The tail's folder in tmpfs, for a data folder and the user who runs the service. */
export function tailInMemory(dataPath: string, uid: number): string {
  return `/dev/shm/edge-health-${uid}-${shortName(realpathSync(dataPath))}`;
}

/** The tail's folder where there is no memory for it. */
export function tailBesideDatabase(dataPath: string): string {
  return join(dataPath, 'tail');
}
