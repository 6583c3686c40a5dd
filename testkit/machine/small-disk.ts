/**
 * A tmpfs that is small enough for a test to fill it completely. Mounting it needs root, or a user and mount namespace. `npm test` runs in
 * one if the kernel allows it; otherwise `whyNotMountable` gives the reason to skip a test.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { temporaryFolder } from '../folder.ts';

let whyNot: string | undefined;

/** The reason why no tmpfs can be mounted here; null if it can. For tap's `skip`. */
export function whyNotMountable(): string | null {
  whyNot ??= tryToMount();
  return whyNot === '' ? null : whyNot;
}

/** Mounts one in the same way as a test; returns the problem, or an empty string. */
function tryToMount(): string {
  const folder = mkdtempSync(join(tmpdir(), 'edge-health-mount-'));
  try {
    mount('mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder);
    mount('umount', '--lazy', folder);
    return '';
  } catch (error) {
    return `mounting is not permitted here: ${(error as Error).message.trim()}`;
  } finally {
    rmdirSync(folder);
  }
}

/** A disk of two megabytes. */
export class SmallDisk {
  readonly folder: string;
  readonly #filler: string;
  #isMounted = true;

  constructor(t: Test) {
    this.folder = join(temporaryFolder(t), 'disk');
    this.#filler = join(this.folder, 'filler');
    mkdirSync(this.folder);
    mount('mount', '-t', 'tmpfs', '-o', 'size=2m,mode=755', 'tmpfs', this.folder);
    t.teardown(() => this.unmount());
  }

  unmount(): void {
    if (this.#isMounted) mount('umount', '--lazy', this.folder);
    this.#isMounted = false;
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

  /** `bind` is also permitted in a user namespace. */
  makeReadOnly(): void {
    mount('mount', '-o', 'remount,bind,ro', this.folder);
  }
}

function mount(command: string, ...parameters: string[]): void {
  const { error, status, stderr } = spawnSync(command, parameters, { encoding: 'utf8' });
  if (status !== 0) throw new Error(error?.message ?? stderr.trim());
}
