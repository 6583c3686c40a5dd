import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StatusDocument } from '../../src/client/documents.ts';
import { RestClient } from '../../src/client/rest.ts';
import { DEFAULT_CONFIG } from '../../src/config/schema.ts';
import type { Cleanup } from '../../testkit/cleanup.ts';
import { ROOT } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';
import { THRESHOLD } from './alert-load.ts';
import type { SoakNetwork } from './network.ts';
import type { SoakOptions } from './options.ts';

export const NODE = DEFAULT_CONFIG.node_name;

const START_SECONDS = 60;
/** The load raises temperature alerts; other alerts should not be raised on a busy machine. */
const UNREACHED = { warning: 99.8, critical: 100 };

export interface SoakService {
  readonly child: ChildProcess;
  readonly rest: RestClient;
  readonly configFile: string;
  readonly status: StatusDocument;
}

export interface SoakServiceOptions {
  readonly options: SoakOptions;
  readonly network: SoakNetwork;
  readonly cleanup: Cleanup;
  readonly dataFolder: string;
  readonly maxMegabytes: number;
  /** Root of a sysfs tree; see AlertLoad. */
  readonly sysRoot: string;
}

/** Thrown when the soak cannot run here; the message gives the reason. */
export class CannotRun extends Error {
  override readonly name = 'CannotRun';
}

/** Starts the service of this checkout in the same way as a user, and waits until it is on the ROS 2 graph. Throws CannotRun. */
export async function startService(setup: SoakServiceOptions): Promise<SoakService> {
  const { cleanup, dataFolder, maxMegabytes, network, options, sysRoot } = setup;
  const runtime = join(cleanup.folderInMemory(), 'run');
  mkdirSync(runtime);
  const config = {
    publish_frequency: options.hertz,
    thresholds: { cpu: UNREACHED, memory: UNREACHED, disk: UNREACHED, temperature: THRESHOLD },
    alerts: { raise_after_seconds: 1, clear_after_seconds: 1 },
    storage: { path: dataFolder, max_megabytes: maxMegabytes },
    rest: { host: '127.0.0.1', port: 0 },
    ros: { transport: options.transport, domain_id: network.domainId, discovery_range: network.discoveryRange, static_peers: [] },
  };
  const configFile = join(runtime, 'edge_health_config.yaml');
  writeFileSync(configFile, JSON.stringify(config)); // JSON is valid YAML.
  const logFile = join(options.folder, 'service.log');
  const child = cleanup.own(
    spawn(join(ROOT, 'bin/edge-health'), ['run', '--config', configFile, '--sys', sysRoot], {
      stdio: ['ignore', 'ignore', openSync(logFile, 'w')],
      // As under systemd, the spool is in memory. Shared memory of Fast DDS would reach other networks.
      env: { FASTDDS_BUILTIN_TRANSPORTS: 'UDPv4', ...process.env, NODE_OPTIONS: '', RUNTIME_DIRECTORY: runtime, NOTIFY_SOCKET: '' },
      detached: true,
    }),
  );
  const log = (): string => readFileSync(logFile, 'utf8');
  const started = async <T>(what: string, ask: () => T | Promise<T>) =>
    until(
      what,
      () => {
        if (child.exitCode !== null) throw new Error('the service has ended');
        return ask();
      },
      { seconds: START_SECONDS },
    ).catch((error: Error) => {
      throw new CannotRun(`the service did not start: ${error.message}\n${log().slice(-3000)}`);
    });
  const url = await started('its REST API', () => /dashboard: (http:\/\/[^/]+:\d+)\//.exec(log())?.[1]);
  const rest = new RestClient({ base: url, token: null });
  const status = await started('its ROS 2 transport', async () => {
    const answer = await rest.json<StatusDocument>('/status').catch(() => null); // Failed requests are repeated until the timeout.
    return answer?.ros.reason === 'not decided yet' ? null : answer;
  });
  const { reason, transport } = status.ros;
  if (transport !== options.transport)
    throw new CannotRun(`the service is not on the graph by ${options.transport}, but ${transport}: ${reason}`);
  return { child, rest, configFile, status };
}
