import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { SetupFailed } from './run-command.ts';

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly [key: string]: unknown;
}

/** The parts of rclnodejs needed at run time and to generate message code. */
const RUNTIME_PARTS = ['dist/index.cjs', 'lib', 'rosidl_gen', 'rosidl_parser', 'rostsd_gen', 'third_party', 'LICENSE', 'README.md'];
/** The parts needed to compile its addon. */
export const SOURCE_PARTS = ['src', 'scripts', 'binding.gyp'];
/** Needed only for compiling, where the installed package is used. */
const NOT_COPIED = 'node-gyp';

/** Copies rclnodejs and its dependencies, with the same folder structure, into `<folder>/node_modules`. */
export function copyRclnodejs(rclnodejs: string, folder: string): void {
  const modules = dirname(rclnodejs);
  const target = join(folder, 'node_modules');
  for (const source of dependencies(rclnodejs, modules)) {
    if (source !== rclnodejs) copy(source, join(target, relative(modules, source)));
  }
  for (const part of RUNTIME_PARTS) copy(join(rclnodejs, part), join(target, 'rclnodejs', part));
  // Without `scripts`, because rclnodejs runs its clean and rebuild scripts when it cannot load its addon.
  const { scripts: _scripts, ...manifest } = manifestOf(rclnodejs);
  writeFileSync(join(target, 'rclnodejs/package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** Folders of a package and of its transitive dependencies, resolved as Node does from within `modules`; the package is first. */
function dependencies(root: string, modules: string): string[] {
  const found = [root];
  for (let i = 0; i < found.length; i += 1) {
    const from = found[i] as string;
    for (const name of Object.keys(manifestOf(from).dependencies ?? {})) {
      if (name === NOT_COPIED) continue;
      const folder = resolvePackage(name, from, modules);
      if (folder === null)
        throw new SetupFailed(`the npm package ${name}, which rclnodejs needs, is missing in ${modules}: install edge-health again`);
      if (!found.includes(folder)) found.push(folder);
    }
  }
  return found;
}

/** `node_modules/<name>` in the package's folder, or in the nearest parent up to `modules`. */
export function resolvePackage(name: string, from: string, modules: string): string | null {
  for (let folder = from; folder.length > dirname(modules).length; folder = dirname(folder)) {
    const candidate = folder === modules ? join(modules, name) : join(folder, 'node_modules', name);
    if (existsSync(join(candidate, 'package.json'))) return candidate;
  }
  return null;
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}

function copy(source: string, target: string): void {
  mkdirSync(dirname(target), { recursive: true });
  // Nested packages are copied on their own; source maps and types are not needed at run time.
  const filter = (path: string): boolean => path === source || !/\/node_modules$|\.map$|\.d\.[cm]?ts$/.test(path);
  cpSync(source, target, { recursive: true, filter });
}

export function copyParts(source: string, target: string, parts: readonly string[]): void {
  for (const part of parts) copy(join(source, part), join(target, part));
}
