import { resolve } from 'node:path';
import type { Config } from '../config/schema.ts';

/** Where data is kept: the configured folder, else systemd's state directory, else the installation's. */
export function dataPath(config: Config, environment: NodeJS.ProcessEnv, standardFolder: string): string {
  const state = environment['STATE_DIRECTORY']?.split(':')[0];
  return resolve(config.storage.path ?? state ?? standardFolder);
}
