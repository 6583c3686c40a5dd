import { chmodSync, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { preparedKey, type RosPaths } from '../prepared.ts';
import type { SourcedRos } from '../sourced-environment.ts';
import { fakePaths, fakePrefix, fakePrepared, write } from '../testing/trees.ts';
import { type PrepareOptions, prepare } from './prepare.ts';

function options(t: Test, changes: Partial<PrepareOptions> = {}): PrepareOptions & { readonly lines: string[] } {
  const prefix = fakePrefix(t);
  const ros: SourcedRos = { state: 'sourced', distro: 'jazzy', prefixes: [prefix], librcl: join(prefix, 'lib/librcl.so') };
  const lines: string[] = [];
  return {
    ros,
    paths: fakePaths(t),
    environment: { PATH: '/nonexistent' },
    force: false,
    probe: async () => null,
    onProgress: (line) => lines.push(line),
    ...changes,
    lines,
  };
}

const keyOf = (paths: RosPaths): string => preparedKey('jazzy', paths) as string;

t.test('a working prepared copy is kept', async (t) => {
  const given = options(t);
  const folder = fakePrepared(given.paths, keyOf(given.paths));
  fakePrepared(given.paths, 'jazzy-2.1.0-00000000');
  const result = await prepare(given);
  t.match(result, { state: 'already', prepared: { folder }, removed: ['jazzy-2.1.0-00000000'] });
  t.same(given.lines, []);
  t.same(readdirSync(given.paths.preparedRoot), [keyOf(given.paths)]);
});

t.test('a prepared copy that does not work is prepared again', async (t) => {
  const given = options(t, { probe: async () => 'it crashed (SIGSEGV)' });
  const folder = fakePrepared(given.paths, keyOf(given.paths));
  const result = await prepare(given);
  t.match(result, { state: 'missing', missing: [{ remedy: /apt install/ }] }, 'it went on, to the tools that are not there');
  t.match(given.lines, [/does not work \(it crashed \(SIGSEGV\)\): preparing it again/]);
  t.ok(existsSync(folder), 'and nothing is taken away before there is something better');
});

t.test('--force prepares again without a probe of the existing copy', async (t) => {
  let asked = 0;
  const given = options(t, {
    force: true,
    probe: async () => {
      asked += 1;
      return null;
    },
  });
  fakePrepared(given.paths, keyOf(given.paths));
  t.equal((await prepare(given)).state, 'missing');
  t.equal(asked, 0);
});

t.test('a changed interface is prepared again', async (t) => {
  const given = options(t);
  fakePrepared(given.paths, keyOf(given.paths));
  write(given.paths.interfaces, { 'msg/Alert.msg': 'string other\n' });
  t.equal((await prepare(given)).state, 'missing');
});

t.test('a step that fails leaves nothing but the log', async (t) => {
  const given = options(t);
  // All tools are present, but the package is not a real rclnodejs.
  for (const name of [
    'ament_cmake',
    'builtin_interfaces',
    'diagnostic_msgs',
    'rcl_interfaces',
    'rosidl_adapter',
    'rosidl_default_generators',
    'std_msgs',
  ]) {
    write(given.ros.prefixes[0] as string, { [`share/${name}/package.xml`]: '' });
  }
  const bin = join(given.paths.preparedRoot, '../../bin');
  write(bin, Object.fromEntries(['c++', 'make', 'cmake', 'python3'].map((name) => [name, '#!/bin/sh\nexit 0\n'])));
  for (const name of readdirSync(bin)) chmodSync(join(bin, name), 0o755);
  await t.rejects(prepare({ ...given, environment: { PATH: `${bin}:/bin:/usr/bin` } }), /rclnodejs/);
  t.match(given.lines, [/^1\/5 copying rclnodejs/]);
  t.same(readdirSync(given.paths.preparedRoot), ['setup.log']);
});

t.test('without rclnodejs the error names it', async (t) => {
  const given = options(t);
  await t.rejects(prepare({ ...given, paths: { ...given.paths, rclnodejs: '/nonexistent' } }), {
    name: 'SetupFailed',
    message: /rclnodejs is missing/,
  });
});
