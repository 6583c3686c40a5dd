import { realpathSync } from 'node:fs';
import { join } from 'node:path';

/** The spool's folder in a runtime directory of systemd. */
export function spoolInRuntimeFolder(runtimeFolder: string): string {
  return join(runtimeFolder, 'spool');
}

/** The spool's folder on tmpfs, unique to a data folder and a user. */
export function spoolInMemory(dataPath: string, uid: number): string {
  return `/dev/shm/edge-health-${uid}-${shortName(realpathSync(dataPath))}`;
}

/** The spool's folder on machines without tmpfs. */
export function spoolBesideDatabase(dataPath: string): string {
  return join(dataPath, 'spool');
}

/** A short name for a path: 64-bit FNV-1a. (OpenSSL's hashes use 3 MB of memory once loaded.) */
export function shortName(path: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(path)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, '0');
}
