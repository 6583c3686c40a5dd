import { close, fchmod, fdatasync, fsync, open, readFile, rename, rm, write } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

// Not node:fs/promises, which costs 3 MB: a program that stays in memory uses this file, too.
const file = {
  open: promisify(open),
  chmod: promisify(fchmod),
  write: promisify(write) as (fd: number, bytes: Uint8Array, offset: number) => Promise<{ bytesWritten: number }>,
  datasync: promisify(fdatasync),
  sync: promisify(fsync),
  close: promisify(close),
  rename: promisify(rename),
  remove: promisify(rm),
  read: promisify(readFile),
};

/** A file's mode where nothing else is said: its group may read. */
const MODE = 0o640;

/**
 * Replaces a file so that a reader, a kill or a power cut finds the old content or the new, never a mixture; throws with the old
 * one in place. One writer at a time. Not durable: a power cut may bring the old content back, which spares flash an fsync of the folder.
 */
export async function writeAtomically(
  path: string,
  content: string,
  { durable = false, mode }: { durable?: boolean; mode?: number } = {},
): Promise<void> {
  const temporary = `${path}.new`;
  try {
    const fd = await file.open(temporary, 'w', MODE);
    try {
      if (mode !== undefined) await file.chmod(fd, mode); // Whatever the umask.
      const bytes = Buffer.from(content);
      for (let done = 0; done < bytes.length; ) done += (await file.write(fd, bytes, done)).bytesWritten;
      await file.datasync(fd); // Otherwise the name could reach the disk before the content.
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

/** Makes the names in a folder outlast a power cut. */
export async function syncFolder(folder: string): Promise<void> {
  const fd = await file.open(folder, 'r');
  try {
    await file.sync(fd);
  } finally {
    await file.close(fd);
  }
}

/** A file's content; null: there is no such file. */
export async function readIfThere(path: string): Promise<string | null> {
  try {
    return await file.read(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
