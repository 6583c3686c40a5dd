import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isWithin } from '../mounts.ts';

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
    return {
      text: `${folder} cannot be created: ${problemText(error as NodeJS.ErrnoException, path, folder, environment)}`,
      isMissing: true,
    };
  }
  try {
    accessSync(folder, constants.W_OK);
    return null;
  } catch (error) {
    return { text: problemText(error as NodeJS.ErrnoException, folder, folder, environment), isMissing: false };
  }
}

/** What would keep this user from creating a folder or writing to it, without creating it; null: nothing. */
export function dataFolderProblem(folder: string): string | null {
  const place = nearestExisting(folder);
  try {
    if (!isFolder(place)) throw Object.assign(new Error(), { code: 'ENOTDIR' });
    accessSync(place, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return problemText(error as NodeJS.ErrnoException, folder, folder, {});
  }
}

/** Folders that ProtectHome= hides from a unit. */
export const HOMES = ['/home', '/root', '/run/user'];

/**
 * Why the sandbox of the package's units keeps them from writing to a folder, with the drop-in that allows it. Its `-` lets the units start
 * while the folder is missing, such as that of a disk that was unplugged.
 */
export function sandboxProblem(folder: string, units: readonly string[] = ['edge-health', 'edge-health-ops']): string {
  const isHome = HOMES.some((home) => isWithin(folder, home));
  const lines = [...(isHome ? ['ProtectHome=read-only'] : []), `ReadWritePaths=-${folder}`];
  const names = units.join(' ');
  const where = isHome ? `${folder}, because it hides home folders; use another folder, or` : `${folder};`;
  const make = existsSync(folder) ? '' : `sudo install -d -o edge-health ${folder}, then `;
  return (
    `the sandbox of the units does not allow writing to ${where} run ${make}sudo systemctl edit ${names}, ` +
    `add ${lines.join(' and ')} under [Service] of each, then sudo systemctl restart ${names}`
  );
}

/** `path`: the level of the folder that could not be created or written. */
function problemText(error: NodeJS.ErrnoException, path: string, folder: string, environment: NodeJS.ProcessEnv): string {
  const { code, message } = error;
  const place = nearestExisting(path);
  // The sandbox of a unit shows a writable disk as read-only, and home folders as empty or as folders without permissions.
  const isInUnit = environment['STATE_DIRECTORY'] !== undefined;
  if (isInUnit && (code === 'EROFS' || HOMES.includes(place))) return sandboxProblem(folder);
  if (code === 'EROFS') return `the file system of ${place} is read-only; mount it for writing, or set another storage.path`;
  if (code === 'EACCES') {
    const user = process.geteuid?.() ?? '';
    const command = place === folder ? `chown ${user}` : `install -d -o ${user}`;
    return `user ${user} may not write to ${place}; run sudo ${command} ${folder}, or set another storage.path`;
  }
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
