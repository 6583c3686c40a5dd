import { createHash } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { setTimeout as later } from 'node:timers/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { Header } from 'tar/header';
import { FILE_MODE } from '../lib/files.ts';
import type { DiskSpace } from './disk-space.ts';
import { MANIFEST, type Manifest, type ManifestFile } from './manifest.ts';
import { BLOCK_BYTES, END_BYTES, modeText, paddedBytes } from './read-archive.ts';

// The npm package `tar` writes the headers. Neither its create nor GNU tar is used: rows are appended to the files while they are read, so
// both would need a copy of every file to get the hashes in the manifest right. Minimal Debian has no `zstd` program, so Node compresses.

/** Compresses an eight-day database to a third, at 7 ms of CPU per megabyte. Higher levels take twice as long to save another 4 %. */
const LEVEL = 3;
const ATTEMPTS = 3;
const BETWEEN_ATTEMPTS_MS = 2000;

/** A file to be put into an archive. */
export interface Member {
  /** Name in the archive. */
  readonly name: string;
  /** The path of a file, or the content itself. */
  readonly content: string | Buffer;
}

interface WriteOptions {
  readonly members: readonly Member[];
  readonly about: Omit<Manifest, 'files'>;
  readonly space: DiskSpace;
  readonly signal: AbortSignal;
  readonly progress: (name: string) => void;
}

/** A file shrank while it was read, for example because its torn last line was removed. The next attempt reads all of it. */
class ShrunkWhileRead extends Error {}

/** Writes an archive durably. If it throws, a partial file may exist. */
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
  await using file = await open(path, 'wx', FILE_MODE);
  await file.chmod(FILE_MODE); // Independent of the umask.
  const compress = createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: LEVEL, [constants.ZSTD_c_checksumFlag]: 1 } });
  await pipeline(tarOf(options), compress, options.space.writerTo(file), { signal: options.signal });
  await file.sync();
}

/** The manifest comes last: the hashes are known by then, and no file is read twice. */
async function* tarOf({ about, members, progress }: WriteOptions): AsyncGenerator<Buffer> {
  const files: ManifestFile[] = [];
  const madeMs = Date.parse(about.made);
  for (const member of members) {
    progress(member.name);
    yield* archived(member, madeMs, files);
  }
  const manifest = Buffer.from(`${JSON.stringify({ ...about, files } satisfies Manifest, null, 1)}\n`);
  yield* archived({ name: MANIFEST, content: manifest }, madeMs, []);
  yield Buffer.alloc(END_BYTES);
}

/**
 * Yields header, content and padding of one member, then adds it to `files`. Owners are omitted: the files belong to
 * the user who extracts them.
 */
async function* archived({ content, name }: Member, madeMs: number, files: ManifestFile[]): AsyncGenerator<Buffer> {
  await using file = typeof content === 'string' ? await openIfThere(content) : null;
  if (file === null && typeof content === 'string') return; // Pruned in the meantime.
  // Read only up to the current size: rows may be appended during the read.
  const { mode, mtimeMs, size } = (await file?.stat()) ?? { mode: FILE_MODE, mtimeMs: madeMs, size: content.length };
  const mtime = new Date(Math.max(0, Math.trunc(mtimeMs)));
  const header = Buffer.alloc(BLOCK_BYTES);
  new Header({ path: name, size, mode: mode & 0o777, uid: 0, gid: 0, mtime, type: 'File' }).encode(header);
  yield header;

  const hash = createHash('sha256');
  let left = size;
  const chunks = file === null ? [content as Buffer] : size === 0 ? [] : file.createReadStream({ end: size - 1, autoClose: false });
  for await (const chunk of chunks) {
    left -= chunk.length;
    hash.update(chunk);
    yield chunk;
  }
  if (left > 0) throw new ShrunkWhileRead(`${name} became shorter while it was read`);
  yield Buffer.alloc(paddedBytes(size) - size);
  files.push({ path: name, size, mode: modeText(mode), modified: mtime.toISOString(), sha256: hash.digest('hex') });
}

function openIfThere(path: string) {
  return open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}
