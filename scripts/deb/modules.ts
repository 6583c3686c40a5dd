import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Architecture } from './architectures.ts';
import { closure, type LockedPackage } from './closure.ts';
import { BuildFailed, output } from './step.ts';

/** Packages that are loaded from node_modules at run time, or compiled by `ros-setup`. All others are bundled in dist/. */
const ROOTS = ['node-gyp', 'rclnodejs', 'sd-notify'];

/** Packages of which only the used parts are copied; of rclnodejs, the parts that `ros-setup` copies and compiles. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  rclnodejs: [
    ...['dist/index.cjs', 'lib', 'rosidl_gen', 'rosidl_parser', 'rostsd_gen', 'third_party', 'src'],
    ...['scripts/config.cjs', 'scripts/ros_distro.cjs', 'binding.gyp', 'package.json', 'LICENSE', 'README.md'],
  ],
  rxjs: ['dist/cjs', 'ajax', 'fetch', 'operators', 'testing', 'webSocket', 'package.json', 'LICENSE.txt'],
  'sd-notify': ['index.js', 'package.json', 'LICENSE', 'AUTHORS'],
};

/** Unused entries at the top of a package. */
const UNUSED_TOP =
  /^(?:tests?(?:\.js)?|__tests__|examples?|docs?|benchmarks?|coverage|tools|types|makefile|gulpfile\.js|_postinstall\.js|.*\.(?:sh|yml))$/i;
/**
 * Unused entries at any depth: maps, types, prose, tool settings, tests of gyp, and bytecode that Python compiled here. Nested
 * packages are copied separately.
 */
const UNUSED = /^(?:node_modules|__pycache__|\..*|.*\.map|.*\.d\.[cm]?ts|.*\.md|.*\.markdown|.*\.flow|.*\.bat|.*_test\.py|test_gyp\.py)$/i;
const LICENCE = /^(?:licen[cs]e|copying|notice|authors)/i;

/** Packages in node_modules of the Debian package. */
export function modulePackages(): LockedPackage[] {
  return closure(ROOTS);
}

/** Copies the packages to `<root>/node_modules`, in the same arrangement. */
export function stageModules(target: Architecture, root: string): void {
  for (const { path, name, version } of modulePackages()) {
    if (!existsSync(path)) throw new BuildFailed(`${path} is missing; run: rm -r node_modules; npm run deb`);
    const installed = (JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as { version: string }).version;
    if (installed !== version)
      throw new BuildFailed(`${path} is version ${installed}, package-lock.json has ${version}; run: rm -r node_modules; npm run deb`);
    for (const part of PARTS[name] ?? usedParts(path)) copyPart(join(path, part), join(root, path, part));
  }
  stagePrebuilt(target, root);
  const modules = join(root, 'node_modules');
  output('find', [modules, '-type', 'd', '-empty', '-delete']);
  // Node, Python and the compiler only read these files; none of them is executed.
  output('chmod', ['-R', 'a-x,a+X', modules]);
}

function usedParts(path: string): string[] {
  return readdirSync(path).filter((name) => isUsed(name) && !UNUSED_TOP.test(name));
}

function isUsed(name: string): boolean {
  return LICENCE.test(name) || !UNUSED.test(name);
}

function copyPart(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { recursive: true, filter: (file) => file === from || isUsed(basename(file)) });
}

/** rclnodejs contains addons for each architecture and for Electron. */
function stagePrebuilt(target: Architecture, root: string): void {
  const folder = `node_modules/rclnodejs/prebuilds/linux-${target.node}`;
  const files = readdirSync(folder).filter((file) => file.endsWith('-node-rclnodejs.node'));
  if (files.length === 0) throw new BuildFailed(`${folder} has no addons for Node`);
  mkdirSync(join(root, folder), { recursive: true });
  for (const file of files) cpSync(join(folder, file), join(root, folder, file));
}
