import { type FileHandle, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { backupsIn, newestFirst } from './names.ts';

/** Thrown when a backup would leave less free space on its disk than the reserve. */
export class NotEnoughSpace extends Error {
  override readonly name = 'NotEnoughSpace';
}

/** Bytes that a user without privileges can still write. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/** Formats bytes for display: `0.4 MB`, `12 MB`. */
export function megabytes(bytes: number): string {
  const value = bytes / 1e6;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} MB`;
}

/** An upper estimate of an archive's size: 1.25 times the last archive, or half the size of the contents. */
export async function expectedBytes(folder: string, name: string, contentBytes: number): Promise<number> {
  const [newest] = newestFirst(await backupsIn(folder), name);
  return Math.ceil(newest === undefined ? contentBytes / 2 : 1.25 * (await stat(join(folder, newest))).size);
}

const CHECK_EVERY_BYTES = 4 * 1024 * 1024;

/** On a small disk, a tenth of it is reserve enough. */
const ENOUGH = 0.1;

/** The disk of a folder, on which `reserveBytes` must stay free. */
export class DiskSpace {
  readonly #folder: string;
  readonly #reserveBytes: number;

  constructor(folder: string, reserveBytes: number) {
    this.#folder = folder;
    this.#reserveBytes = reserveBytes;
  }

  /** Whether this many bytes can be written without using the reserve. */
  async has(bytes: number): Promise<boolean> {
    const { free, reserve } = await this.#read();
    return free - bytes >= reserve;
  }

  /** Throws NotEnoughSpace if writing this many bytes would use the reserve. */
  async require(bytes: number): Promise<void> {
    const { free, reserve } = await this.#read();
    if (free - bytes >= reserve) return;
    throw new NotEnoughSpace(
      `${megabytes(free)} are free in ${this.#folder}, ${megabytes(bytes + reserve)} are needed ` +
        `(${megabytes(reserve)} of them stay free, ops.backup.reserve_megabytes); remove what is not needed there, or lower ops.backup.keep or storage.max_megabytes`,
    );
  }

  async #read(): Promise<{ free: number; reserve: number }> {
    const { bavail, blocks, bsize } = await statfs(this.#folder);
    return { free: bavail * bsize, reserve: Math.min(this.#reserveBytes, ENOUGH * blocks * bsize) };
  }

  /** The last stage of a pipeline: writes to a file, and checks the free space every few megabytes. */
  writerTo(file: FileHandle): (chunks: AsyncIterable<Buffer>) => Promise<void> {
    return async (chunks) => {
      let unchecked = 0;
      for await (const chunk of chunks) {
        unchecked += chunk.length;
        if (unchecked >= CHECK_EVERY_BYTES) {
          unchecked = 0;
          await this.require(chunk.length);
        }
        await file.writeFile(chunk);
      }
    };
  }
}
