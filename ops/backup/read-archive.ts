import { createHash } from 'node:crypto';
import { closeSync, fchmodSync, fsyncSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdDecompress } from 'node:zlib';
import { Parser } from 'tar/parse';
import type { ReadEntry } from 'tar/read-entry';
import { FILE_MODE, FOLDER_MODE } from '../lib/files.ts';
import { megabytes } from './disk-space.ts';
import { isMemberName, MANIFEST, MAX_FILES, type Manifest, type ManifestFile, parseManifest } from './manifest.ts';

// The npm package `tar` parses the members. Neither its extract nor GNU tar is used: an archive may come from an untrusted source, and both
// follow extensions of the format that no backup has, and write files before they have read the manifest, the last member.

export const BLOCK_BYTES = 512;
/** The first octet of gzip (RFC 1952), with which no name of a member begins. */
const GZIP_OCTET = 0x1f;
/** Two blocks of zeros end an archive. */
export const END_BYTES = 2 * BLOCK_BYTES;
/** With as many files as a backup may have, it takes half of this. */
const LARGEST_MANIFEST_BYTES = 4 * 1024 * 1024;
/** JSON within JSON without members takes a hundred times its length in memory; no manifest has it. */
const NESTED_LISTS = /\[\s*\[|\{\s*\}/;
const STRINGS = /"(?:[^"\\]|\\.)*"/g;
/** The contents of a backup are at most this many times as large as its file, or at most LARGEST_SMALL_BYTES. */
const MAX_RATIO = 100;
const LARGEST_SMALL_BYTES = 256e6;
/** Base 2 logarithm of the memory for decompression; write-archive.ts needs 21. */
const MAX_WINDOW_LOG = 23;

export function paddedBytes(size: number): number {
  return Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
}

export function modeText(mode: number): string {
  return `0${(mode & 0o777).toString(8).padStart(3, '0')}`;
}

/** Thrown when the archive cannot be trusted; the message gives the reason. */
export class Damaged extends Error {
  override readonly name = 'Damaged';
}

export interface CheckedArchive {
  readonly manifest: Manifest;
  /** Hash of the archive file. */
  readonly sha256: string;
  readonly bytes: number;
}

/** Where to write the files of an archive, and which of them; all if omitted. */
interface Extraction {
  readonly folder: string;
  readonly includes?: (path: string) => boolean;
}

/**
 * Reads an archive from end to end and compares every file with the manifest. Throws Damaged for anything that is not exactly a backup, and
 * disk errors unchanged. Extracted files must not be used before this resolves.
 */
export async function readArchive(path: string, signal?: AbortSignal, extraction?: Extraction): Promise<CheckedArchive> {
  await using file = await open(path, 'r');
  const { size } = await file.stat();
  const hash = createHash('sha256');
  async function* hashed(): AsyncGenerator<Buffer> {
    for await (const chunk of file.createReadStream({ start: 0, autoClose: false, highWaterMark: 256 * 1024 })) {
      hash.update(chunk);
      yield chunk;
    }
  }
  const decompress = createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: MAX_WINDOW_LOG } });
  const members = new MemberReader(Math.max(LARGEST_SMALL_BYTES, MAX_RATIO * size), extraction);
  const parse = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of chunks) members.write(chunk);
  };
  try {
    await pipeline(hashed(), decompress, parse, signal ? { signal } : {}).finally(() => members.close());
    if (decompress.bytesWritten !== size) throw new Damaged('data follows its end');
    return { manifest: members.verify(), sha256: hash.digest('hex'), bytes: size };
  } catch (error) {
    throw asDamage(error as Error, path);
  }
}

/** Reads the members of a tar stream as they arrive: hashes each and, if requested, writes it. */
class MemberReader {
  readonly #maxBytes: number;
  readonly #extraction: Extraction | undefined;
  readonly #parser = new Parser({ strict: true, zstd: false, onReadEntry: (entry) => this.#onMember(entry) });
  readonly #found = new Map<string, Pick<ManifestFile, 'size' | 'mode' | 'sha256'>>();
  readonly #manifest: Buffer[] = [];
  /** The member that is being written. */
  #descriptor: number | null = null;
  #bytes = 0;
  /** The length of a stream with only these members. Anything else in it, which the parser skips or interprets, makes it longer. */
  #expectedBytes = END_BYTES;
  #isEnded = false;

