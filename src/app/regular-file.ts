import * as fs from 'node:fs';
import { promisify } from 'node:util';

/** The content of a regular file of at most `maxBytes`; rejects for others: opening a FIFO would block until it has a writer. */
export async function readRegularFile(path: string, maxBytes: number): Promise<Buffer> {
  const descriptor = await promisify(fs.open)(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  try {
    const stats = await promisify(fs.fstat)(descriptor);
    if (!stats.isFile()) throw new Error('not a file');
    if (stats.size > maxBytes) throw new Error(`larger than ${maxBytes} bytes`);
    const buffer = Buffer.allocUnsafe(stats.size);
    const { bytesRead } = await promisify(fs.read)(descriptor, buffer, 0, buffer.length, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    fs.close(descriptor, () => undefined);
  }
}
