/**
 * Starts the service in the same way as a user: `bin/edge-health run` in a separate process, with a free port on the loopback interface,
 * its data and its configuration in the folder of the test, and without the ROS 2 graph, on which it would discover other services.
 *
 * `start` resolves when the log reports the address of the REST server. After that, a test waits for conditions, never for a fixed time:
 * `until` for a REST response, `logged` for a log line, events.ts for an event. `end` sends a signal and resolves with the exit code or
 * signal. A test ends its service in its teardown, as rest.ts does.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { stringify } from 'yaml';
import { localService } from '../../src/client/running-service.ts';
import { until } from '../wait.ts';

/** Path of the checkout. */
export const ROOT = resolve(import.meta.dirname, '../..');

export interface RunOptions {
  /** Configuration keys that override the defaults of this file: any free port of 127.0.0.1, a data folder, no ROS 2, no alerts. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** The data folder; `data` in the folder of the test by default. */
  readonly dataPath?: string;
  /** Additional arguments of `edge-health run`. */
  readonly arguments?: readonly string[];
  readonly environment?: NodeJS.ProcessEnv;
  /** The checkout whose service is started; this one by default. */
  readonly root?: string;
}

/** A service manager or tap may set these for the test runner; a service under test must not inherit them. */
const NOT_INHERITED = {
  NODE_OPTIONS: undefined,
  NOTIFY_SOCKET: undefined,
  RUNTIME_DIRECTORY: undefined,
  STATE_DIRECTORY: undefined,
  WATCHDOG_PID: undefined,
  WATCHDOG_USEC: undefined,
};

/** Prevents alerts from the load and the disk of the machine, unless a test sets thresholds. */
const WITHOUT_ALERTS = { alerts: { raise_after_seconds: 3600 } };

let files = 0;

export class RunningService {
  readonly process: ChildProcess;
  readonly url: string;
  readonly configFile: string;
  readonly #log: () => string;

  private constructor(process: ChildProcess, url: string, configFile: string, log: () => string) {
    this.process = process;
    this.url = url;
    this.configFile = configFile;
    this.#log = log;
  }

  /** Resolves when the service listens, or runs while its port is in use; rejects with its log if it ends first. The folder may have data of an earlier run. */
  static async start(folder: string, options: RunOptions = {}): Promise<RunningService> {
    const { config = {} } = options;
    const rest = { host: '127.0.0.1', port: 0, ...((config['rest'] as object | undefined) ?? {}) };
    const storage = { path: options.dataPath ?? join(folder, 'data'), ...((config['storage'] as object | undefined) ?? {}) };
    const ros = { transport: 'off', ...((config['ros'] as object | undefined) ?? {}) };
    files += 1;
    const file = join(folder, `config-${process.pid}-${files}.yaml`);
    const alerts = config['thresholds'] ? {} : WITHOUT_ALERTS;
    writeFileSync(file, stringify({ ...alerts, ...config, rest, storage, ros }));
    const child = spawn(join(options.root ?? ROOT, 'bin/edge-health'), ['run', '--config', file, ...(options.arguments ?? [])], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...NOT_INHERITED, ...options.environment },
    });
    let log = '';
    const listening = new Promise<string>((resolveUrl, reject) => {
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        log += text;
        const started = /dashboard: (?:(http:\S+)\/|none yet)/.exec(log);
        const url = started && (started[1] ?? `http://${rest.host}:${rest.port}`);
        if (url) resolveUrl(url);
      });
      child.once('error', reject);
      // `close` follows the last log line, `exit` may precede it.
      child.once('close', (code, signal) => reject(new Error(`the service ended (${signal ?? code}) before it listened:\n${log}`)));
    });
    return new RunningService(child, await listening, file, () => log);
  }

  get pid(): number {
    return this.process.pid as number;
  }

  get log(): string {
    return this.#log();
  }

  /** Base URL of its Unix socket, if it was started without RUNTIME_DIRECTORY. */
  get unixUrl(): string {
    return localService(this.configFile, {})();
  }

  get(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(this.url + path, init);
  }

  async json<T = Record<string, unknown>>(path: string): Promise<T> {
    return (await (await this.get(path)).json()) as T;
  }

  /**
   * Requests the path until the body satisfies the condition, and resolves with the body; rejects with the last body and
   * the log after the timeout.
   */
  async until<T>(path: string, satisfied: (body: T) => boolean, seconds?: number): Promise<T> {
    let body: T | undefined;
    const ask = async (): Promise<boolean> => {
      body = await this.json<T>(path);
      return satisfied(body);
    };
    const describe = (): string => `${JSON.stringify(body).slice(0, 2000)}\n${this.log}`;
    await until(`${path} satisfies ${satisfied}`, ask, { describe, ...(seconds === undefined ? {} : { seconds }) });
    return body as T;
  }

  /** Resolves with the match once the log contains it. */
  logged(pattern: RegExp): Promise<RegExpExecArray> {
    return until(`the log has ${pattern}`, () => pattern.exec(this.log), { describe: () => this.log });
  }

  /** Sends a signal, waits for the end of the process and of its log, and returns the exit code or the name of the signal. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
    const { exitCode, signalCode } = this.process;
    if (exitCode !== null) return exitCode;
    if (signalCode !== null) return signalCode;
    const closed = once(this.process, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
    this.process.kill(signal);
    const [code, by] = await closed;
    return code ?? by ?? -1;
  }
}
