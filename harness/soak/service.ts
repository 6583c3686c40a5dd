import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RestClient } from '../../src/client/rest.ts';
import { DEFAULT_CONFIG } from '../../src/config/schema.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import type { Cleanup } from '../../testkit/cleanup.ts';
import { ROOT } from '../../testkit/service/service.ts';
import { THRESHOLD } from './alert-load.ts';
import type { SoakOptions } from './options.ts';
import type { SoakPlace } from './place.ts';

export const NODE = DEFAULT_CONFIG.node_name;
export const LOG_FILE = 'service.log';

const START_SECONDS = 60;
const LOOK_MS = 100;
/** Whatever the machine does beside: only the temperature is meant to raise alerts. */
const HARDLY_EVER = { warning: 99.8, critical: 100 };

export interface SoakedService {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly rest: RestClient;
  /** When its process was started, in seconds of performance.now. */
  readonly bornSeconds: number;
  readonly first: StatusDocument;
}

export interface ServiceSetup {
  readonly options: SoakOptions;
  readonly place: SoakPlace;
  readonly cleanup: Cleanup;
  readonly dataFolder: string;
  readonly sysRoot: string;
}

/** It cannot run here; the message says why. */
export class CannotRun extends Error {
  override readonly name = 'CannotRun';
}

/** The real service of this checkout, started as a user does; resolves once it is on the graph as asked. Throws CannotRun. */
export async function startService({ cleanup, dataFolder, options, place, sysRoot }: ServiceSetup): Promise<SoakedService> {
  mkdirSync(options.folder, { recursive: true });
  const runtime = join(cleanup.folderInMemory(), 'run');
  mkdirSync(runtime);
  const config = {
    publish_frequency: options.hertz,
    thresholds: { cpu: HARDLY_EVER, memory: HARDLY_EVER, disk: HARDLY_EVER, temperature: THRESHOLD },
    alerts: { raise_after_seconds: 1, clear_after_seconds: 1 },
    storage: { path: dataFolder, max_megabytes: options.maxMegabytes },
    rest: { host: '127.0.0.1', port: 0 },
    ros: { transport: options.transport, domain_id: place.domainId, discovery_range: place.discoveryRange, static_peers: [] },
  };
  const configFile = join(runtime, 'edge_health_config.yaml');
  writeFileSync(configFile, JSON.stringify(config)); // JSON is YAML too.
  const logFile = join(options.folder, LOG_FILE);
  const bornSeconds = performance.now() / 1000;
  const child = cleanup.own(
    spawn(join(ROOT, 'bin/edge-health'), ['run', '--config', configFile, '--sys', sysRoot], {
      stdio: ['ignore', 'ignore', openSync(logFile, 'w')],
      // As under systemd, the tail lies in memory. Fast DDS would meet other networks in shared memory.
      env: { FASTDDS_BUILTIN_TRANSPORTS: 'UDPv4', ...process.env, NODE_OPTIONS: '', RUNTIME_DIRECTORY: runtime, NOTIFY_SOCKET: '' },
      // Ctrl-C is for the soak, which ends it.
      detached: true,
    }),
  );
  const log = (): string => readFileSync(logFile, 'utf8');
  const until = async <T>(what: string, look: () => Promise<T | null>): Promise<T> => {
    const deadline = performance.now() + START_SECONDS * 1000;
    for (;;) {
      const found = await look();
      if (found !== null) return found;
      if (child.exitCode !== null || performance.now() > deadline) throw new CannotRun(`the service ${what}:\n${log().slice(-3000)}`);
      await new Promise((later) => setTimeout(later, LOOK_MS));
    }
  };
  const port = await until('does not start', async () => /dashboard: http:\/\/[^/]+:(\d+)\//.exec(log())?.[1] ?? null);
  const rest = new RestClient({ base: `http://127.0.0.1:${port}`, token: null });
  const first = await until('is not on the graph', async () => {
    // Not there yet: asked again until the deadline.
    const status = await rest.json<StatusDocument>('/status').catch(() => null);
    return status === null || status.ros.reason === 'not decided yet' ? null : status;
  });
  const { reason, transport } = first.ros;
  if (transport !== options.transport)
    throw new CannotRun(`the service is not on the graph by ${options.transport}, but ${transport}: ${reason}`);
  return { child, pid: child.pid as number, rest, bornSeconds, first };
}
