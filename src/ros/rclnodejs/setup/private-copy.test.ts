import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../../testkit/folder.ts';
import { write } from '../testing/trees.ts';
import { copyRclnodejs, resolvePackage } from './private-copy.ts';
import { SetupFailed } from './run-command.ts';

const manifest = (dependencies: Readonly<Record<string, string>> = {}): string => JSON.stringify({ version: '1.0.0', dependencies });

/** rclnodejs with its parts and one dependency in two versions. */
function fakeModules(root: string): void {
  const parts = [
    'dist/index.cjs',
    'lib/a.js',
    'rosidl_gen/a.cjs',
    'rosidl_parser/a.py',
    'rostsd_gen/a.cjs',
    'third_party/a.js',
    'LICENSE',
    'README.md',
  ];
  for (const part of parts) write(root, { [`node_modules/rclnodejs/${part}`]: part });
  write(root, {
    'node_modules/rclnodejs/package.json': JSON.stringify({
      name: 'rclnodejs',
      version: '2.2.0',
      main: './dist/index.cjs',
      scripts: { rebuild: 'rm -rf everything' },
      dependencies: { debug: '^4', '@scope/ref': '1', 'node-gyp': '12' },
    }),
    'node_modules/rclnodejs/lib/a.js.map': '',
    'node_modules/rclnodejs/prebuilds/linux-x64/x.node': '',
    'node_modules/rclnodejs/src/a.cpp': '',
    'node_modules/debug/package.json': manifest({ ms: '2.1' }),
    'node_modules/debug/index.js': '',
    'node_modules/debug/index.d.ts': '',
    'node_modules/ms/package.json': manifest(),
    'node_modules/@scope/ref/package.json': manifest({ ms: '2.0' }),
    'node_modules/@scope/ref/node_modules/ms/package.json': manifest(),
    'node_modules/@scope/ref/node_modules/unrelated/package.json': manifest(),
    'node_modules/node-gyp/package.json': manifest(),
    'node_modules/express/package.json': manifest(),
  });
}

t.test('rclnodejs and its dependencies are copied, without its sources and scripts', async (t) => {
  const root = temporaryFolder(t);
  fakeModules(root);
  const target = temporaryFolder(t);
  copyRclnodejs(join(root, 'node_modules/rclnodejs'), target);
  const there = (path: string): boolean => existsSync(join(target, 'node_modules', path));
  for (const path of [
    'rclnodejs/dist/index.cjs',
    'rclnodejs/lib/a.js',
    'rclnodejs/LICENSE',
    'debug/index.js',
    'ms/package.json',
    '@scope/ref/package.json',
    '@scope/ref/node_modules/ms/package.json',
  ]) {
    t.ok(there(path), path);
  }
  for (const path of [
    'rclnodejs/src',
    'rclnodejs/prebuilds',
    'rclnodejs/lib/a.js.map',
    'debug/index.d.ts',
    'node-gyp',
    'express',
    '@scope/ref/node_modules/unrelated',
  ]) {
    t.notOk(there(path), `not ${path}`);
  }
  const copied = JSON.parse(readFileSync(join(target, 'node_modules/rclnodejs/package.json'), 'utf8')) as Record<string, unknown>;
  t.match(copied, { name: 'rclnodejs', version: '2.2.0', main: './dist/index.cjs' });
  t.notOk('scripts' in copied);
});

t.test('a missing dependency is named', async (t) => {
  const root = temporaryFolder(t);
  fakeModules(root);
  write(root, { 'node_modules/debug/package.json': manifest({ gone: '1' }) });
  t.throws(
    () => copyRclnodejs(join(root, 'node_modules/rclnodejs'), temporaryFolder(t)),
    new SetupFailed(`the npm package gone, which rclnodejs needs, is missing in ${join(root, 'node_modules')}: install edge-health again`),
  );
});

t.test('packages are resolved from the innermost folder outward', async (t) => {
  const root = temporaryFolder(t);
  fakeModules(root);
  const modules = join(root, 'node_modules');
  t.equal(resolvePackage('ms', join(modules, '@scope/ref'), modules), join(modules, '@scope/ref/node_modules/ms'));
  t.equal(resolvePackage('ms', join(modules, 'debug'), modules), join(modules, 'ms'));
  t.equal(resolvePackage('debug', join(modules, '@scope/ref/node_modules/ms'), modules), join(modules, 'debug'));
  t.equal(resolvePackage('gone', join(modules, 'debug'), modules), null);
});

t.test('the rclnodejs of this checkout is copied completely and not changed', async (t) => {
  const rclnodejs = resolve(import.meta.dirname, '../../../../node_modules/rclnodejs');
  const before = statSync(join(rclnodejs, 'package.json')).mtimeMs;
  const target = temporaryFolder(t);
  copyRclnodejs(rclnodejs, target);
  const main = join(target, 'node_modules/rclnodejs/dist/index.cjs');
  t.ok(existsSync(main));
  // Every package and file that the bundle requires, except the addon, which does not exist yet.
  const require = process.getBuiltinModule('node:module').createRequire(main);
  const asked = [...readFileSync(main, 'utf8').matchAll(/require\d*\("([^"]+)"\)/g)].map(([, name]) => name as string);
  t.ok(asked.length > 10, `${asked.length} requires`);
  for (const name of new Set(asked)) if (name !== 'rclnodejs') t.doesNotThrow(() => require.resolve(name), name);
  t.equal(statSync(join(rclnodejs, 'package.json')).mtimeMs, before);
  t.notOk(existsSync(join(rclnodejs, 'build')), 'nothing is built in the installed one');
  t.notOk(existsSync(join(rclnodejs, 'generated')), 'and nothing generated');
});
