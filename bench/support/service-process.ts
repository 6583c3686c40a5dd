import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cleanup } from '../../testkit/cleanup.ts';
import { ROOT } from '../../testkit/service/service.ts';
import { freePort, waitForResponse } from './http.ts';

export interface Server {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly url: string;
  /** From starting the program to its first response. */
  readonly startSeconds: number;
}

export interface RunningService extends Server {
  readonly configFile: string;
  /** Its RUNTIME_DIRECTORY. */
  readonly runtime: string;
}

export interface ServiceSetup {
  /** Data folder; a new one on a disk by default. */
  readonly dataPath?: string;
  readonly sysRoot?: string;
  readonly publishFrequency?: number;
  /** Section `ops` of the configuration. */
  readonly ops?: object;
  /** Interval of the requests for the first health status. */
  readonly pollSeconds?: number;
}

/** More frequent requests would warm up the code that is measured afterwards. */
export const START_POLL_SECONDS = 0.1;

/** The Node options of bin/edge-health, for code that a benchmark measures in its own process. */
export function serviceNodeOptions(): string[] {
  const text = readFileSync(join(ROOT, 'bin/edge-health'), 'utf8');
  const options = /^exec "\$node"([^"]*)"/m.exec(text)?.[1]?.match(/--\S+/g);
  if (!options) throw new Error('bin/edge-health does not start Node as expected');
  return options;
}

/** Starts the service as a user would, on a free port of the loopback address, and waits for its first health status. */
export async function startService(cleanup: Cleanup, setup: ServiceSetup = {}): Promise<RunningService> {
  const folder = cleanup.folderOnDisk();
  const port = await freePort();
  const config = {
    publish_frequency: setup.publishFrequency ?? 1,
    storage: { path: setup.dataPath ?? join(folder, 'data') },
    rest: { host: '127.0.0.1', port },
    // The ROS 2 graph is measured separately, in a test network, because other participants on the network would distort the figures here.
    ros: { transport: 'off' },
    ...(setup.ops && { ops: setup.ops }),
  };
  const file = join(folder, 'config.yaml');
  writeFileSync(file, JSON.stringify(config)); // JSON is valid YAML.
  // As under systemd, the spool is in a folder in memory.
  const runtime = join(cleanup.folderInMemory(), 'run');
  mkdirSync(runtime);
  const argv = ['run', '--config', file, '--sys', setup.sysRoot ?? '/sys'];
  const begun = performance.now();
  const child = spawn(join(ROOT, 'bin/edge-health'), argv, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, RUNTIME_DIRECTORY: runtime },
  });
  cleanup.own(child);
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-4000);
  });
  const url = `http://127.0.0.1:${port}`;
  try {
    await waitForResponse(`${url}/health`, child, setup.pollSeconds ?? START_POLL_SECONDS);
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${log}`);
  }
  return { child, pid: child.pid as number, url, configFile: file, runtime, startSeconds: (performance.now() - begun) / 1000 };
}
