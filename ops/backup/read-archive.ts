import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createZstdDecompress } from 'node:zlib';
import { isMemberName, MANIFEST, type Manifest, type ManifestFile, parseManifest } from './manifest.ts';
import { BLOCK_BYTES, decodeHeader, paddingBytes, type TarHeader } from './tar.ts';

/** An archive that cannot be trusted; the message says why. */
export class Damaged extends Error {
  override readonly name = 'Damaged';
}

const LARGEST_MANIFEST_BYTES = 64 * 1024 * 1024;

/** Reads a stream of bytes in pieces of given sizes. */
class Bytes {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** The next at most `most` bytes; empty at the end. */
  async some(most: number): Promise<Buffer> {
    if (most === 0) return Buffer.alloc(0);
    while (this.#rest.length === 0) {
      const next = await this.#chunks.next();
      if (next.done) return Buffer.alloc(0);
      this.#rest = next.value;
    }
    const piece = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(most);
    return piece;
  }

  async exactly(count: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let left = count; left > 0; ) {
      const piece = await this.some(left);
      if (piece.length === 0) throw new Damaged('it ends in the middle');
      pieces.push(piece);
      left -= piece.length;
    }
    return Buffer.concat(pieces);
  }
}

/** Takes in what an archive has; null: nobody wants this file. */
export type Sink = (file: TarHeader) => Promise<FileHandle | null>;

export interface Checked {
  readonly manifest: Manifest;
  /** Of the archive as it lies on the disk. */
  readonly sha256: string;
  readonly bytes: number;
}

interface Content {
  readonly sha256: string;
  /** Of the manifest alone. */
  readonly text: string | null;
}

async function takeIn(bytes: Bytes, header: TarHeader, sink: Sink): Promise<Content> {
  if (header.name === MANIFEST) {
    if (header.size > LARGEST_MANIFEST_BYTES) throw new Damaged('its manifest is too large');
    const text = (await bytes.exactly(header.size)).toString('utf8');
    await bytes.exactly(paddingBytes(header.size));
    return { sha256: '', text };
  }
  const hash = createHash('sha256');
  const handle = await sink(header);
  try {
    for (let left = header.size; left > 0; ) {
      const piece = await bytes.some(left);
      if (piece.length === 0) throw new Damaged('it ends in the middle');
      hash.update(piece);
      await handle?.writeFile(piece);
      left -= piece.length;
    }
    await handle?.sync();
  } finally {
    await handle?.close();
  }
  await bytes.exactly(paddingBytes(header.size));
  return { sha256: hash.digest('hex'), text: null };
}

function compare(manifest: Manifest, found: readonly ManifestFile[]): void {
  for (const [index, file] of manifest.files.entries()) {
    const there = found[index];
    if (there?.path !== file.path) throw new Damaged(`${file.path} of its manifest is not there`);
    for (const key of ['size', 'mode', 'sha256'] as const)
      if (there[key] !== file[key]) throw new Damaged(`${file.path} is not as its manifest says (${key})`);
  }
  const more = found[manifest.files.length];
  if (more) throw new Damaged(`${more.path} is not in its manifest`);
}

async function takeInAll(chunks: AsyncIterable<Buffer>, sink: Sink): Promise<Manifest> {
  const bytes = new Bytes(chunks);
  const found: ManifestFile[] = [];
  const names = new Set<string>();
  let manifest: Manifest | null = null;
  for (;;) {
    const header = decodeHeader(await bytes.exactly(BLOCK_BYTES));
    if (!header) break;
    const { mode, modifiedMs, name, size } = header;
    if (manifest) throw new Damaged('its manifest is not its last file');
    if (name !== MANIFEST && !isMemberName(name)) throw new Damaged(`it holds "${name}", which backups do not have`);
    if (names.has(name)) throw new Damaged(`it holds ${name} twice`);
    names.add(name);
    const { sha256, text } = await takeIn(bytes, header, sink);
    if (text === null) {
      const modified = new Date(modifiedMs).toISOString();
      found.push({ path: name, size, mode: `0${(mode & 0o777).toString(8).padStart(3, '0')}`, modified, sha256 });
    } else manifest = parseManifest(text);
  }
  // The second block of zeros, after which nothing comes.
  if (decodeHeader(await bytes.exactly(BLOCK_BYTES)) !== null || (await bytes.some(1)).length > 0)
    throw new Damaged('something follows its end');
  if (!manifest) throw new Damaged('it has no manifest: it is no backup of edge-health');
  compare(manifest, found);
  return manifest;
}

/**
 * Reads an archive from end to end, every file against the manifest; `sink` gets the contents, which count for nothing until this
 * resolves. Throws Damaged for whatever is not exactly what a backup holds, and errors of the disk as they are.
 */
export async function readArchive(path: string, sink: Sink = async () => null, signal?: AbortSignal): Promise<Checked> {
  const handle = await open(path, 'r');
  try {
    const { size } = await handle.stat();
    const hash = createHash('sha256');
    async function* hashed(): AsyncGenerator<Buffer> {
      for await (const chunk of handle.createReadStream({ start: 0, autoClose: false, highWaterMark: 256 * 1024 })) {
        hash.update(chunk);
        yield chunk;
      }
    }
    const decompress = createZstdDecompress();
    let manifest: Manifest | null = null;
    await pipeline(
      hashed(),
      decompress,
      async (chunks: AsyncIterable<Buffer>) => {
        manifest = await takeInAll(chunks, sink);
      },
      signal ? { signal } : {},
    );
    if (decompress.bytesWritten !== size) throw new Damaged('something follows its end');
    return { manifest: manifest as unknown as Manifest, sha256: hash.digest('hex'), bytes: size };
  } catch (error) {
    throw asDamage(error, path);
  } finally {
    await handle.close();
  }
}

/** What the decompressor and the parsers say is damage as well; errors of the disk and an abort stay what they are. */
function asDamage(error: unknown, path: string): unknown {
  const { code, message, name, syscall } = error as NodeJS.ErrnoException;
  if (syscall !== undefined || name === 'AbortError') return error;
  const isDamage =
    error instanceof Damaged || error instanceof RangeError || error instanceof SyntaxError || /^(ZSTD_|Z_|ERR_)/.test(code ?? '');
  return isDamage ? new Damaged(`${path} is damaged, or no backup of edge-health: ${message}`) : error;
}
