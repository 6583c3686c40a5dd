import type { ChildProcess } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { Cleanup } from '../../testkit/cleanup.ts';
import type { Host } from '../../testkit/network/network.ts';
import { ROOT } from '../../testkit/service/service.ts';
import type { PublisherEvent, PublisherOptions } from '../clients/ros-publisher.ts';
import { serviceNodeOptions } from './ours.ts';
import type { RosInstallation } from './ros-installation.ts';
import { pause } from './statistics.ts';

/** As bin/edge-health sets them. */
const NODE_ENVIRONMENT = { MALLOC_ARENA_MAX: '2', UV_THREADPOOL_SIZE: '8' };
const READY_WITHIN_SECONDS = 30;

/** Bundles the publisher as scripts/build.ts does the service; the file to run. */
export async function bundlePublisher(cleanup: Cleanup): Promise<string> {
  const file = join(cleanup.folderOnDisk(), 'ros-publisher.cjs');
  await build({
    entryPoints: [join(ROOT, 'bench/clients/ros-publisher.ts')],
    outfile: file,
    bundle: true,
    platform: 'node',
    target: 'node26',
    format: 'cjs',
    supported: { 'dynamic-import': false },
    logLevel: 'warning',
  });
  return file;
}

/** A process in a host, and the lines that it says. */
class Talking {
  readonly child: ChildProcess;
  readonly #name: string;
  #text = '';

  constructor(cleanup: Cleanup, name: string, child: ChildProcess) {
    this.#name = name;
    this.child = cleanup.own(child);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#text = (this.#text + text).slice(-20_000);
      });
    }
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** The first line that matches; throws with all that was said when the process ends before, or takes too long. */
  async line(pattern: RegExp, withinSeconds: number): Promise<string> {
    const deadline = performance.now() + withinSeconds * 1000;
    for (;;) {
      const found = this.#text
        .split('\n')
        .slice(0, -1)
        .find((line) => pattern.test(line));
      if (found !== undefined) return found;
      const hasEnded = this.child.exitCode !== null || this.child.signalCode !== null;
      if (hasEnded || performance.now() > deadline) {
        throw new Error(`${this.#name} did not say ${pattern} ${hasEnded ? 'before it ended' : `in ${withinSeconds} s`}:\n${this.#text}`);
      }
      await pause(0.1);
    }
  }
}

export class Publisher {
  readonly #talking: Talking;

  private constructor(talking: Talking) {
    this.#talking = talking;
  }

  /** Resolves when the transport has started. */
  static async start(
    cleanup: Cleanup,
    bundle: string,
    host: Host,
    ros: RosInstallation | null,
    options: Omit<PublisherOptions, 'prepared'>,
  ): Promise<Publisher> {
    const needsRos = options.transport === 'rclnodejs' || options.transport === 'one node';
    const argument = JSON.stringify({ ...options, prepared: needsRos ? (ros?.prepared ?? null) : null } satisfies PublisherOptions);
    const child = host.spawn(process.execPath, [...serviceNodeOptions(), bundle, argument], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...(needsRos ? ros?.environment : process.env), ...NODE_ENVIRONMENT },
    });
    const talking = new Talking(cleanup, `the publisher with ${options.transport}`, child);
    await talking.line(/"event":"ready"/, READY_WITHIN_SECONDS);
    return new Publisher(talking);
  }

  get child(): ChildProcess {
    return this.#talking.child;
  }

  get pid(): number {
    return this.#talking.pid;
  }

  /** Begins the stream; resolves when its last status is out. */
  async stream(withinSeconds: number): Promise<Extract<PublisherEvent, { event: 'streamed' }>> {
    this.child.kill('SIGUSR2');
    return JSON.parse(await this.#talking.line(/"event":"streamed"/, withinSeconds));
  }
}

/** Starts the service in a host as a user would; resolves when it is on the graph, or runs without one. */
export async function startServiceIn(
  cleanup: Cleanup,
  host: Host,
  setup: {
    readonly transport: 'off' | 'embedded' | 'rclnodejs';
    readonly domainId: number;
    readonly sysRoot: string;
    readonly ros: RosInstallation | null;
  },
): Promise<ChildProcess> {
  const { transport, domainId, sysRoot, ros } = setup;
  const folder = cleanup.folderOnDisk();
  const data = join(folder, 'data');
  mkdirSync(data);
  if (transport === 'rclnodejs' && ros) symlinkSync(ros.folder, join(data, 'ros'));
  const file = join(folder, 'config.yaml');
  const config = {
    storage: { path: data },
    rest: { host: '127.0.0.1' },
    ros: { transport, domain_id: domainId, discovery_range: 'SUBNET' },
  };
  writeFileSync(file, JSON.stringify(config)); // JSON is YAML too.
  // As under systemd, the tail lies in a folder in memory.
  const runtime = join(cleanup.folderInMemory(), 'run');
  mkdirSync(runtime);
  const child = host.spawn(join(ROOT, 'bin/edge-health'), ['run', '--config', file, '--sys', sysRoot], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...(transport === 'rclnodejs' ? ros?.environment : process.env), RUNTIME_DIRECTORY: runtime },
  });
  const talking = new Talking(cleanup, `the service with ros.transport ${transport}`, child);
  const pattern = transport === 'off' ? /dashboard: / : new RegExp(`on the ROS 2 graph .*transport=${transport}`);
  await talking.line(pattern, READY_WITHIN_SECONDS);
  return child;
}
