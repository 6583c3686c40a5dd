/** Starts the real service in a host of a test network and sends REST requests from there. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { ROOT } from '../service/service.ts';
import type { Host } from './network.ts';
import { NO_ROS } from './this-machine.ts';

const execute = promisify(execFile);
const PORT = 5000;

export interface HostServiceOptions {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly environment?: NodeJS.ProcessEnv;
  readonly arguments?: readonly string[];
}

/** The real service in a host of a test network, on port 5000 there. */
export class HostService {
  readonly pid: number;
  readonly #host: Host;
  readonly #kill: (signal: NodeJS.Signals) => void;
  readonly #ended: Promise<unknown>;
  readonly #log: () => string;

  private constructor(host: Host, pid: number, kill: (signal: NodeJS.Signals) => void, ended: Promise<unknown>, log: () => string) {
    this.#host = host;
    this.pid = pid;
    this.#kill = kill;
    this.#ended = ended;
    this.#log = log;
  }

  /** `folder` contains its configuration and data; a second start with the same folder continues with the data. */
  static async start(host: Host, folder: string, options: HostServiceOptions = {}): Promise<HostService> {
    const file = join(folder, 'config.yaml');
    const { rest, storage, ...config } = options.config ?? {};
    writeFileSync(
      file,
      stringify({
        ...config,
        rest: { ...(rest as object | undefined), port: PORT },
        storage: { path: join(folder, 'data'), ...(storage as object | undefined) },
      }),
    );
    const argv = ['run', '--config', file, ...(options.arguments ?? [])];
    const child = host.spawn(join(ROOT, 'bin/edge-health'), argv, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...NO_ROS, ...options.environment },
    });
    let log = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log += text;
    });
    const ended = once(child, 'exit');
    const service = new HostService(
      host,
      child.pid as number,
      (signal) => child.kill(signal),
      ended,
      () => log,
    );
    const endedEarly = ended.then(() => {
      throw new Error(`the service ended:\n${log}`);
    });
    endedEarly.catch(() => undefined);
    await Promise.race([service.until(() => log.includes('dashboard:'), 120), endedEarly]);
    return service;
  }

  get log(): string {
    return this.#log();
  }

  async get<T>(path: string): Promise<T> {
    return JSON.parse(await this.text(path)) as T;
  }

  async text(path: string): Promise<string> {
    // The request must come from within the host, because its loopback interface is separate.
    const code = `fetch('http://127.0.0.1:${PORT}${path}').then(async (r) => process.stdout.write(await r.text()))`;
    const { stdout } = await execute(...this.#host.command(process.execPath, ['-e', code]), { maxBuffer: 64 * 1024 * 1024 });
    return stdout as string;
  }

  /** Polls until the response satisfies the condition; throws with the last response and the log after the timeout. */
  async untilGet<T>(path: string, satisfied: (body: T) => boolean, seconds = 120): Promise<T> {
    let last: T | undefined;
    await this.until(async () => {
      last = await this.get<T>(path);
      return satisfied(last);
    }, seconds).catch((error: Error) => {
      throw new Error(`${error.message}: ${path} is ${JSON.stringify(last)?.slice(0, 3000)}\n${this.log.slice(-3000)}`);
    });
    return last as T;
  }

  async until(satisfied: () => boolean | Promise<boolean>, seconds: number): Promise<void> {
    const deadline = Date.now() + seconds * 1000;
    while (!(await satisfied())) {
      if (Date.now() > deadline) throw new Error(`timeout after ${seconds} s`);
      await new Promise((later) => setTimeout(later, 100));
    }
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.#kill(signal);
    await this.#ended;
  }
}
