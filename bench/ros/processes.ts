import type { ChildProcess } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { Cleanup } from '../../testkit/cleanup.ts';
import type { Host } from '../../testkit/network/network.ts';
import { ROOT } from '../../testkit/service/service.ts';
import type { PublisherEvent, PublisherOptions } from '../clients/ros-publisher.ts';
import { serviceNodeOptions } from '../support/service-process.ts';
import { pause } from '../support/statistics.ts';
import type { RosInstallation } from './installation.ts';

/** Same values as in bin/edge-health. */
const NODE_ENVIRONMENT = { MALLOC_ARENA_MAX: '2', UV_THREADPOOL_SIZE: '8' };
const READY_TIMEOUT_SECONDS = 30;

/** Bundles the publisher as scripts/build.ts bundles the service; returns the file to run. */
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

/** A process in a host and its output. */
class OutputProcess {
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

  /** Resolves with the first line that matches. Throws with the output if the process ends first, or after the timeout. */
  async waitForLine(pattern: RegExp, timeoutSeconds: number): Promise<string> {
    const deadline = performance.now() + timeoutSeconds * 1000;
    for (;;) {
      const found = this.#text
        .split('\n')
        .slice(0, -1)
        .find((line) => pattern.test(line));
      if (found !== undefined) return found;
      const hasEnded = this.child.exitCode !== null || this.child.signalCode !== null;
      if (hasEnded || performance.now() > deadline) {
        throw new Error(
          `${this.#name} did not print ${pattern} ${hasEnded ? 'before it ended' : `in ${timeoutSeconds} s`}:\n${this.#text}`,
        );
      }
      await pause(0.1);
    }
  }
}

export class Publisher {
  readonly #output: OutputProcess;

  private constructor(output: OutputProcess) {
    this.#output = output;
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
    const output = new OutputProcess(cleanup, `the publisher with ${options.transport}`, child);
    await output.waitForLine(/"event":"ready"/, READY_TIMEOUT_SECONDS);
    return new Publisher(output);
  }

  get child(): ChildProcess {
    return this.#output.child;
  }

  get pid(): number {
    return this.#output.pid;
  }

  /** Starts the stream; resolves when its last status is published. */
  async stream(timeoutSeconds: number): Promise<Extract<PublisherEvent, { event: 'streamed' }>> {
    this.child.kill('SIGUSR2');
    return JSON.parse(await this.#output.waitForLine(/"event":"streamed"/, timeoutSeconds));
  }
}

/** Starts the service in a host as a user would; resolves when it has joined the ROS 2 graph, or listens if its transport is off. */
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
  writeFileSync(file, JSON.stringify(config)); // JSON is valid YAML.
  // As under systemd, the spool is in a folder in memory.
  const runtime = join(cleanup.folderInMemory(), 'run');
  mkdirSync(runtime);
  const child = host.spawn(join(ROOT, 'bin/edge-health'), ['run', '--config', file, '--sys', sysRoot], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...(transport === 'rclnodejs' ? ros?.environment : process.env), RUNTIME_DIRECTORY: runtime },
  });
  const output = new OutputProcess(cleanup, `the service with ros.transport ${transport}`, child);
  const pattern = transport === 'off' ? /dashboard: / : new RegExp(`on the ROS 2 graph .*transport=${transport}`);
  await output.waitForLine(pattern, READY_TIMEOUT_SECONDS);
  return child;
}
