import { open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncFolder } from './append.ts';
import { FILE_MODE } from './folder.ts';

/**
 * Replaces a file so that a reader, a kill or a power cut finds the old content or the new, never a mixture; throws with the old
 * one in place. One writer at a time. Not durable: a power cut may bring the old content back, which spares flash an fsync of the folder.
 */
export async function writeAtomically(file: string, content: string, { durable = false } = {}): Promise<void> {
  const temporary = `${file}.new`;
  try {
    const handle = await open(temporary, 'w', FILE_MODE);
    try {
      await handle.writeFile(content);
      await handle.datasync(); // Otherwise the name could reach the disk before the content.
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
  if (durable) await syncFolder(dirname(file));
}

/** A file's content; null: there is no such file. */
export async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
