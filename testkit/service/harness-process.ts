/**
 * Starts the harness in the same way as a user: `edge-health harness` in separate processes, on a run folder that is removed with the test.
 * The service that a run starts listens on a free port of the loopback interface and is not on the ROS 2 graph. It therefore needs only a
 * built checkout, and other suites may run at the same time.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { stringify } from 'yaml';
import type { SealedEntry } from '../../harness/record/chain.ts';
import type { ReportDocument } from '../../harness/report/document.ts';
import { ServiceSupervisor } from '../../harness/run/service-supervisor.ts';
import { temporaryFolder } from '../folder.ts';
import type { Host } from '../network/network.ts';
import { until } from '../wait.ts';
import { ROOT } from './service.ts';

/** Prevents alerts caused by the load of other tests on the machine. */
const CONFIG = { alerts: { raise_after_seconds: 3600 }, ops: { backup_logs: 'off' } };
const LOOPBACK = { rest: { host: '127.0.0.1', port: 0 }, ros: { transport: 'off' } };

export interface Ended {
  /** Exit code, or the signal's name. */
  readonly by: number | string;
  readonly output: string;
}

/** The folder of a run, and the configuration of the service that the run starts. */
export class RunFolder {
  readonly path: string;
  readonly config: string;
  readonly #host: Host | null;

  /** If `host` is given, the run is in a network namespace, where the service is on the ROS 2 graph and listens on its usual port. */
  constructor(t: Test, host: Host | null = null) {
    const folder = temporaryFolder(t);
    this.#host = host;
    this.path = join(folder, 'run');
    this.config = join(folder, 'config.yaml');
    writeFileSync(this.config, stringify(host === null ? { ...CONFIG, ...LOOPBACK } : CONFIG));
    t.teardown(() => new ServiceSupervisor(this.path).stop());
  }

  /** Starts `edge-health harness run` into the folder. */
  run(...args: string[]): HarnessProcess {
    return this.#spawn(['run', '--out', this.path, '--config', this.config, ...args]);
  }

  /** Runs any command of the harness to its end. */
  command(...args: string[]): Promise<Ended> {
    return this.#spawn(args).ended();
  }

  #spawn(args: readonly string[]): HarnessProcess {
    const program = join(ROOT, 'bin/edge-health');
    const [command, all] = this.#host?.command(program, ['harness', ...args]) ?? [program, ['harness', ...args]];
    return new HarnessProcess(spawn(command, all, { stdio: ['ignore', 'pipe', 'pipe'] }));
  }

  /** Process id from a PID file in the run folder. */
  pid(file: string): number {
    return Number(readFileSync(join(this.path, file), 'utf8').split(' ')[0]);
  }

  /** Process id of the service, once it differs from `former`. */
  servicePid(former = 0): Promise<number> {
    return until('a new process of the service', () => {
      const pid = this.pid('supervisor/service.pid');
      return pid !== former && pid > 0 && isRunning(pid) && pid;
    });
  }

  /** Process ids of the supervisor, the service and its scheduler. */
  async pids(): Promise<number[]> {
    return [this.pid('supervisor/supervisor.pid'), await this.servicePid(), this.pid('supervisor/ops.pid')];
  }

  /** Waits until the service that the run started responds over REST on the loopback interface. */
  async answers(): Promise<void> {
    const { rest } = JSON.parse(readFileSync(join(this.path, 'service.yaml'), 'utf8')) as { rest: { port: number } };
    const ask = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${rest.port}/health`).catch(() => null))?.ok ?? false;
    await until('the service responds', ask);
  }

  entries(): SealedEntry[] {
    const file = join(this.path, 'record.ndjson');
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, 'utf8').split('\n');
    return lines.slice(0, -1).map((line) => JSON.parse(line) as SealedEntry);
  }

  /** Waits until there is an entry of the type. */
  async recorded(type: SealedEntry['type']): Promise<void> {
    await until(`an entry ${type}`, () => this.entries().some((entry) => entry.type === type));
  }

  report(): ReportDocument {
    return JSON.parse(readFileSync(join(this.path, 'report.json'), 'utf8')) as ReportDocument;
  }
}

export class HarnessProcess {
  readonly #child: ChildProcess;
  readonly #exit: Promise<number | string>;
  #output = '';

  constructor(child: ChildProcess) {
    this.#child = child;
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
    this.#exit = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string);
  }

  get output(): string {
    return this.#output;
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Waits until its output contains the text. */
  async printed(text: string | RegExp): Promise<void> {
    const ask = (): boolean => {
      if (this.#output.search(text) >= 0) return true;
      if (this.#child.exitCode !== null) throw new Error(`the harness exited with ${this.#child.exitCode}:\n${this.#output}`);
      return false;
    };
    await until(`output ${text}`, ask, { describe: () => this.#output });
  }

  async ended(): Promise<Ended> {
    return { by: await this.#exit, output: this.#output };
  }
}

export function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
