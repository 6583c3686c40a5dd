import { createHash } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { setTimeout as later } from 'node:timers/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { Header } from 'tar/header';
import { FILE_MODE } from '../lib/folder.ts';
import type { DiskSpace } from './disk-space.ts';
import { MANIFEST, type ManifestFile } from './manifest.ts';
import { BLOCK_BYTES, END_BYTES, modeText, paddedBytes } from './read-archive.ts';

// Headers are written by the npm package `tar`. Neither its create nor GNU tar is used: rows are appended to the files while they are read, so
// both would need a copy of every file for the hashes in the manifest to be right. A minimal Debian has no program `zstd`; Node compresses.

/** A third of an eight-day database remains, at 7 ms of CPU per megabyte; higher levels take twice as long for 4 %. */
const LEVEL = 3;
const ATTEMPTS = 3;
const BETWEEN_ATTEMPTS_MS = 2000;

/** A file to be put into an archive. */
export interface Member {
  /** In the archive. */
  readonly name: string;
  /** The path of a file, or the content itself. */
  readonly content: string | Buffer;
}

export interface WriteOptions {
  readonly members: readonly Member[];
  /** Returns the text of the manifest for the files that were archived. */
  readonly manifest: (files: readonly ManifestFile[]) => string;
  readonly space: DiskSpace;
  readonly nowMs: number;
  readonly signal: AbortSignal;
  readonly progress: (name: string) => void;
}

/** A file became shorter while it was read, for example because its torn last line was cut off. The next attempt reads all of it. */
class ShrunkWhileRead extends Error {}

/** Writes an archive durably. When it throws, the file may exist in part. */
export async function writeArchive(path: string, options: WriteOptions): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await writeOnce(path, options);
    } catch (error) {
      if (!(error instanceof ShrunkWhileRead) || attempt === ATTEMPTS) throw error;
      await rm(path, { force: true });
      await later(BETWEEN_ATTEMPTS_MS, undefined, { signal: options.signal });
    }
  }
}

async function writeOnce(path: string, options: WriteOptions): Promise<void> {
  const { signal, space } = options;
  const handle = await open(path, 'wx', FILE_MODE);
  try {
    await handle.chmod(FILE_MODE); // Independent of the umask.
    const compress = createZstdCompress({
      params: { [constants.ZSTD_c_compressionLevel]: LEVEL, [constants.ZSTD_c_checksumFlag]: 1 },
    });
    const write = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
      for await (const chunk of space.guard(chunks)) await handle.writeFile(chunk);
    };
    await pipeline(tarStream(options), compress, write, { signal });
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The manifest comes last: by then the hashes are known, and no file is read twice. */
async function* tarStream({ manifest, members, nowMs, progress }: WriteOptions): AsyncGenerator<Buffer> {
  const files: ManifestFile[] = [];
  for (const { content, name } of members) {
    progress(name);
    if (typeof content !== 'string') {
      yield* memberStream({ name, size: content.length, mode: FILE_MODE, modifiedMs: nowMs }, [content], files);
      continue;
    }
    const handle = await openIfThere(content);
    if (!handle) continue; // Pruned meanwhile.
    try {
      // To the size of now: rows may be appended while it is read.
      const { mode, mtimeMs, size } = await handle.stat();
      const chunks = size === 0 ? [] : handle.createReadStream({ start: 0, end: size - 1, autoClose: false });
      yield* memberStream({ name, size, mode: mode & 0o777, modifiedMs: Math.trunc(mtimeMs) }, chunks, files);
    } finally {
      await handle.close();
    }
  }
  const text = Buffer.from(manifest([...files]));
  yield* memberStream({ name: MANIFEST, size: text.length, mode: FILE_MODE, modifiedMs: nowMs }, [text], files);
  yield Buffer.alloc(END_BYTES);
}

async function openIfThere(path: string): Promise<FileHandle | null> {
  return open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}

interface Metadata {
  readonly name: string;
  readonly size: number;
  readonly mode: number;
  readonly modifiedMs: number;
}

/** Header, content and padding of one member, which is then added to `files`. Owners are left out: the files belong to the user who extracts them. */
async function* memberStream(
  { mode, modifiedMs, name, size }: Metadata,
  chunks: AsyncIterable<Buffer> | Iterable<Buffer>,
  files: ManifestFile[],
): AsyncGenerator<Buffer> {
  const block = Buffer.alloc(BLOCK_BYTES);
  const mtime = new Date(Math.max(0, modifiedMs));
  new Header({ path: name, size, mode, uid: 0, gid: 0, mtime, type: 'File' }).encode(block);
  yield block;
  const hash = createHash('sha256');
  let left = size;
  for await (const chunk of chunks) {
    left -= chunk.length;
    hash.update(chunk);
    yield chunk;
  }
  if (left > 0) throw new ShrunkWhileRead(`${name} became shorter while it was read`);
  yield Buffer.alloc(paddedBytes(size) - size);
  files.push({ path: name, size, mode: modeText(mode), modified: mtime.toISOString(), sha256: hash.digest('hex') });
}
