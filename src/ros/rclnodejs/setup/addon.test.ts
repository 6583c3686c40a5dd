import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../../testkit/folder.ts';
import type { SourcedRos } from '../sourced-environment.ts';
import { fakePrefix, write } from '../testing/trees.ts';
import { provideAddon, withQosPeriods } from './addon.ts';

// Compiling an addon, and loading one that is there, is test/system/host/rclnodejs-addon.test.ts: they need a compiler.

t.test('without node-gyp the error names it', async (t) => {
  const root = temporaryFolder(t);
  const rclnodejs = join(root, 'node_modules/rclnodejs');
  write(rclnodejs, {
    'package.json': '{}',
    [`prebuilds/linux-${process.arch}/humble-jammy-${process.arch}-node-rclnodejs.node`]: 'of another distribution',
    [`prebuilds/linux-${process.arch}/jazzy-noble-${process.arch}-node-rclnodejs.node`]: 'no library',
  });
  const prefix = fakePrefix(t);
  const ros: SourcedRos = { state: 'sourced', distro: 'jazzy', prefixes: [prefix], librcl: join(prefix, 'lib/librcl.so') };
  const folder = join(root, 'copy');
  write(folder, { 'node_modules/rclnodejs/package.json': '{ "name": "rclnodejs" }' });
  const paths = { rclnodejs, interfaces: '' };
  const logFile = join(root, 'setup.log');
  const workspace = { ros, paths, folder, environment: process.env, user: null, logFile, onProgress: () => {} };
  await t.rejects(provideAddon(workspace), { name: 'SetupFailed', message: /needs the npm package node-gyp/ });
});

t.test('the installed rclnodejs is compiled with the deadline and the lease of QoS objects, once', async (t) => {
  const source = readFileSync(new URL('../../../../node_modules/rclnodejs/src/rcl_utilities.cpp', import.meta.url), 'utf8');
  const changed = withQosPeriods(source);
  for (const [property, member] of [
    ['deadlineMilliseconds', 'deadline'],
    ['leaseMilliseconds', 'liveliness_lease_duration'],
  ] as const) {
    t.equal(changed.split(`object.Get("${property}").IsNumber()`).length, 2);
    t.match(changed, `qos_profile->${member} = {milliseconds / 1000, milliseconds % 1000 * 1000000};`);
  }
  t.equal(withQosPeriods('another source'), 'another source');
});
