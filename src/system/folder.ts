import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** The folder itself, or the nearest one above it that exists. */
export function nearestExisting(folder: string): string {
  let path = resolve(folder);
  while (!existsSync(path) && path !== dirname(path)) path = dirname(path);
  return path;
}
