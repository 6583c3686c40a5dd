import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Results, and what only tests and measurements read. Everything else counts as an input, so that none is missed. */
const OTHERS = new Set(['.ci', '.git', '.github', '.tap', 'bench', 'build', 'data', 'dist', 'node_modules', 'reports', 'test', 'testkit']);

/** Time of the newest input of the package below the working folder, in milliseconds since 1970. */
export function newestInput(): number {
  let newest = 0;
  const visit = (path: string): void => {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined || path.endsWith('.test.ts')) return;
    // The time of a folder changes when a file in it is removed.
    newest = Math.max(newest, stat.mtimeMs);
    if (stat.isDirectory()) for (const name of readdirSync(path)) visit(join(path, name));
  };
  for (const name of readdirSync('.')) if (!OTHERS.has(name)) visit(name);
  return newest;
}
