import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncFolder } from '../../src/system/atomic-file.ts';
import { FILE_MODE } from './folder.ts';

const BLOCK_BYTES = 65_536;
const NEWLINE = 0x0a;

export interface AppendOptions {
  /** What the file begins with, written with the first lines. */
  readonly head?: string;
  /** Whether the lines must outlast a power cut from here on; otherwise it may take what the kernel has not yet written, about the last half minute. */
  readonly durable?: boolean;
}

export interface Appended {
  /** Bytes of a torn last line that were cut off first: a power cut, or a process killed in the middle. */
  readonly cut: number;
  /** The file's length now. */
  readonly size: number;
}

/**
 * Appends whole lines to a file, which is made if need be, in one write: all of them or, when it throws (a full disk), none.
 * A torn last line is cut off before. Only one process may append to a file at a time.
 */
export async function appendLines(file: string, lines: string, { head = '', durable = false }: AppendOptions = {}): Promise<Appended> {
  const handle = await open(file, 'a+', FILE_MODE);
  try {
    const { size } = await handle.stat();
    const whole = await endOfLastLine(handle, size);
    if (whole < size) await handle.truncate(whole);
    const text = whole === 0 ? head + lines : lines;
    try {
      await handle.appendFile(text);
      if (durable) await handle.datasync();
      if (durable && size === 0) await syncFolder(dirname(file));
    } catch (error) {
      await handle.truncate(whole).catch(() => undefined); // What stays torn is cut off next time.
      throw error;
    }
    return { cut: size - whole, size: whole + Buffer.byteLength(text) };
  } finally {
    await handle.close();
  }
}

/** Cuts a torn last line off; how many bytes that were. */
export async function cutTornLine(file: string): Promise<number> {
  const handle = await open(file, 'r+');
  try {
    const { size } = await handle.stat();
    const whole = await endOfLastLine(handle, size);
    if (whole < size) await handle.truncate(whole);
    return size - whole;
  } finally {
    await handle.close();
  }
}

/** Where the last whole line of a file of this size ends; 0: it has none. */
async function endOfLastLine(handle: FileHandle, size: number): Promise<number> {
  let block = Buffer.alloc(1); // Nearly always the last byte tells.
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - block.length);
    const { bytesRead } = await handle.read(block, 0, end - start, start);
    const at = block.subarray(0, bytesRead).lastIndexOf(NEWLINE);
    if (at >= 0) return start + at + 1;
    end = start;
    if (block.length === 1) block = Buffer.alloc(BLOCK_BYTES);
  }
  return 0;
}
