import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { type Cleanup, endProcess } from '../../testkit/cleanup.ts';
import type { Host } from '../../testkit/network/network.ts';
import { ROOT } from '../../testkit/service/service.ts';
import type { Answer } from '../support/http.ts';
import { pause } from '../support/statistics.ts';

const PORT = 5000;
const READY_TIMEOUT_SECONDS = 30;

/** The service as a user starts it, in a host of a test network. It can be restarted on its data. */
export class FleetAppliance {
  readonly #cleanup: Cleanup;
  readonly #host: Host;
  readonly #configFile: string;
  readonly #runtime: string;
  readonly #sysRoot: string;
  readonly #client: ChildProcess;
  readonly #clientEnded: Promise<never>;
  readonly #pending: ((line: string) => void)[] = [];
  #child: ChildProcess | null = null;
  #log = '';

  private constructor(cleanup: Cleanup, host: Host, domainId: number, sysRoot: string) {
    this.#cleanup = cleanup;
    this.#host = host;
    this.#sysRoot = sysRoot;
    const folder = cleanup.folderOnDisk();
    this.#configFile = join(folder, 'config.yaml');
    const config = {
      storage: { path: join(folder, 'data') },
      rest: { host: '127.0.0.1', port: PORT },
      // With `auto` it would leave observing to the robots of the last fleet, which observe `always`.
      ros: { transport: 'embedded', domain_id: domainId, discovery_range: 'SUBNET', observe: 'always' },
    };
    writeFileSync(this.#configFile, JSON.stringify(config)); // JSON is valid YAML.
    // As under systemd, the spool is in a folder in memory.
    this.#runtime = join(cleanup.folderInMemory(), 'run');
    mkdirSync(this.#runtime);
    const program = join(ROOT, 'bench/fleet/rest-program.ts');
    const argv = ['--disable-warning=ExperimentalWarning', program, `http://127.0.0.1:${PORT}`];
    this.#client = cleanup.own(host.spawn(process.execPath, argv, { stdio: ['pipe', 'pipe', 'inherit'] }));
    this.#clientEnded = once(this.#client, 'exit').then(() => {
      throw new Error('the REST client of the service has ended');
    });
    this.#client.stdin?.on('error', () => {}); // The promise above reports the exit.
    this.#clientEnded.catch(() => {}); // The process ends with the benchmark, after the last request.
    createInterface({ input: this.#client.stdout as NodeJS.ReadableStream }).on('line', (line) => this.#pending.shift()?.(line));
  }

  /** Resolves when the service is on the ROS 2 graph. */
  static async start(
    cleanup: Cleanup,
    host: Host,
    setup: { readonly domainId: number; readonly sysRoot: string },
  ): Promise<FleetAppliance> {
    const appliance = new FleetAppliance(cleanup, host, setup.domainId, setup.sysRoot);
    await appliance.run();
    return appliance;
  }

  get pid(): number {
    return this.#child?.pid as number;
  }

  /** Warnings and errors in the log. */
  get problems(): string[] {
    return this.#log.split('\n').filter((line) => /warning|error/i.test(line));
  }

  async run(): Promise<void> {
    const argv = ['run', '--config', this.#configFile, '--sys', this.#sysRoot];
    const child = this.#host.spawn(join(ROOT, 'bin/edge-health'), argv, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, RUNTIME_DIRECTORY: this.#runtime },
    });
    this.#child = this.#cleanup.own(child);
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#log = (this.#log + text).slice(-100_000);
    });
    const deadline = performance.now() + READY_TIMEOUT_SECONDS * 1000;
    for (;;) {
      const { body, status } = await this.ask('/status');
      if (status === 200 && (JSON.parse(body) as StatusDocument).ros.transport === 'embedded') return;
      if (child.exitCode !== null || performance.now() > deadline)
        throw new Error(`the service did not join the ROS 2 graph\n${this.#log}`);
      await pause(0.1);
    }
  }

  async stop(): Promise<void> {
    if (this.#child) await endProcess(this.#child);
  }

  /** Sends requests one after another over a keep-alive connection; status 0 means no response. */
  ask(path: string): Promise<Pick<Answer, 'body' | 'milliseconds' | 'status'>> {
    this.#client.stdin?.write(`${path}\n`);
    return Promise.race([
      new Promise<Answer>((resolve) => this.#pending.push((line) => resolve(JSON.parse(line) as Answer))),
      this.#clientEnded,
    ]);
  }

  async json<T>(path: string): Promise<T> {
    const { body, status } = await this.ask(path);
    if (status !== 200) throw new Error(`${path} returned ${status}: ${body.slice(0, 300)}`);
    return JSON.parse(body) as T;
  }

  status(): Promise<StatusDocument> {
    return this.json<StatusDocument>('/status');
  }

  /** Counters of the host's network interface. */
  wire(): Wire {
    const [link] = JSON.parse(this.#host.ip('-s', '-j', 'link', 'show', 'eth0')) as [{ stats64: { rx: Counted; tx: Counted } }];
    const { rx, tx } = link.stats64;
    return { receivedBytes: rx.bytes, receivedPackets: rx.packets, sentBytes: tx.bytes, sentPackets: tx.packets };
  }
}

interface Counted {
  readonly bytes: number;
  readonly packets: number;
}

export interface Wire {
  readonly receivedBytes: number;
  readonly receivedPackets: number;
  readonly sentBytes: number;
  readonly sentPackets: number;
}
