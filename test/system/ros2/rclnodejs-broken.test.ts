import { spawnSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rosPaths } from '../../../src/core/files/ros-paths.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { preparedKey } from '../../../src/ros/rclnodejs/prepared.ts';
import { fakePrefix, fakePrepared, sourcedEnvironment, write } from '../../../src/ros/rclnodejs/testing/trees.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { Network, networkUnavailable } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';
import { ROOT } from '../../../testkit/service/service.ts';

// Tests `ros-setup` and the service with a missing or broken ROS 2. No ROS 2 is needed for that.

const NO_ROS = {
  ROS_DISTRO: undefined,
  ROS_VERSION: undefined,
  AMENT_PREFIX_PATH: undefined,
  LD_LIBRARY_PATH: undefined,
  RMW_IMPLEMENTATION: undefined,
};

function rosSetup(environment: NodeJS.ProcessEnv, ...args: string[]) {
  const env = { ...process.env, ...NO_ROS, ...environment };
  return spawnSync(join(ROOT, 'bin/edge-health'), ['ros-setup', ...args], { encoding: 'utf8', env });
}

t.test('ros-setup without ROS 2 reports what to do, and creates nothing', async (t) => {
  const data = temporaryFolder(t);
  const { status, stdout, stderr } = rosSetup({}, '--data', data);
  t.equal(status, 69);
  t.equal(stdout, '');
  t.match(stderr, /^no ROS 2 is sourced\.\n/);
  t.match(stderr, /source .*setup\.bash/);
  t.same(readdirSync(data), []);
});

t.test('ros-setup with a broken ROS 2 reports what is broken', async (t) => {
  const prefix = fakePrefix(t);
  write(prefix, { 'lib/librcl.so': 'no library' });
  const data = temporaryFolder(t);
  const { status, stdout, stderr } = rosSetup(sourcedEnvironment(prefix), '--data', data, '--json');
  t.equal(status, 69);
  t.match(JSON.parse(stdout), { state: 'failed', problem: /librcl\.so is not a shared library: install ros-jazzy-ros-core again/ });
  t.match(stderr, /librcl\.so is not a shared library/);
});

t.test('ros-setup with a ROS 2 that lacks the packages for code generation names them', async (t) => {
  const data = temporaryFolder(t);
  const { status, stderr } = rosSetup(sourcedEnvironment(fakePrefix(t)), '--data', data);
  t.equal(status, 69);
  t.match(stderr, /To prepare for ROS 2 jazzy these are missing:/);
  t.match(stderr, /ROS packages .*rosidl_default_generators.* sudo apt install ros-jazzy-ros-core/);
});

t.test('wrong usage of ros-setup is refused', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'bad.yaml'), 'rsot: {}\n');
  t.equal(rosSetup({}, '--config', join(folder, 'bad.yaml')).status, 78);
  t.equal(rosSetup({}, '--force=maybe').status, 64);
  t.match(rosSetup({}, '--help').stdout, /Exit codes: 0 prepared/);
});

t.test('the service reports a broken ROS 2', { skip: networkUnavailable(), timeout: 120_000 }, async (t) => {
  const network = new Network();
  t.teardown(() => network.dispose());
  const host = network.host();

  /** The state of the graph that the service reports with this environment. */
  const stateWith = async (environment: NodeJS.ProcessEnv, transport: string, folder: string) => {
    const service = await HostService.start(host, folder, { config: { ros: { transport } }, environment });
    const decided = ({ ros }: StatusDocument): boolean => ros.transport !== 'off' || ros.reason !== 'not decided yet';
    const { ros } = await service.untilGet<StatusDocument>('/status', decided);
    const health = await service.untilGet<{ status?: string }>('/health', (body) => body.status !== undefined);
    t.ok(health.status, 'it measures and serves all the same');
    await service.end();
    return { ros, log: service.log };
  };

  const junk = fakePrefix(t);
  write(junk, { 'lib/librcl.so': 'no library' });

  await t.test('auto falls back, and reports that', async (t) => {
    const { ros, log } = await stateWith(sourcedEnvironment(junk), 'auto', temporaryFolder(t));
    t.match(ros, { transport: 'embedded', reason: /librcl\.so is not a shared library.*; embedded instead$/ });
    t.match(log, /^warning: on the ROS 2 graph transport=embedded reason=".*librcl\.so is not a shared library/m);
  });

  await t.test('a configured rclnodejs is not replaced', async (t) => {
    const { ros, log } = await stateWith(sourcedEnvironment(junk), 'rclnodejs', temporaryFolder(t));
    t.match(ros, { transport: 'off', reason: /librcl\.so is not a shared library.*ros\.transport is rclnodejs/ });
    t.match(log, /^error: not on the ROS 2 graph reason=/m);
  });

  await t.test('it is not prepared', async (t) => {
    const { ros } = await stateWith(sourcedEnvironment(fakePrefix(t)), 'auto', temporaryFolder(t));
    t.match(ros, {
      transport: 'embedded',
      reason: /^ROS 2 jazzy is sourced, but not prepared: run edge-health ros-setup; embedded instead$/,
    });
  });

  await t.test('it is prepared but cannot be loaded, which another process detects', async (t) => {
    const folder = temporaryFolder(t);
    const paths = rosPaths(join(folder, 'data'));
    fakePrepared(paths, preparedKey('jazzy', paths) as string);
    const { ros, log } = await stateWith(sourcedEnvironment(fakePrefix(t)), 'auto', folder);
    t.match(ros, { transport: 'embedded', reason: /is sourced and prepared, but does not work: .*rclnodejs\.node.*; embedded instead$/ });
    t.equal(log.match(/is running; dashboard/g)?.length, 1, 'the restart for the library path came before everything else');
  });

  await t.test('SROS2 is enforced: off the graph instead of unsecured', async (t) => {
    const secured = { ...sourcedEnvironment(junk), ROS_SECURITY_ENABLE: 'true', ROS_SECURITY_STRATEGY: 'Enforce' };
    const { ros } = await stateWith(secured, 'auto', temporaryFolder(t));
    t.match(ros, { transport: 'off', reason: /Enforce/ });
  });
});
