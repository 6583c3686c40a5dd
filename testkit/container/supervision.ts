import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';

const PROGRAM = join(import.meta.dirname, 'supervisor.sh');

export interface SupervisionOptions {
  /** Empty; everything of the container on this machine is in it, and it is removed in the end. Its name is the container's. */
  readonly folder: string;
  /** As overlayfs wants them. */
  readonly lower: string;
  /** Name of the network namespace. */
  readonly network: string;
  readonly disk: { readonly path: string; readonly megabytes: number } | null;
}

/** The supervisor of a container as this process sees it. When this process ends, the supervisor takes the container away. */
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
      // A group of its own: a Ctrl-C for the tests would end it before it has cleared up. It leaves when its input closes.
      { stdio: ['pipe', 'pipe', 'inherit'], detached: true },
    );
    const supervision = new Supervision(folder, child);
    const ended = once(child, 'close').then(() => {
      supervision.#hasEnded = true;
      supervision.#nspawn = null;
    });
    const lines = createInterface({ input: child.stdout });
    lines.on('line', (line) => supervision.#told(line));
    await Promise.race([
      once(lines, 'line'),
      ended.then(() => Promise.reject(new Error('the supervisor of the container ended before there was one'))),
    ]);
    return supervision;
  }

  #told(line: string): void {
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

  tell(command: 'boot' | 'cut'): void {
    this.#process.stdin?.write(`${command}\n`);
  }

  /** The process in whose mount namespace the container's file system is put together. */
  get pid(): number {
    return this.#process.pid as number;
  }

  /** How often the container has been started, reboots included. */
  get starts(): number {
    return this.#starts;
  }

  /** How often its power was cut. */
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

  /** Whether there is no container any more, not even its file system. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The container's process 1 as a process of this machine; null while there is none. */
  get pid1(): number | null {
    if (this.#nspawn === null) return null;
    // Before systemd another program may be process 1, which prepares its control groups.
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
    return ''; // The process has ended.
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
