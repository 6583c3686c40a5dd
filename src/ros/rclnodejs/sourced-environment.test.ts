import { chmodSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { findSourcedRos, inPrefixes, type SourcedRosResult } from './sourced-environment.ts';
import { elfHead, fakePrefix, sourcedEnvironment, write } from './testing/trees.ts';

const look = (environment: NodeJS.ProcessEnv): SourcedRosResult => findSourcedRos(environment, []);

t.test('an environment without ROS 2 is recognized', async (t) => {
  t.same(look({}), { state: 'none', reason: 'no ROS 2 is sourced' });
  t.same(look({ ROS_DISTRO: '', AMENT_PREFIX_PATH: '' }), { state: 'none', reason: 'no ROS 2 is sourced' });
  t.match(look({ ROS_DISTRO: 'noetic', ROS_VERSION: '1' }), { state: 'none', reason: /ROS 1 noetic/ });
});

t.test('a sourced distribution is recognized', async (t) => {
  const prefix = fakePrefix(t);
  const librcl = join(prefix, 'lib/librcl.so');
  t.same(look(sourcedEnvironment(prefix)), { state: 'sourced', distro: 'jazzy', prefixes: [prefix], librcl });
});

t.test('a workspace over a distribution is recognized, and missing prefixes are ignored', async (t) => {
  const prefix = fakePrefix(t);
  const workspace = temporaryFolder(t);
  const environment = { ...sourcedEnvironment(prefix), AMENT_PREFIX_PATH: `${workspace}:/nonexistent:${prefix}` };
  t.match(look(environment), { state: 'sourced', prefixes: [workspace, prefix] });
});

t.test('supported distributions are checked by their rcl version; unknown ones are accepted', async (t) => {
  for (const [distro, version] of [
    ['humble', '5.3.11'],
    ['jazzy', '9.2.8'],
    ['kilted', '10.1.5'],
    ['lyrical', '10.4.0'],
    ['rolling', '99.0.0'],
  ] as const) {
    t.equal(look(sourcedEnvironment(fakePrefix(t, version), distro)).state, 'sourced', distro);
  }
});

t.test('a broken distribution is reported with the reason', async (t) => {
  const prefix = fakePrefix(t);
  const good = sourcedEnvironment(prefix);
  const cases: readonly (readonly [what: string, environment: NodeJS.ProcessEnv, reason: RegExp])[] = [
    ['no ROS_DISTRO', { ...good, ROS_DISTRO: '' }, /ROS_DISTRO is not: source the setup file/],
    ['a strange ROS_DISTRO', { ...good, ROS_DISTRO: '../../etc' }, /not the name of a distribution/],
    ['too old', { ...good, ROS_DISTRO: 'foxy' }, /foxy is too old: Humble or a later one/],
    ['no AMENT_PREFIX_PATH', { ...good, AMENT_PREFIX_PATH: '' }, /AMENT_PREFIX_PATH is empty/],
    ['a prefix that is gone', { ...good, AMENT_PREFIX_PATH: '/nonexistent/jazzy' }, /\/nonexistent\/jazzy does not exist/],
    ['no LD_LIBRARY_PATH', { ...good, LD_LIBRARY_PATH: '' }, /librcl\.so is not found \(LD_LIBRARY_PATH is empty\).*ros-jazzy-ros-core/],
    ['LD_LIBRARY_PATH elsewhere', { ...good, LD_LIBRARY_PATH: '/nonexistent/lib' }, /it is in none of \/nonexistent\/lib/],
    ['another distribution', { ...good, ROS_DISTRO: 'humble' }, /ROS_DISTRO is humble, but .* is jazzy/],
  ];
  for (const [what, environment, reason] of cases) t.match(look(environment), { state: 'broken', reason }, what);
});

t.test('folders of the environment that cannot be searched are skipped, as by the dynamic linker', async (t) => {
  const prefix = fakePrefix(t);
  const folder = temporaryFolder(t);
  symlinkSync('loop', join(folder, 'loop'));
  // A folder without permission gives the same error to every user but root.
  const unusable = [join(folder, 'loop'), join(folder, 'x'.repeat(300)), join(prefix, 'share/rcl/package.xml')];
  const good = sourcedEnvironment(prefix);
  const all = { ...good, AMENT_PREFIX_PATH: [...unusable, prefix].join(':'), LD_LIBRARY_PATH: [...unusable, `${prefix}/lib`].join(':') };
  t.match(look(all), { state: 'sourced', librcl: join(prefix, 'lib/librcl.so') });
  t.match(look({ ...good, LD_LIBRARY_PATH: unusable.join(':') }), { state: 'broken', reason: /librcl\.so is not found/ });
  rmSync(join(prefix, 'share/rcl/package.xml'));
  mkdirSync(join(prefix, 'share/rcl/package.xml'));
  t.match(look(good), { state: 'sourced' }, 'a manifest that cannot be read decides nothing');
});

t.test('the middleware that RMW_IMPLEMENTATION names is checked', async (t) => {
  const prefix = fakePrefix(t);
  const workspace = temporaryFolder(t);
  write(prefix, { 'lib/librmw_cyclonedds_cpp.so': elfHead() });
  write(workspace, { 'lib/librmw_of_ours.so': elfHead() });
  const named = (name: string): SourcedRosResult =>
    look({ ...sourcedEnvironment(prefix), AMENT_PREFIX_PATH: `${workspace}:${prefix}`, RMW_IMPLEMENTATION: name });
  for (const name of ['rmw_cyclonedds_cpp', 'rmw_of_ours', '']) t.equal(named(name).state, 'sourced', name);
  t.same(named('rmw_foo_cpp'), {
    state: 'broken',
    reason: 'RMW_IMPLEMENTATION=rmw_foo_cpp: librmw_foo_cpp.so is not found; install ros-jazzy-rmw-foo-cpp, or unset RMW_IMPLEMENTATION',
  });
  t.same(named('../fast dds'), {
    state: 'broken',
    reason: 'RMW_IMPLEMENTATION="../fast dds" is not the name of a middleware; set it to one such as rmw_fastrtps_cpp, or unset it',
  });
});

t.test('a librcl that is not a library is reported', async (t) => {
  for (const [what, content, reason] of [
    ['text', 'not a library at all, but long enough', /librcl\.so is not a shared library/],
    ['empty', '', /is not a shared library/],
    ['cut short', elfHead().subarray(0, 10), /is not a shared library/],
    ['of another machine', elfHead(20), /another kind of machine than this one/],
  ] as const) {
    const prefix = fakePrefix(t);
    write(prefix, { 'lib/librcl.so': content });
    t.match(look(sourcedEnvironment(prefix)), { state: 'broken', reason }, what);
  }
  const prefix = fakePrefix(t);
  rmSync(join(prefix, 'lib/librcl.so'));
  write(prefix, { 'lib/librcl.so/a-file-in-a-folder': '' });
  t.match(look(sourcedEnvironment(prefix)), { state: 'broken', reason: /not found/ }, 'a folder of that name');
});

t.test('a librcl that cannot be read is reported', async (t) => {
  const prefix = fakePrefix(t);
  chmodSync(join(prefix, 'lib/librcl.so'), 0o000);
  const found = look(sourcedEnvironment(prefix));
  // root can read it regardless
  if (process.getuid?.() === 0) t.equal(found.state, 'sourced');
  else t.match(found, { state: 'broken', reason: /cannot be read \(EACCES\)/ });
});

t.test('librcl in a folder of the system counts', async (t) => {
  const prefix = fakePrefix(t);
  const environment = { ...sourcedEnvironment(prefix), LD_LIBRARY_PATH: '' };
  t.match(findSourcedRos(environment, [join(prefix, 'lib')]), { state: 'sourced', librcl: join(prefix, 'lib/librcl.so') });
});

t.test('of several prefixes, the first one that has the file counts', async (t) => {
  const [one, two] = [temporaryFolder(t), temporaryFolder(t)];
  write(two, { 'share/std_msgs/msg/String.msg': 'string data\n' });
  t.equal(inPrefixes([one, two], 'share/std_msgs/msg/String.msg'), join(two, 'share/std_msgs/msg/String.msg'));
  t.equal(inPrefixes([one, two], 'share/other'), null);
});
