import { realpathSync } from 'node:fs';
import { join } from 'node:path';

/** The tail's folder in a runtime directory of systemd's. */
export function tailInRuntimeFolder(runtimeFolder: string): string {
  return join(runtimeFolder, 'tail');
}

/** The tail's folder in tmpfs, for a data folder and the user who runs the service. */
export function tailInMemory(dataPath: string, uid: number): string {
  return `/dev/shm/edge-health-${uid}-${nameOf(realpathSync(dataPath))}`;
}

/** The tail's folder where there is no memory for it. */
export function tailBesideDatabase(dataPath: string): string {
  return join(dataPath, 'tail');
}

/** A short name for a path: FNV-1a over 64 bits. (OpenSSL's hashes take 3 MB of memory when first used.) */
function nameOf(path: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(path)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, '0');
}
