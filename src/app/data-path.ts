import { resolve } from 'node:path';
import type { Config } from '../config/schema.ts';

/** Where data is kept: the configured folder, else systemd's state directory, else ./data. */
export function dataPath(config: Config, environment: NodeJS.ProcessEnv): string {
  const state = environment['STATE_DIRECTORY']?.split(':')[0];
  return resolve(config.storage.path ?? state ?? 'data');
}
