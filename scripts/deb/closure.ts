import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { BuildFailed } from './step.ts';

/** One package of package-lock.json. */
export interface LockedPackage {
  /** `node_modules/a/node_modules/b`. */
  readonly path: string;
  /** `b`. */
  readonly name: string;
  readonly version: string;
}

interface LockEntry {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/**
 * The named packages and all of their dependencies, resolved in the same way as Node, by path. Throws BuildFailed for a
 * package that is not locked.
 */
export function closure(names: readonly string[], lockFile = 'package-lock.json'): LockedPackage[] {
  const locked = (JSON.parse(readFileSync(lockFile, 'utf8')) as { packages: Readonly<Record<string, LockEntry>> }).packages;
  const found = new Set<string>();
  const waiting = names.map((name) => resolve(name, '', locked));
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (found.has(path)) continue;
    found.add(path);
    const { dependencies, optionalDependencies } = locked[path] as LockEntry;
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) waiting.push(resolve(name, path, locked));
  }
  return [...found].sort().map((path) => ({
    path,
    name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
    version: locked[path]?.version ?? '',
  }));
}

function resolve(name: string, from: string, locked: Readonly<Record<string, LockEntry>>): string {
  for (let folder = from; ; folder = posix.dirname(folder)) {
    const path = posix.join(folder, 'node_modules', name);
    if (Object.hasOwn(locked, path)) return path;
    if (folder === '' || folder === '.') throw new BuildFailed(`package-lock.json lacks ${name}, which ${from || 'the package'} needs`);
  }
}
