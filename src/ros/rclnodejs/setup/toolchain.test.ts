import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../../../testkit/folder.ts';
import type { SourcedRos } from '../sourced-environment.ts';
import { fakePrefix, write } from '../testing/trees.ts';
import { isOnPath, missingTools, nodeHeaders } from './toolchain.ts';

const PACKAGES = [
  'ament_cmake',
  'builtin_interfaces',
  'diagnostic_msgs',
  'rcl_interfaces',
  'rosidl_adapter',
  'rosidl_default_generators',
  'std_msgs',
];

function sourced(t: Test, packages: readonly string[]): SourcedRos {
  const prefix = fakePrefix(t);
  for (const name of packages) write(prefix, { [`share/${name}/package.xml`]: '' });
  return { state: 'sourced', distro: 'jazzy', prefixes: [prefix], librcl: join(prefix, 'lib/librcl.so') };
}

/** A PATH with programs of these names; python3 ends with this exit code. */
function path(t: Test, programs: readonly string[], python = 0): NodeJS.ProcessEnv {
  const bin = temporaryFolder(t);
  for (const name of programs) {
    const says = name === 'python3' && python !== 0 ? 'echo "ModuleNotFoundError: No module named rosidl_adapter" >&2\n' : '';
    write(bin, { [name]: `#!/bin/sh\n${says}exit ${name === 'python3' ? python : 0}\n` });
    chmodSync(join(bin, name), 0o755);
  }
  return { PATH: bin };
}

const ALL = ['c++', 'make', 'cmake', 'python3'];

t.test('nothing is reported if all tools exist', async (t) => {
  t.same(missingTools(sourced(t, PACKAGES), path(t, ALL)), []);
});

t.test('missing tools are reported with their remedies', async (t) => {
  t.same(missingTools(sourced(t, PACKAGES), path(t, ['make', 'python3'])), [
    { what: 'c++', remedy: 'sudo apt install build-essential' },
    { what: 'cmake', remedy: 'sudo apt install cmake' },
  ]);
  t.same(missingTools(sourced(t, PACKAGES.slice(2)), path(t, ALL)), [
    { what: 'ROS packages ament_cmake, builtin_interfaces', remedy: 'sudo apt install ros-jazzy-ros-core' },
  ]);
  t.match(missingTools(sourced(t, PACKAGES), path(t, ALL, 1)), [
    { what: /Python modules .*No module named rosidl_adapter/, remedy: /ros-jazzy-ros-core; if a python3 of pyenv or conda/ },
  ]);
});

t.test('the compiler of CXX is checked', async (t) => {
  const environment = path(t, ['make', 'cmake', 'python3', 'clang++']);
  t.same(missingTools(sourced(t, PACKAGES), { ...environment, CXX: 'clang++ -O1' }), []);
  t.match(missingTools(sourced(t, PACKAGES), { ...environment, CXX: '/nonexistent/c++' }), [{ what: '/nonexistent/c++' }]);
});

t.test('only executable files count on the PATH', async (t) => {
  const environment = path(t, ['cmake']);
  t.equal(isOnPath('cmake', environment), true);
  chmodSync(join(environment['PATH'] as string, 'cmake'), 0o644);
  t.equal(isOnPath('cmake', environment), false);
  t.equal(isOnPath('cmake', {}), false);
});

t.test('the headers of this Node are found in all layouts of the npm package', async (t) => {
  t.ok(nodeHeaders(process.execPath), 'of the Node that runs this');
  const own = `node-linux-${process.arch}`;
  for (const where of ['.', `node_modules/${own}`, `../${own}`]) {
    const root = temporaryFolder(t);
    mkdirSync(join(root, 'node/bin'), { recursive: true });
    symlinkSync(process.execPath, join(root, 'node/bin/node'));
    t.equal(nodeHeaders(join(root, 'node/bin/node')), null);
    write(join(root, 'node', where), { 'include/node/node_api.h': '' });
    t.equal(nodeHeaders(join(root, 'node/bin/node')), join(root, 'node', where));
  }
});
