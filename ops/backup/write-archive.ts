import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { FILE_MODE } from '../lib/folder.ts';
import { MANIFEST, type ManifestFile } from './manifest.ts';
import type { Room } from './room.ts';
import { BLOCK_BYTES, encodeHeader, paddingBytes } from './tar.ts';

/** Of a 8-day database a third remains, at 7 ms of CPU a megabyte; higher levels take twice as long for 4 %. */
const LEVEL = 3;

/** A file to be put into an archive. */
export interface Member {
  /** In the archive. */
  readonly name: string;
  /** A file to read, or the content itself. */
  readonly content: string | Buffer;
}

/** A file became shorter while it was read: the next attempt finds it whole. */
export class ShrunkWhileRead extends Error {
  override readonly name = 'ShrunkWhileRead';
}

interface Opened {
  readonly size: number;
  readonly mode: number;
  readonly modifiedMs: number;
  readonly chunks: AsyncIterable<Buffer> | Iterable<Buffer>;
  readonly close: () => Promise<void>;
}

async function openMember({ content }: Member, nowMs: number): Promise<Opened | null> {
  if (typeof content !== 'string')
    return { size: content.length, mode: FILE_MODE, modifiedMs: nowMs, chunks: [content], close: async () => undefined };
  let handle: FileHandle;
  try {
    handle = await open(content, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null; // Pruned meanwhile.
    throw error;
  }
  const { mode, mtimeMs, size } = await handle.stat();
  const chunks = size === 0 ? [] : handle.createReadStream({ start: 0, end: size - 1, autoClose: false });
  return { size, mode: mode & 0o777, modifiedMs: Math.trunc(mtimeMs), chunks, close: () => handle.close() };
}

export interface WriteOptions {
  readonly members: readonly Member[];
  /** The manifest's text, of what the archive has got. */
  readonly manifest: (files: readonly ManifestFile[]) => string;
  readonly room: Room;
  readonly nowMs: number;
  readonly signal: AbortSignal;
  readonly progress: (name: string) => void;
}

/** Headers, contents and padding, with the manifest as last member: hashes are known once the rest was read, and nothing is read twice. */
async function* tarBytes({ manifest, members, nowMs, progress }: WriteOptions): AsyncGenerator<Buffer> {
  const files: ManifestFile[] = [];
  for (const member of members) {
    progress(member.name);
    const opened = await openMember(member, nowMs);
    if (!opened) continue;
    const { mode, modifiedMs, size } = opened;
    try {
      yield encodeHeader({ name: member.name, size, mode, modifiedMs });
      const hash = createHash('sha256');
      let left = size;
      for await (const chunk of opened.chunks) {
        left -= chunk.length;
        hash.update(chunk);
        yield chunk;
      }
      if (left > 0) throw new ShrunkWhileRead(`${member.content} became shorter while it was read`);
      yield Buffer.alloc(paddingBytes(size));
      const modified = new Date(modifiedMs).toISOString();
      files.push({ path: member.name, size, mode: `0${mode.toString(8).padStart(3, '0')}`, modified, sha256: hash.digest('hex') });
    } finally {
      await opened.close();
    }
  }
  const text = Buffer.from(manifest(files));
  yield encodeHeader({ name: MANIFEST, size: text.length, mode: FILE_MODE, modifiedMs: nowMs });
  yield text;
  yield Buffer.alloc(paddingBytes(text.length));
  yield Buffer.alloc(2 * BLOCK_BYTES); // The end of an archive.
}

/** Writes an archive, durably; whatever it throws, the file may be there in part. */
export async function writeArchive(path: string, options: WriteOptions): Promise<void> {
  const { room, signal } = options;
  const handle = await open(path, 'wx', FILE_MODE);
  try {
    await handle.chmod(FILE_MODE);
    const compress = createZstdCompress({
      params: { [constants.ZSTD_c_compressionLevel]: LEVEL, [constants.ZSTD_c_checksumFlag]: 1 },
    });
    const write = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
      for await (const chunk of room.guard(chunks)) await handle.writeFile(chunk);
    };
    await pipeline(tarBytes(options), compress, write, { signal });
    await handle.sync();
  } finally {
    await handle.close();
  }
}
