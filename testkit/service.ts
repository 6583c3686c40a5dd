import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { stringify } from 'yaml';

/** The checkout. */
export const ROOT = resolve(import.meta.dirname, '..');

/** A fresh folder under the system's temporary one, removed by the returned function. */
export function temporaryFolder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'edge-health-test-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export interface RunOptions {
  /** Keys of the configuration over a free port, a data folder of its own, and no ROS 2 graph: there it would meet the other suites. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** The data folder; one in `folder` by default. */
  readonly dataPath?: string;
  /** Further arguments of `edge-health run`. */
  readonly arguments?: readonly string[];
  readonly environment?: NodeJS.ProcessEnv;
}

/** A real service process of its own, as a user would start it. */
export class RunningService {
  readonly process: ChildProcess;
  readonly url: string;
  readonly #log: () => string;

  private constructor(process: ChildProcess, url: string, log: () => string) {
    this.process = process;
    this.url = url;
    this.#log = log;
  }

  /** Starts `edge-health run` on a free port; resolves when it says where it listens, rejects with its log when it ends before. */
  static async start(folder: string, options: RunOptions = {}): Promise<RunningService> {
    const { config = {} } = options;
    const rest = { host: '127.0.0.1', port: 0, ...((config['rest'] as object | undefined) ?? {}) };
    const storage = { path: options.dataPath ?? join(folder, 'data'), ...((config['storage'] as object | undefined) ?? {}) };
    const file = join(folder, `config-${Date.now()}-${Math.random().toString(36).slice(2)}.yaml`);
    const ros = { transport: 'off', ...((config['ros'] as object | undefined) ?? {}) };
    writeFileSync(file, stringify({ ...config, rest, storage, ros }));
    const child = spawn(join(ROOT, 'bin/edge-health'), ['run', '--config', file, ...(options.arguments ?? [])], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...options.environment },
    });
    let log = '';
    const listening = new Promise<string>((resolveUrl, reject) => {
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        log += text;
        const url = /dashboard: (http:\S+)\//.exec(log)?.[1];
        if (url) resolveUrl(url);
      });
      child.once('exit', (code, signal) => reject(new Error(`the service ended (${signal ?? code}) before it listened:\n${log}`)));
    });
    return new RunningService(child, await listening, () => log);
  }

  get pid(): number {
    return this.process.pid as number;
  }

  get log(): string {
    return this.#log();
  }

  get(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(this.url + path, init);
  }

  async json<T = Record<string, unknown>>(path: string): Promise<T> {
    return (await (await this.get(path)).json()) as T;
  }

  /** Asks until the answer satisfies, at most `seconds`; throws with the last answer otherwise. */
  async until<T>(path: string, satisfied: (body: T) => boolean, seconds = 20): Promise<T> {
    const deadline = Date.now() + seconds * 1000;
    for (;;) {
      const body = await this.json<T>(path);
      if (satisfied(body)) return body;
      if (Date.now() > deadline) throw new Error(`${path} is still ${JSON.stringify(body).slice(0, 2000)}\n${this.log}`);
      await new Promise((later) => setTimeout(later, 100));
    }
  }

  /** Sends a signal and waits for the end; the exit code, or the signal's name. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
    if (this.process.exitCode !== null) return this.process.exitCode;
    if (this.process.signalCode !== null) return this.process.signalCode;
    const exited = once(this.process, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
    this.process.kill(signal);
    const [code, by] = await exited;
    return code ?? by ?? -1;
  }
}
