/** A short name for a path: 64-bit FNV-1a. (OpenSSL's hashes use 3 MB of memory once loaded.) */
export function shortName(path: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(path)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, '0');
}
