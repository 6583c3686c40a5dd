import { mkdir, stat } from 'node:fs/promises';
import { levelsOf } from '../../src/system/data-folder.ts';

/** Modes below the data folder: its group may read. */
export const FILE_MODE = 0o640;
export const FOLDER_MODE = 0o750;

/** As makeFolder of src/system, without blocking the process on a disk that hangs. Returns the uppermost folder created; null: all existed. */
export async function makeFolder(folder: string): Promise<string | null> {
  let made: string | null = null;
  for (const level of levelsOf(folder)) {
    try {
      await mkdir(level, { mode: FOLDER_MODE });
      made ??= level;
    } catch (error) {
      const there = await stat(level).catch(() => null);
      if (!there?.isDirectory()) throw error;
    }
  }
  return made;
}
