import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';

const PROGRAM = join(import.meta.dirname, 'supervisor.sh');

export interface SupervisionOptions {
  /** An empty folder for all files of the container, removed at its end. Its name is the name of the container. */
  readonly folder: string;
  /** Lower layers in the syntax of overlayfs `lowerdir`. */
  readonly lower: string;
  /** Name of the network namespace. */
  readonly network: string;
  readonly disk: { readonly path: string; readonly megabytes: number } | null;
}

/** Controls the supervisor of a container (supervisor.sh). When this process ends, the supervisor removes the container. */
export class Supervision {
  readonly folder: string;
  readonly #process: ChildProcess;
  #nspawn: number | null = null;
  #pid1: number | null = null;
  #endStatus: number | null = null;
  #starts = 0;
  #cuts = 0;
  #hasEnded = false;

  private constructor(folder: string, process: ChildProcess) {
    this.folder = folder;
    this.#process = process;
  }

  static async start({ folder, lower, network, disk }: SupervisionOptions): Promise<Supervision> {
    const child = spawn(
      'unshare',
      [
        ...['--mount', '--propagation', 'private'],
        ...[PROGRAM, basename(folder), folder, lower, network],
        ...(disk ? [String(disk.megabytes), disk.path] : []),
      ],
      // A separate process group, because Ctrl-C for the tests must not interrupt its cleanup. It ends when its input closes.
      { stdio: ['pipe', 'pipe', 'inherit'], detached: true },
    );
    const supervision = new Supervision(folder, child);
    const ended = once(child, 'close').then(() => {
      supervision.#hasEnded = true;
      supervision.#nspawn = null;
    });
    const lines = createInterface({ input: child.stdout });
    lines.on('line', (line) => supervision.#handleEvent(line));
    await Promise.race([
      once(lines, 'line'),
      ended.then(() => Promise.reject(new Error('the supervisor of the container ended before it was ready'))),
    ]);
    return supervision;
  }

  #handleEvent(line: string): void {
    const [event, value] = line.split(' ');
    if (event === 'started') {
      this.#nspawn = Number(value);
      this.#pid1 = null;
      this.#endStatus = null;
      this.#starts += 1;
    } else if (event === 'ended') {
      this.#nspawn = null;
      this.#endStatus = Number(value);
    } else if (event === 'cut') {
      this.#cuts += 1;
    }
  }

  send(command: 'boot' | 'cut'): void {
    this.#process.stdin?.write(`${command}\n`);
  }

  /** The process whose mount namespace has the file system of the container. */
  get pid(): number {
    return this.#process.pid as number;
  }

  /** Number of starts of the container, reboots included. */
  get starts(): number {
    return this.#starts;
  }

  /** Number of power cuts. */
  get cuts(): number {
    return this.#cuts;
  }

  get isUp(): boolean {
    return this.#nspawn !== null;
  }

  /** Exit status of systemd-nspawn, once the container has ended. */
  get endStatus(): number | null {
    return this.#endStatus;
  }

  /** Whether the container and its file system have been removed. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** PID of the container's process 1 on this machine; null while it is off. */
  get pid1(): number | null {
    if (this.#nspawn === null) return null;
    // Under cgroup v1 an init script is process 1 first; it prepares the control groups and executes systemd.
    this.#pid1 ??= childrenOf(this.#nspawn).find((pid) => isProcessOne(pid) && textOf(`/proc/${pid}/comm`).startsWith('systemd')) ?? null;
    return this.#pid1;
  }

  async stop(): Promise<void> {
    const closed = this.#hasEnded ? null : once(this.#process, 'close');
    this.#process.stdin?.end();
    await closed;
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // The process has already ended.
  }
}

function isProcessOne(pid: number): boolean {
  return /^NSpid:.*\s1$/m.test(textOf(`/proc/${pid}/status`));
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => new RegExp(`^PPid:\\s${parent}$`, 'm').test(textOf(`/proc/${pid}/status`)))
    .map(Number);
}
