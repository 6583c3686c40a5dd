import { statfs } from 'node:fs/promises';

/** A backup would leave less free space on its disk than is reserved. */
export class NotEnoughSpace extends Error {
  override readonly name = 'NotEnoughSpace';
}

/** What a user without privileges can still write, in bytes. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/** Bytes for people: `0.4 MB`, `12 MB`. */
export function megabytes(bytes: number): string {
  const value = bytes / 1e6;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} MB`;
}

const CHECK_EVERY_BYTES = 4 * 1024 * 1024;

/** The disk of a folder, on which `reserveBytes` stay free. */
export class DiskSpace {
  readonly #folder: string;
  readonly #reserveBytes: number;
  #unchecked = 0;

  constructor(folder: string, reserveBytes: number) {
    this.#folder = folder;
    this.#reserveBytes = reserveBytes;
  }

  /** Throws NotEnoughSpace when writing so much would use the reserve. */
  async require(bytes: number): Promise<void> {
    const free = await freeBytes(this.#folder);
    if (free - bytes >= this.#reserveBytes) return;
    throw new NotEnoughSpace(
      `${megabytes(free)} are free in ${this.#folder}, ${megabytes(bytes + this.#reserveBytes)} are needed ` +
        `(${megabytes(this.#reserveBytes)} of them stay free, ops.backup.reserve_megabytes); remove what is not needed there, or lower ops.backup.keep or storage.max_megabytes`,
    );
  }

  /** Passes chunks on and checks the disk every few megabytes. */
  async *guard(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      this.#unchecked += chunk.length;
      if (this.#unchecked >= CHECK_EVERY_BYTES) {
        this.#unchecked = 0;
        await this.require(chunk.length);
      }
      yield chunk;
    }
  }
}
