import { serviceOf } from '../../src/client/rest.ts';
import { localService } from '../../src/client/running-service.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { JobContext } from '../lib/job.ts';

/** The settings that SIGHUP replaces: the current configuration, and the client of the service that it names. */
export type Settings = Pick<JobContext, 'config' | 'rest'>;

/** Reads the configuration again. If it has errors, logs them and returns null; the current one stays in force. */
export function reloadSettings(
  { config: former, rest: formerRest }: Settings,
  { configFile, environment, log, url }: Pick<JobContext, 'configFile' | 'environment' | 'log'> & { readonly url: string | null },
): Settings | null {
  const loaded = loadConfig(configFile);
  if (!loaded.ok) {
    const errors = loaded.errors.length;
    // One reload reloads service and scheduler; the service lists the errors.
    log('error', 'not reloaded: the running configuration stays in force; see: edge-health check-config', { file: configFile, errors });
    return null;
  }
  const { config } = loaded;
  if (config.storage.path !== former.storage.path) log('warning', 'storage.path changes with a restart: systemctl restart edge-health-ops');
  try {
    return { config, rest: serviceOf(config.rest, url ?? localService(configFile, environment)) };
  } catch (error) {
    log('error', 'rest.token_file not readable; previous token kept', { error: (error as Error).message });
    return { config, rest: formerRest };
  }
}
