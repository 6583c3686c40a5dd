import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Config } from '../config/schema.ts';
import { type Installation, PACKAGE_DATA } from './installation.ts';

const PACKAGE_CONFIG = '/etc/edge-health/';

/**
 * Where data is kept: the configured folder, else systemd's state directory, else the installation's. It does not depend on the working
 * directory, so that the units and a person mean the same folder.
 */
export function dataPath(
  { storage }: Config,
  configFile: string,
  environment: NodeJS.ProcessEnv,
  { dataFolder, folder }: Pick<Installation, 'dataFolder' | 'folder'>,
): string {
  const state = environment['STATE_DIRECTORY']?.split(':')[0];
  const base = resolve(configFile).startsWith(PACKAGE_CONFIG) ? PACKAGE_DATA : state || folder;
  return storage.path === null ? resolve(state || dataFolder) : resolve(base, storage.path);
}

/** Why nothing can be written there, and what to do; null: it can, or what is wrong is another thing that the store will tell. */
export function dataPathProblem(path: string, environment: NodeJS.ProcessEnv): string | null {
  let existing = path;
  while (!existsSync(existing) && existing !== dirname(existing)) existing = dirname(existing);
  try {
    accessSync(existing, constants.W_OK);
    return null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A read-only view of a disk that is writable for others: the sandbox of a unit.
    if (code === 'EROFS' && environment['STATE_DIRECTORY'] !== undefined)
      return `the unit may not write to ${existing}: systemctl edit the unit, and add under [Service] the line ReadWritePaths=${existing}`;
    return code === 'EACCES' ? `user ${process.geteuid?.() ?? ''} may not write to ${existing}; give it to that user` : null;
  }
}
