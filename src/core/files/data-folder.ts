import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** The folder itself, or its nearest parent that exists. */
export function nearestExisting(folder: string): string {
  let path = resolve(folder);
  while (!existsSync(path) && path !== dirname(path)) path = dirname(path);
  return path;
}

/** A folder and all its parents except the root, the uppermost first. */
export function levelsOf(folder: string): string[] {
  const path = resolve(folder);
  return path === dirname(path) ? [] : [...levelsOf(dirname(path)), path];
}

/**
 * Creates a folder and its missing parents, one level at a time, because Node's recursive mkdir loops forever in a file system that returns
 * ENOENT, such as /proc. Throws the error of the level that cannot be created.
 */
export function makeFolder(folder: string, mode = 0o777): void {
  for (const level of levelsOf(folder)) {
    try {
      mkdirSync(level, { mode });
    } catch (error) {
      if (!isFolder(level)) throw error;
    }
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

export interface DataFolderProblem {
  /** The cause and the remedy. */
  readonly text: string;
  /** The folder does not exist and cannot be created; false: it exists but is not writable at present. */
  readonly isMissing: boolean;
}

/** Creates the data folder if it is missing. Null: it is usable. */
export function prepareDataFolder(folder: string, environment: NodeJS.ProcessEnv): DataFolderProblem | null {
  try {
    makeFolder(folder);
  } catch (error) {
    const { path = folder } = error as NodeJS.ErrnoException;
    return { text: `${folder} cannot be created: ${problemText(error as NodeJS.ErrnoException, path, environment)}`, isMissing: true };
  }
  try {
    accessSync(folder, constants.W_OK);
    return null;
  } catch (error) {
    return { text: problemText(error as NodeJS.ErrnoException, folder, environment), isMissing: false };
  }
}

/** `path`: the folder that could not be created or written. */
function problemText({ code, message }: NodeJS.ErrnoException, path: string, environment: NodeJS.ProcessEnv): string {
  const place = nearestExisting(path);
  // The sandbox of a unit shows a writable disk as read-only.
  if (code === 'EROFS' && environment['STATE_DIRECTORY'] !== undefined)
    return `the unit may not write to ${place}: systemctl edit the unit, and add under [Service] the line ReadWritePaths=${place}`;
  if (code === 'EROFS') return `the file system of ${place} is read-only; mount it for writing, or set another storage.path`;
  if (code === 'EACCES')
    return `user ${process.geteuid?.() ?? ''} may not write to ${place}; give it to that user, or set another storage.path`;
  if (code === 'EEXIST' || code === 'ENOTDIR') return `${path} is not a folder; move it away, or set another storage.path`;
  return `${message}; set storage.path to a folder on a disk`;
}

export const WORKING_DIRECTORY_DELETED =
  'the working directory was deleted; change to one that exists (cd /), and give absolute paths to --config and storage.path';

export function isWorkingDirectoryDeleted(): boolean {
  try {
    process.cwd();
    return false;
  } catch {
    return true;
  }
}
