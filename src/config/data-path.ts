import { resolve } from 'node:path';
import { type Installation, PACKAGE_CONFIG, PACKAGE_DATA } from '../core/files/installation.ts';
import type { Config } from './schema.ts';

/**
 * The data folder: the configured one, otherwise systemd's state directory, otherwise the installation's. It does not depend on the working
 * directory, so that the units and the commands use the same folder.
 */
export function dataPath(
  { storage }: Config,
  configFile: string,
  environment: NodeJS.ProcessEnv,
  { dataFolder, folder }: Pick<Installation, 'dataFolder' | 'folder'>,
): string {
  const state = environment['STATE_DIRECTORY']?.split(':')[0];
  const base = resolve(configFile).startsWith(`${PACKAGE_CONFIG}/`) ? PACKAGE_DATA : state || folder;
  return storage.path === null ? resolve(state || dataFolder) : resolve(base, storage.path);
}
