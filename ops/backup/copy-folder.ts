import { createHash } from 'node:crypto';
import { copyFile, mkdir, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder } from '../../src/system/atomic-file.ts';
import { diskProblem } from '../lib/disk-problem.ts';
import { CopyProblem, type CopyTarget } from './copy-target.ts';
import { isUnmounted } from './mounts.ts';
import { isPartial, timeOfBackup } from './names.ts';
import { freeBytes, megabytes } from './room.ts';

/** Left free on the target's disk. */
const MARGIN_BYTES = 1e6;

async function sha256(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  const handle = await open(path, 'r');
  try {
    for await (const chunk of handle.createReadStream({ autoClose: false, highWaterMark: 256 * 1024 })) {
      signal.throwIfAborted();
      hash.update(chunk);
    }
    return hash.digest('hex');
  } finally {
    await handle.close();
  }
}

/** A folder of this machine: a USB disk, a share of the network. */
export class FolderTarget implements CopyTarget {
  readonly #target: string;
  readonly #host: string;

  constructor(target: string, host: string) {
    this.#target = target;
    this.#host = host;
  }

  get #folder(): string {
    return join(this.#target, this.#host);
  }

  async list(): Promise<ReadonlyMap<string, number>> {
    return this.#saying(async () => {
      const real = await realpath(this.#target).catch(() => null);
      if (real === null || !(await stat(real)).isDirectory())
        throw new CopyProblem(`there is no folder ${this.#target}; make it, or mount its disk`);
      if (await isUnmounted(real))
        throw new CopyProblem(`no disk is mounted at ${this.#target}; mount it, or take it out of ops.backup.copy_to`);
      await mkdir(this.#folder, { mode: 0o750 }).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
      });
      const there = new Map<string, number>();
      for (const name of await readdir(this.#folder)) {
        if (isPartial(name)) await rm(join(this.#folder, name), { force: true });
        else if (timeOfBackup(name) !== null) there.set(name, (await stat(join(this.#folder, name))).size);
      }
      return there;
    });
  }

  async put(path: string, name: string, signal: AbortSignal): Promise<void> {
    const temporary = join(this.#folder, `${name}.partial`);
    await this.#saying(async () => {
      try {
        const { size } = await stat(path);
        const free = await freeBytes(this.#folder);
        if (free < size + MARGIN_BYTES)
          throw new CopyProblem(
            `${megabytes(free)} are free in ${this.#target}, ${megabytes(size + MARGIN_BYTES)} are needed; remove what is not needed there`,
          );
        await copyFile(path, temporary);
        const handle = await open(temporary, 'r+');
        await handle.sync().finally(() => handle.close());
        if ((await sha256(temporary, signal)) !== (await sha256(path, signal)))
          throw new CopyProblem(`${name} is not the same when read back from ${this.#target}: look at that disk (dmesg)`);
        await rename(temporary, join(this.#folder, name));
        await syncFolder(this.#folder);
      } catch (error) {
        await rm(temporary, { force: true }).catch(() => undefined); // The first error says more.
        throw error;
      }
    });
  }

  async remove(names: readonly string[]): Promise<void> {
    await this.#saying(async () => {
      for (const name of names) await rm(join(this.#folder, name), { force: true });
    });
  }

  async #saying<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const problem = error instanceof CopyProblem ? null : diskProblem(error, this.#target);
      throw problem === null ? error : new CopyProblem(problem);
    }
  }
}
