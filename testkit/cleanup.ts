import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from './service/service.ts';

const TMPFS_MAGIC = 0x01021994;
const TIMEOUT_SECONDS = 10;

/** Processes and folders of a benchmark or the soak; `end` stops and removes exactly these. */
export class Cleanup {
  readonly #children: ChildProcess[] = [];
  readonly #folders: string[] = [];

  /** Registers a child process. */
  own<T extends ChildProcess>(child: T): T {
    this.#children.push(child);
    return child;
  }

  /** A temporary folder on a disk: the kernel does not count writes to tmpfs in write_bytes. */
  folderOnDisk(): string {
    for (const parent of [tmpdir(), '/var/tmp']) {
      if (statfsSync(parent).type !== TMPFS_MAGIC) return this.#make(parent);
    }
    const parent = join(ROOT, 'data');
    mkdirSync(parent, { recursive: true });
    return this.#make(parent);
  }

  /** A temporary folder in memory, or on a disk if the machine has no tmpfs. */
  folderInMemory(): string {
    try {
      return this.#make('/dev/shm');
    } catch {
      return this.folderOnDisk();
    }
  }

  async end(): Promise<void> {
    for (const child of this.#children.splice(0).reverse()) await endProcess(child);
    for (const folder of this.#folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  }

  #make(parent: string): string {
    const folder = mkdtempSync(join(parent, 'edge-health-bench-'));
    this.#folders.push(folder);
    return folder;
  }
}

/** Sends SIGTERM, and SIGKILL if the process has not exited after the timeout. */
export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const killing = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_SECONDS * 1000);
  await exited;
  clearTimeout(killing);
}
