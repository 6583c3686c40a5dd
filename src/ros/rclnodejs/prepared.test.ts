import { chmodSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { environmentFor, findPrepared, findRos, interfaceHash, preparedKey, preparedKeys, rclnodejsVersion } from './prepared.ts';
import { fakePaths, fakePrefix, fakePrepared, sourcedEnvironment, write } from './testing/trees.ts';

t.test('the key consists of the distribution, the version of rclnodejs and the hash of the interfaces', async (t) => {
  const paths = fakePaths(t);
  const key = preparedKey('jazzy', paths);
  t.match(key, /^jazzy-2\.2\.0-[0-9a-f]{8}$/);
  t.equal(preparedKey('jazzy', paths), key, 'the same for the same files');
  t.equal(preparedKey('humble', paths), key?.replace('jazzy', 'humble'));
  write(paths.rclnodejs, { 'package.json': '{ "version": "2.3.0" }' });
  t.equal(preparedKey('jazzy', paths), key?.replace('2.2.0', '2.3.0'));
});

t.test('the hash changes with whatever changes the generated code', async (t) => {
  const { interfaces } = fakePaths(t);
  const seen = new Set([interfaceHash(interfaces)]);
  const changes: readonly (() => void)[] = [
    () => write(interfaces, { 'msg/Alert.msg': 'string alert_ID\n' }),
    () => write(interfaces, { 'msg/Another.msg': '' }),
    () => write(interfaces, { 'srv/SafeShutdown.srv': 'string reason\n---\nbool success\nstring message\n' }),
    () => write(interfaces, { 'CMakeLists.txt': 'project(other)\n' }),
    () => rmSync(join(interfaces, 'msg/Alert.msg')),
  ];
  for (const change of changes) {
    change();
    seen.add(interfaceHash(interfaces));
  }
  t.equal(seen.size, changes.length + 1, 'every change gave another hash');
  const last = interfaceHash(interfaces);
  write(interfaces, { 'README.md': 'text', 'msg/notes.txt': 'text' });
  t.equal(interfaceHash(interfaces), last, 'other files do not matter');
});

t.test('moving a line from one file to the next is a change', async (t) => {
  const { interfaces } = fakePaths(t);
  write(interfaces, { 'msg/A.msg': 'int8 a\nint8 b\n', 'msg/B.msg': 'int8 c\n' });
  const before = interfaceHash(interfaces);
  write(interfaces, { 'msg/A.msg': 'int8 a\n', 'msg/B.msg': 'int8 b\nint8 c\n' });
  t.not(interfaceHash(interfaces), before);
});

t.test('without rclnodejs there is no key, with a reason', async (t) => {
  const paths = { ...fakePaths(t), rclnodejs: '/nonexistent/rclnodejs' };
  t.equal(rclnodejsVersion(paths), null);
  t.match(findPrepared('jazzy', paths), { reason: /rclnodejs is missing in \/nonexistent\/rclnodejs/ });
  const strange = fakePaths(t);
  write(strange.rclnodejs, { 'package.json': '{ "version": "../../x" }' });
  t.equal(rclnodejsVersion(strange), null, 'a version that is no version');
});

t.test('without the interfaces there is no key either', async (t) => {
  t.match(findPrepared('jazzy', { ...fakePaths(t), interfaces: '/nonexistent' }), { reason: /\/nonexistent cannot be read: ENOENT/ });
});

t.test('a prepared copy is found by its key', async (t) => {
  const paths = fakePaths(t);
  t.match(findPrepared('jazzy', paths), { reason: 'not prepared: run edge-health ros-setup' });
  const key = preparedKey('jazzy', paths) as string;
  const folder = fakePrepared(paths, key);
  t.same(findPrepared('jazzy', paths), { key, distro: 'jazzy', folder });
  t.match(findPrepared('humble', paths), { reason: 'not prepared: run edge-health ros-setup' }, 'for that distribution alone');
  t.same(preparedKeys(paths.preparedRoot), [key]);
});

t.test('prepared copies of other data folders are used after its own', async (t) => {
  const paths = fakePaths(t);
  const key = preparedKey('jazzy', paths) as string;
  const [other = ''] = paths.otherRoots;
  const shared = fakePrepared({ ...paths, preparedRoot: other }, key);
  t.match(findPrepared('jazzy', paths), { folder: shared });
  const own = fakePrepared(paths, key);
  t.match(findPrepared('jazzy', paths), { folder: own });
  rmSync(join(own, 'interfaces'), { recursive: true });
  t.match(findPrepared('jazzy', paths), { folder: shared }, 'when the own one cannot be used');
});

t.test('a folder writable by other users is not used', async (t) => {
  const paths = fakePaths(t);
  const key = preparedKey('jazzy', paths) as string;
  const folder = fakePrepared(paths, key);
  const other = (paths.owners[0] ?? 0) + 1;
  t.match(findPrepared('jazzy', { ...paths, owners: [other] }), {
    reason: new RegExp(`is not used: .*data/ros belongs to user ${other - 1}; remove it`),
  });
  for (const open of [folder, paths.preparedRoot]) {
    chmodSync(open, 0o777);
    t.match(findPrepared('jazzy', paths), { reason: new RegExp(`is not used: other users can write to ${open}; remove it`) });
    chmodSync(open, 0o755);
  }
  t.match(findPrepared('jazzy', paths), { folder });
});

t.test('a folder whose owner cannot be determined is not used', async (t) => {
  const paths = fakePaths(t);
  const loop = join(dirname(paths.interfaces), 'loop');
  symlinkSync('loop', loop);
  t.match(findPrepared('jazzy', { ...paths, preparedRoot: loop }), { reason: /loop\/jazzy-.* is not used: .*ELOOP/ });
});

t.test('a prepared copy for earlier interfaces is outdated', async (t) => {
  const paths = fakePaths(t);
  fakePrepared(paths, preparedKey('jazzy', paths) as string);
  write(paths.interfaces, { 'msg/Alert.msg': 'string other\n' });
  t.match(findPrepared('jazzy', paths), { reason: /^prepared for another version .*: run edge-health ros-setup again$/ });
});

t.test('a prepared copy that is incomplete or for another architecture is rejected', async (t) => {
  const paths = fakePaths(t);
  const key = preparedKey('jazzy', paths) as string;
  const folder = fakePrepared(paths, key);
  const addon = join(folder, 'node_modules/rclnodejs/build/Release/rclnodejs.node');
  rmSync(addon);
  t.match(findPrepared('jazzy', paths), { reason: /is incomplete: run edge-health ros-setup --force/ });
  writeFileSync(addon, '');
  rmSync(join(folder, 'interfaces'), { recursive: true });
  t.match(findPrepared('jazzy', paths), { reason: /is incomplete/ });
  fakePrepared(paths, key);
  write(folder, { 'prepared.json': JSON.stringify({ key, architecture: 'sparc' }) });
  t.match(findPrepared('jazzy', paths), { reason: /is for sparc: run edge-health ros-setup --force/ });
  write(folder, { 'prepared.json': JSON.stringify({ key: 'another', architecture: process.arch }) });
  t.match(findPrepared('jazzy', paths), { reason: /is incomplete/ });
  write(folder, { 'prepared.json': '{ "key": ' });
  t.match(findPrepared('jazzy', paths), { reason: /is incomplete: run edge-health ros-setup --force/ }, 'a manifest cut short');
});

t.test('the environment and the prepared copy are checked together', async (t) => {
  const paths = fakePaths(t);
  const prefix = fakePrefix(t);
  const environment = sourcedEnvironment(prefix);
  t.equal(findRos({}, paths).state, 'none');
  t.equal(findRos({ ...environment, LD_LIBRARY_PATH: '/nonexistent' }, paths).state, 'broken');
  t.match(findRos(environment, paths), { state: 'unprepared', ros: { distro: 'jazzy' }, reason: /run edge-health ros-setup/ });
  const key = preparedKey('jazzy', paths) as string;
  fakePrepared(paths, key);
  t.match(findRos(environment, paths), { state: 'prepared', prepared: { key } });
});

t.test('a process that cannot load the prepared copy is restarted once', async (t) => {
  const prepared = { key: 'jazzy-2.2.0-1a2b3c4d', distro: 'jazzy', folder: '/data/ros/jazzy-2.2.0-1a2b3c4d' };
  const libraries = '/data/ros/jazzy-2.2.0-1a2b3c4d/interfaces/lib';
  const first = environmentFor(prepared, { HOME: '/root', LD_LIBRARY_PATH: '/ws/lib:/opt/ros/jazzy/lib' });
  t.match(first, { HOME: '/root', LD_LIBRARY_PATH: `${libraries}:/ws/lib:/opt/ros/jazzy/lib` }, 'in front of a workspace that has its own');
  t.equal(environmentFor(prepared, first ?? {}), null, 'then this one will do');
  t.equal(
    environmentFor(prepared, { ...first, LD_LIBRARY_PATH: '' }),
    null,
    'also when the loader took the path away: no endless restarts',
  );
  t.match(
    environmentFor(prepared, { ...first, LD_LIBRARY_PATH: '/opt/ros/jazzy/lib', EDGE_HEALTH_ROS_RESTARTED: '1' }),
    { LD_LIBRARY_PATH: /./ },
    'another process than the one that was restarted',
  );
  t.match(environmentFor(prepared, { LD_LIBRARY_PATH: `/ws/lib:${libraries}` }), { LD_LIBRARY_PATH: `${libraries}:/ws/lib` });
  t.match(environmentFor(prepared, {}), { LD_LIBRARY_PATH: libraries });
});
