import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { stringify } from 'yaml';
import type { SealedEntry } from '../../../../harness/record/chain.ts';
import type { ReportDocument } from '../../../../harness/report/document.ts';
import { type Host, Network } from '../../../../testkit/network/network.ts';
import { ROOT, temporaryFolder } from '../../../../testkit/service.ts';

const POLL_MS = 100;
/** A machine that runs tests is busy: that alone shall raise nothing. */
const CONFIG = { alerts: { raise_after_seconds: 3600 }, ops: { backup_logs: 'off' } };

export interface Ended {
  /** Exit code, or the signal's name. */
  readonly by: number | string;
  readonly output: string;
}

/** A machine of its own for a run of the harness and the service that it starts: nobody else is on its graph. */
export class Site {
  readonly folder: string;
  readonly config: string;
  readonly #host: Host;

  constructor(t: Test) {
    const network = new Network();
    const { path, remove } = temporaryFolder();
    this.#host = network.host();
    this.folder = join(path, 'run');
    this.config = join(path, 'config.yaml');
    writeFileSync(this.config, stringify(CONFIG));
    // With the namespace goes everything that runs in it.
    t.teardown(() => {
      network.dispose();
      remove();
    });
  }

  /** `edge-health harness run` into the folder, as a user would call it. */
  begin(...args: string[]): HarnessProcess {
    return this.#spawn(['run', '--out', this.folder, '--config', this.config, ...args]);
  }

  /** Any command of the harness, to its end. */
  async command(...args: string[]): Promise<Ended> {
    return this.#spawn(args).ended();
  }

  /** Starts a service beside the harness, on port 5000 of the machine; its process id. */
  service(): number {
    const config = join(this.folder, '..', 'service.yaml');
    writeFileSync(config, stringify({ ...CONFIG, storage: { path: join(this.folder, '..', 'data') } }));
    const [program, args] = this.#host.command(join(ROOT, 'bin/edge-health'), ['run', '--config', config]);
    return spawn(program, args, { stdio: 'ignore' }).pid as number;
  }

  #spawn(args: readonly string[]): HarnessProcess {
    const [program, all] = this.#host.command(join(ROOT, 'bin/edge-health'), ['harness', ...args]);
    return new HarnessProcess(spawn(program, all, { stdio: ['ignore', 'pipe', 'pipe'] }));
  }

  /** Process id that a file in the folder names. */
  pid(file: string): number {
    return Number(readFileSync(join(this.folder, file), 'utf8').split(' ')[0]);
  }

  /** Of the service; waits until it is another than `former`. */
  async servicePid(former = 0): Promise<number> {
    let pid = 0;
    await until('another process of the service', 30, () => {
      pid = this.pid('keeper/service.pid');
      return pid !== former && pid > 0 && isRunning(pid);
    });
    return pid;
  }

  /** Waits until the service answers over REST again; from within its network. */
  async answers(): Promise<void> {
    await until('the service does not answer', 30, async () => {
      const [program, args] = this.#host.command(join(ROOT, 'bin/edge-health'), ['status', '--config', join(this.folder, 'service.yaml')]);
      const child = spawn(program, args, { stdio: 'ignore' });
      const [code] = (await once(child, 'exit')) as [number | null];
      return code !== null && code < 3;
    });
  }

  entries(): SealedEntry[] {
    const file = join(this.folder, 'record.ndjson');
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, 'utf8').split('\n');
    return lines.slice(0, -1).map((line) => JSON.parse(line) as SealedEntry);
  }

  /** Waits until there is an entry of the type. */
  async recorded(type: SealedEntry['type'], seconds = 60): Promise<void> {
    await until(`an entry ${type}`, seconds, () => this.entries().some((entry) => entry.type === type));
  }

  report(): ReportDocument {
    return JSON.parse(readFileSync(join(this.folder, 'report.json'), 'utf8')) as ReportDocument;
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

  /** `ip netns exec` becomes the program. */
  get pid(): number {
    return this.#child.pid as number;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async says(text: string | RegExp, seconds = 60): Promise<void> {
    await until(`it says ${text}`, seconds, () => {
      if (this.#child.exitCode !== null) throw new Error(`it ended with ${this.#child.exitCode}:\n${this.#output}`);
      return this.#output.search(text) >= 0;
    }).catch((error: Error) => {
      throw new Error(`${error.message}\n${this.#output}`);
    });
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

/** Waits until it holds; throws what was waited for when it does not in time. */
export async function until(what: string, seconds: number, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + seconds * 1000;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`after ${seconds} s: ${what}`);
    await new Promise((later) => setTimeout(later, POLL_MS));
  }
}
