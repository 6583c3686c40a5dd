import { Header } from 'tar/header';

/** A member of an archive: a regular file. Nothing else is written, and nothing else is taken in. */
export interface TarHeader {
  readonly name: string;
  readonly size: number;
  /** Permission bits. */
  readonly mode: number;
  readonly modifiedMs: number;
}

export const BLOCK_BYTES = 512;
/** What the field has room for, with the zero at its end. */
export const LONGEST_NAME_BYTES = 99;
const PERMISSIONS = 0o7777;

/** A header of POSIX's ustar format. Owners are left out: whoever unpacks owns. */
export function encodeHeader({ modifiedMs, mode, name, size }: TarHeader): Buffer {
  if (Buffer.byteLength(name) > LONGEST_NAME_BYTES) throw new RangeError(`a name too long for the archive: ${name}`);
  const block = Buffer.alloc(BLOCK_BYTES);
  const mtime = new Date(Math.max(0, modifiedMs));
  new Header({ path: name, size, mode: mode & PERMISSIONS, uid: 0, gid: 0, mtime, type: 'File' }).encode(block, 0);
  return block;
}

/** The header in a block; null: a block of zeros, with which an archive ends. Throws for whatever encodeHeader does not write. */
export function decodeHeader(block: Buffer): TarHeader | null {
  const { cksumValid, mode, mtime, nullBlock, path, size, type } = parsed(block);
  if (nullBlock) return null;
  if (!cksumValid || path === undefined) throw new RangeError('not a header of a tar archive');
  if (type !== 'File') throw new RangeError(`"${path}" is no regular file`);
  if (Buffer.byteLength(path) > LONGEST_NAME_BYTES) throw new RangeError(`the name of "${path}" is in a form that backups do not have`);
  const modifiedMs = mtime?.getTime();
  if (!Number.isSafeInteger(size) || !Number.isSafeInteger(mode) || !Number.isSafeInteger(modifiedMs))
    throw new RangeError(`a damaged header of "${path}"`);
  return { name: path, size: size as number, mode: mode as number, modifiedMs: modifiedMs as number };
}

function parsed(block: Buffer): Header {
  try {
    return new Header(block);
  } catch (error) {
    throw new RangeError(`not a header of a tar archive: ${(error as Error).message}`); // A number in base 256 that is none.
  }
}

/** Zeros that fill up a member of this size to whole blocks. */
export function paddingBytes(size: number): number {
  return (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
}
