import { lstatSync, mkdirSync } from 'node:fs';

/** The runtime directory that systemd gives a unit (the first of several); null: the process is not started by a unit. */
export function runtimeFolder(environment: NodeJS.ProcessEnv): string | null {
  return environment['RUNTIME_DIRECTORY']?.split(':')[0] || null;
}

/** Creates a folder for this user alone on tmpfs. Null: the machine has no tmpfs there, or another user owns the folder. */
export function privateFolderInMemory(folder: string): string | null {
  try {
    mkdirSync(folder, { mode: 0o700, recursive: true });
  } catch {
    return null;
  }
  return isPrivate(folder) ? folder : null;
}

/** Whether a folder belongs to a user, this one by default, and is closed to others; in /dev/shm, every user can create folders. */
export function isPrivate(folder: string, uid = process.getuid?.()): boolean {
  try {
    const stats = lstatSync(folder);
    return stats.isDirectory() && stats.uid === uid && (stats.mode & 0o077) === 0;
  } catch {
    return false;
  }
}

/** A short name for a path: 64-bit FNV-1a. (OpenSSL's hashes use 3 MB of memory once loaded.) */
export function shortName(path: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(path)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, '0');
}