  constructor(maxBytes: number, extraction: Extraction | undefined) {
    this.#maxBytes = maxBytes;
    this.#extraction = extraction;
    this.#parser.on('eof', () => {
      this.#isEnded = true;
    });
  }

  write(chunk: Buffer): void {
    if (this.#isEnded) throw new Damaged('data follows its end'); // The parser would buffer all of it in memory.
    // The parser would decompress it without any limit.
    if (this.#bytes === 0 && chunk[0] === GZIP_OCTET) throw new Damaged('it is compressed twice');
    this.#bytes += chunk.length;
    this.#checkSize(this.#bytes);
    this.#parser.write(chunk); // Calls the callbacks below; throws their errors, and an error for input that is not tar.
  }

  #checkSize(bytes: number): void {
    if (bytes <= this.#maxBytes) return;
    const shown = `${megabytes(bytes)}, at most ${megabytes(this.#maxBytes)} are allowed for a file of its size`;
    throw new Damaged(`it expands to at least ${shown}; use a backup that edge-health made`);
  }

  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }

  #onMember(member: ReadEntry): void {
    const { mode = 0, path: name, size, type } = member;
    if (type !== 'File') throw new Damaged(`"${name}" is not a regular file`);
    if (this.#manifest.length > 0) throw new Damaged('its manifest is not its last file');
    if (name !== MANIFEST && !isMemberName(name)) throw new Damaged(`it holds "${name}", which backups do not have`);
    if (this.#found.has(name)) throw new Damaged(`it holds ${name} twice`);
    if (this.#found.size > MAX_FILES) throw new Damaged(`it holds more than ${MAX_FILES} files`);
    this.#expectedBytes += BLOCK_BYTES + paddedBytes(size);
    this.#checkSize(this.#expectedBytes);
    if (name === MANIFEST) {
      if (size > LARGEST_MANIFEST_BYTES) throw new Damaged('its manifest is too large');
      member.on('data', (chunk) => this.#manifest.push(chunk));
      return;
    }
    const { folder, includes = () => true } = this.#extraction ?? {};
    if (folder !== undefined && includes(name)) {
      const place = join(folder, name);
      mkdirSync(dirname(place), { recursive: true, mode: FOLDER_MODE });
      this.#descriptor = openSync(place, 'wx', 0o600); // Does not follow a link at this path.
    }
    const hash = createHash('sha256');
    member.on('data', (chunk) => {
      hash.update(chunk);
      if (this.#descriptor !== null) writeFileSync(this.#descriptor, chunk);
    });
    member.on('end', () => {
      this.#found.set(name, { size, mode: modeText(mode), sha256: hash.digest('hex') });
      if (this.#descriptor === null) return;
      fchmodSync(this.#descriptor, mode & 0o777);
      fsyncSync(this.#descriptor);
      this.close();
    });
  }

  /** Compares the members with the manifest. */
  verify(): Manifest {
    this.#parser.end(); // Throws if the last member is truncated.
    if (this.#manifest.length === 0) throw new Damaged('it has no manifest, so it is not a backup of edge-health');
    const text = Buffer.concat(this.#manifest).toString('utf8');
    if (NESTED_LISTS.test(text.replaceAll(STRINGS, ''))) throw new Damaged('its manifest has lists or objects that no backup has');
    const manifest = parseManifest(text);
    for (const file of manifest.files) {
      const found = this.#found.get(file.path);
      if (!found) throw new Damaged(`${file.path} of its manifest is not there`);
      for (const key of ['size', 'mode', 'sha256'] as const)
        if (found[key] !== file[key]) throw new Damaged(`${file.path} differs from its manifest (${key})`);
      this.#found.delete(file.path);
    }
    for (const name of this.#found.keys()) throw new Damaged(`${name} is not in its manifest`);
    if (this.#bytes !== this.#expectedBytes) throw new Damaged('it holds more or less than its files');
    return manifest;
  }
}

/** Extracts an already checked archive into a new folder, durably, and verifies it again while doing so. */
export async function extractArchive(path: string, checked: CheckedArchive, signal: AbortSignal, extraction: Extraction): Promise<void> {
  const again = await readArchive(path, signal, extraction);
  if (again.sha256 !== checked.sha256) throw new Damaged(`${path} changed while it was read`);
  await writeFile(join(extraction.folder, MANIFEST), `${JSON.stringify(checked.manifest, null, 1)}\n`, { mode: FILE_MODE });
}

/** Treats errors of the decompressor and the parsers as damage. Disk errors and an abort stay unchanged. */
function asDamage(error: NodeJS.ErrnoException, path: string): Error {
  const { code = '', message, name, syscall } = error;
  if (syscall !== undefined || name === 'AbortError') return error;
  const isParsing = [Damaged, RangeError, SyntaxError].some((kind) => error instanceof kind) || 'tarCode' in error;
  if (!isParsing && !/^(ZSTD_|Z_|ERR_)/.test(code)) return error;
  return new Damaged(`${path} is damaged, or not a backup of edge-health: ${message}`);
}
