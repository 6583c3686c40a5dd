import { mkdir } from 'node:fs/promises';

/** Modes below the data folder: its group may read. */
export const FILE_MODE = 0o640;
export const FOLDER_MODE = 0o750;

/** Makes a folder and what is missing above it. */
export async function makeFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
}
