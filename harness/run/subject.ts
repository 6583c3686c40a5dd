import * as fs from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { type RestClient, serviceOf } from '../../src/client/rest.ts';
import { localService } from '../../src/client/running-service.ts';
import { configPath, loadConfig } from '../../src/config/load.ts';
import { formatConfigError } from '../../src/config/parse.ts';
import type { Config } from '../../src/config/schema.ts';
import { makeFolder } from '../../src/core/files/data-folder.ts';
import type { Target } from '../record/entries.ts';
import { EXIT, Refusal } from './command.ts';
import { ServiceSupervisor } from './service-supervisor.ts';

export const MAIN_UNIT = 'edge-health.service';

/** The service to observe. */
export interface Subject {
  readonly kind: Target['kind'];
  readonly unit: string | null;
  readonly config: Config;
  readonly rest: RestClient;
  /** The supervisor of a service that the harness starts itself; null for any other service. */
  readonly supervisor: ServiceSupervisor | null;
}

export interface SubjectOptions {
  /** The folder of the run. */
  readonly folder: string;
  readonly url: string | null;
  readonly unit: string | null;
  /** The configuration of the service. */
  readonly config: Config;
  readonly configFile: string;
  readonly isCheckout: boolean;
}

/**
 * Determines the service to observe. Throws Refusal for invalid options. In a checkout, it starts a separate service, or finds it running.
 */
export async function subjectOf(options: SubjectOptions, print: (text: string) => void): Promise<Subject> {
  const { config, configFile, folder, isCheckout, url } = options;
  if (url !== null) return { kind: 'url', unit: null, config, rest: restOf(config, url, configFile), supervisor: null };
  if (options.unit !== null || !isCheckout) {
    return { kind: 'unit', unit: options.unit ?? MAIN_UNIT, config, rest: restOf(config, null, configFile), supervisor: null };
  }
  const supervisor = new ServiceSupervisor(folder);
  const file = join(folder, 'service.yaml');
  let own = fs.existsSync(file) ? loaded(file) : config;
  if (supervisor.running !== null) {
    print(`the service that this run started is still running (supervisor: process ${supervisor.running})`);
  } else {
    own = await ownConfig(own, folder, print);
    makeFolder(folder);
    // JSON is valid YAML.
    fs.writeFileSync(file, `${JSON.stringify(own, null, 2)}\n`);
    supervisor.start(file);
  }
  return { kind: 'started', unit: null, config: own, rest: restOf(own, null, file), supervisor };
}

/** The given file, otherwise that of the unit's role, otherwise the one that the service uses. */
export function configFileOf(given: string | null, unit: string | null): string {
  const role = /^edge-health@(.+?)(?:\.service)?$/.exec(unit ?? '')?.[1];
  const ofRole = role === undefined ? null : `/etc/edge-health/${role}_config.yaml`;
  return configPath(given ?? ofRole);
}

/** Loads a configuration. Throws Refusal if the file has errors. */
export function loaded(file: string): Config {
  const result = loadConfig(file);
  if (result.ok) return result.config;
  throw new Refusal(EXIT.config, `the configuration has errors:\n${result.errors.map(formatConfigError).join('\n')}`);
}

function restOf(config: Config, url: string | null, configFile: string): RestClient {
  if (url !== null && !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new Refusal(EXIT.usage, `--url is "${url}"; allowed: an address such as http://robot-7:5000`);
  try {
    return serviceOf(config.rest, url ?? localService(configFile, process.env));
  } catch (error) {
    throw new Refusal(EXIT.config, `rest.token_file cannot be read: ${(error as Error).message}`);
  }
}

/** The checkout's configuration with a separate data folder, a free port, no notifications and no shutdown of the machine. */
async function ownConfig(config: Config, folder: string, print: (text: string) => void): Promise<Config> {
  const { host, port: wanted } = config.rest;
  const port = (await freePort(host, wanted)) ?? (await freePort(host, 0));
  if (port === null)
    throw new Refusal(EXIT.config, `cannot listen on any port of ${host ?? 'this machine'}; set rest.host in the configuration`);
  if (port !== wanted && wanted !== 0) print(`port ${wanted} is in use: the service of this run uses port ${port}`);
  const { notify } = config.ops;
  return {
    ...config,
    storage: { ...config.storage, path: resolve(folder, 'service') },
    rest: { ...config.rest, port },
    safe_shutdown: { ...config.safe_shutdown, action: 'dry-run' },
    ops: {
      ...config.ops,
      notify: {
        ...notify,
        command: null,
        webhook: { ...notify.webhook, url: null, url_file: null },
        email: { ...notify.email, host: null },
      },
    },
  };
}

/** Returns the port, or any free one for 0; null if it is in use. */
function freePort(host: string | null, port: number): Promise<number | null> {
  return new Promise((found) => {
    const server = createServer();
    server.once('error', () => found(null));
    server.listen({ port, ...(host === null ? {} : { host }) }, () => {
      const address = server.address();
      server.close(() => found(address !== null && typeof address === 'object' ? address.port : null));
    });
  });
}
