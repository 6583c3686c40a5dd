import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { temporaryFolder } from './folder.ts';

/** Why no file system of the test's own can be mounted here; null when it can. */
export function whyNotMountable(): string | null {
  if (process.getuid?.() !== 0) return 'mounting a small file system needs root';
  const probe = spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', '/mnt'], { encoding: 'utf8' });
  return probe.status === 0 ? null : `mounting is not permitted here: ${probe.stderr?.trim() || probe.error?.message}`;
}

/** A file system of two megabytes that can be filled to the last byte. */
export class SmallDisk {
  readonly folder: string;
  readonly #filler: string;

  constructor(t: Test) {
    this.folder = join(temporaryFolder(t), 'disk');
    this.#filler = join(this.folder, 'filler');
    mkdirSync(this.folder);
    mount('mount', '-t', 'tmpfs', '-o', 'size=2m,mode=755', 'tmpfs', this.folder);
    t.teardown(() => mount('umount', '--lazy', this.folder));
  }

  fill(): void {
    const descriptor = openSync(this.#filler, 'a');
    try {
      for (const size of [65_536, 4096, 1]) {
        const block = Buffer.alloc(size);
        try {
          while (writeSync(descriptor, block) > 0);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        }
      }
    } finally {
      closeSync(descriptor);
    }
  }

  free(): void {
    rmSync(this.#filler);
  }
}

function mount(command: string, ...parameters: string[]): void {
  const { status, stderr } = spawnSync(command, parameters, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command}: ${stderr}`);
}
