import { close, fchmod, fdatasync, fsync, open, rename, rm, write } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { readRegularFile } from './regular-file.ts';

// node:fs/promises is avoided because it takes 3 MB of memory, also in the long-running programs that use this file.
const file = {
  open: promisify(open),
  chmod: promisify(fchmod),
  write: promisify(write) as (fd: number, bytes: Uint8Array, offset: number) => Promise<{ bytesWritten: number }>,
  datasync: promisify(fdatasync),
  sync: promisify(fsync),
  close: promisify(close),
  rename: promisify(rename),
  remove: promisify(rm),
};

/** Default mode: the group may read the file. */
const MODE = 0o640;
const MAX_READ_BYTES = 64 * 1024 * 1024;

/**
 * Replaces a file atomically: a reader sees the old or the new content, also after SIGKILL or a power cut. If it throws, the old content is
 * unchanged. Only one writer at a time. Without `durable`, a power cut may restore the old content; this saves an fsync of the folder.
 */
export async function writeAtomically(
  path: string,
  content: string,
  { durable = false, mode }: { durable?: boolean; mode?: number } = {},
): Promise<void> {
  const temporary = `${path}.new`;
  try {
    // A link or FIFO at this path would be followed, or block until it has a reader.
    await file.remove(temporary, { force: true, recursive: true });
    const fd = await file.open(temporary, 'wx', MODE);
    try {
      if (mode !== undefined) await file.chmod(fd, mode); // The mode of open() is reduced by the umask.
      const bytes = Buffer.from(content);
      for (let done = 0; done < bytes.length; ) done += (await file.write(fd, bytes, done)).bytesWritten;
      await file.datasync(fd); // Otherwise the rename could reach the disk before the content.
    } finally {
      await file.close(fd);
    }
    await file.rename(temporary, path);
  } catch (error) {
    await file.remove(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
  if (durable) await syncFolder(dirname(path));
}

/** Makes the directory entries of a folder survive a power cut. */
export async function syncFolder(folder: string): Promise<void> {
  const fd = await file.open(folder, 'r');
  try {
    await file.sync(fd);
  } finally {
    await file.close(fd);
  }
}

/** The content of a regular file; null: there is no such file. Rejects for anything else, and for a file above 64 MB. */
export async function readIfThere(path: string): Promise<string | null> {
  try {
    return (await readRegularFile(path, MAX_READ_BYTES)).toString();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
