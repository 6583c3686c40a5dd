import * as fs from 'node:fs';
import { promisify } from 'node:util';

/** O_NONBLOCK, because opening a FIFO would block until it has a writer. */
const READ = fs.constants.O_RDONLY | fs.constants.O_NONBLOCK;

function checkIsFile(stats: fs.Stats): void {
  if (!stats.isFile()) throw new Error(stats.isDirectory() ? 'a folder, not a file' : 'not a file');
}

export class FileTooLarge extends Error {
  /** Null: it grew while it was read. */
  readonly size: number | null;

  constructor(maxBytes: number, size: number | null) {
    super(`larger than ${maxBytes} bytes`);
    this.size = size;
  }
}

/** The content of a regular file of at most `maxBytes`; rejects for others. */
export async function readRegularFile(path: string, maxBytes: number): Promise<Buffer> {
  const descriptor = await promisify(fs.open)(path, READ);
  try {
    const stats = await promisify(fs.fstat)(descriptor);
    checkIsFile(stats);
    if (stats.size > maxBytes) throw new FileTooLarge(maxBytes, stats.size);
    const buffer = Buffer.allocUnsafe(stats.size);
    const { bytesRead } = await promisify(fs.read)(descriptor, buffer, 0, buffer.length, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    fs.close(descriptor, () => undefined);
  }
}

/** The same at once, for small files that are read rarely; throws for others. */
export function readRegularFileSync(path: string, maxBytes: number): Buffer {
  const descriptor = fs.openSync(path, READ);
  try {
    const stats = fs.fstatSync(descriptor);
    checkIsFile(stats);
    if (stats.size > maxBytes) throw new FileTooLarge(maxBytes, stats.size);
    const buffer = Buffer.allocUnsafe(maxBytes + 1);
    let length = 0;
    while (length <= maxBytes) {
      const bytesRead = fs.readSync(descriptor, buffer, length, buffer.length - length, null);
      if (bytesRead === 0) return buffer.subarray(0, length);
      length += bytesRead;
    }
    throw new FileTooLarge(maxBytes, null);
  } finally {
    fs.closeSync(descriptor);
  }
}
