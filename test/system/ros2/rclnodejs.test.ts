import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { graphNames } from '../../../src/ros/names.ts';
import { addonFile, environmentFor, type Prepared, preparedKeys } from '../../../src/ros/rclnodejs/prepared.ts';
import { probe } from '../../../src/ros/rclnodejs/probe.ts';
import { prepare } from '../../../src/ros/rclnodejs/setup/prepare.ts';
import { findSourcedRos, type SourcedRos } from '../../../src/ros/rclnodejs/sourced-environment.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, Network, networkUnavailable } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';
import { ROOT } from '../../../testkit/service/service.ts';

// Prepares for the sourced ROS 2, which then breaks.

const ros = findSourcedRos(process.env);
const skip = ros.state === 'sourced' ? networkUnavailable() : 'needs a sourced ROS 2';

/** Ends `ros-setup` while it compiles. */
async function killedSetup(data: string, signal: NodeJS.Signals): Promise<void> {
  const child: ChildProcess = spawn(join(ROOT, 'bin/edge-health'), ['ros-setup', '--data', data], {
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  const ended = once(child, 'close');
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.once('close', () => reject(new Error(`ros-setup ended by itself:\n${said}`)));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes('2/5')) resolve();
    });
  });
  // Its child processes are in its process group.
  process.kill(-(child.pid as number), signal);
  await ended;
}

t.test('rclnodejs works with the sourced ROS 2', { skip, timeout: 900_000 }, async (t) => {
  const data = temporaryFolder(t);
  const network = new Network();
  t.teardown(() => network.dispose());
  const host = network.host();
  const { distro, prefixes } = ros as SourcedRos;
  const keys = (): string[] => preparedKeys(join(data, 'ros'));
  const setup = (...args: string[]) =>
    spawnSync(join(ROOT, 'bin/edge-health'), ['ros-setup', '--data', data, ...args], { encoding: 'utf8' });
  const paths = {
    preparedRoot: join(data, 'ros'),
    otherRoots: [],
    owners: [process.geteuid?.() ?? 0],
    interfaces: join(ROOT, 'ros2/edge_health_interfaces'),
    rclnodejs: join(ROOT, 'node_modules/rclnodejs'),
  };

  await t.test('a run that is killed leaves no usable prepared copy', async (t) => {
    await killedSetup(data, 'SIGKILL');
    t.same(keys(), []);
    t.ok(
      readdirSync(join(data, 'ros')).some((name) => name.startsWith('.preparing-')),
      'it was at work',
    );
    await killedSetup(data, 'SIGTERM');
    t.same(readdirSync(join(data, 'ros')), ['setup.log'], 'the next one clears up, and itself when it is asked to end');
  });

  await t.test('it prepares only once', async (t) => {
    const { status, stdout, stderr } = setup('--json');
    t.equal(status, 0, stderr);
    const { state, prepared } = JSON.parse(stdout) as { state: string; prepared: Prepared };
    t.equal(state, 'prepared');
    t.match(prepared.key, new RegExp(`^${distro}-\\d+\\.\\d+\\.\\d+-[0-9a-f]{8}$`));
    t.same(keys(), [prepared.key]);
    t.same(JSON.parse(setup('--json').stdout), { state: 'already', prepared, removed: [] });
    t.notOk(readdirSync(join(ROOT, 'node_modules/rclnodejs')).includes('generated'), 'the installed rclnodejs is left as it was');
    t.notOk(readdirSync(join(ROOT, 'node_modules/rclnodejs')).includes('build'));
  });

  await t.test('the probe detects what works', async (t) => {
    const [key = ''] = keys();
    const prepared = { key, distro, folder: join(data, 'ros', key) };
    const tryWith = (environment: NodeJS.ProcessEnv): Promise<string | null> =>
      probe(prepared, {
        program: new URL('../../../src/ros/rclnodejs/probe-program.ts', import.meta.url),
        environment: { ...process.env, NODE_OPTIONS: '', ...environment },
        discovery: { domainId: 0, discoveryRange: 'LOCALHOST', staticPeers: [] },
        names: graphNames({ node_name: 'health_monitor', namespace: null }, []),
        enclave: null,
      });
    t.equal(await tryWith({}), null);
    t.match(await tryWith({ RMW_IMPLEMENTATION: 'rmw_nonsense_cpp' }), /rmw_nonsense_cpp/);
    t.match(
      await tryWith({ ROS_SECURITY_ENABLE: 'true', ROS_SECURITY_STRATEGY: 'Enforce', ROS_SECURITY_KEYSTORE: '/nonexistent' }),
      /\/nonexistent/,
    );
    t.equal(await tryWith({ HOME: '/nonexistent', ROS_LOG_DIR: '', ROS_HOME: '' }), null, 'a home folder is not needed');
    t.equal(environmentFor(prepared, environmentFor(prepared, process.env) ?? {}), null);
  });

  await t.test('a missing library and a removed prepared copy are reported', async (t) => {
    const folder = temporaryFolder(t);
    const libraries = join(folder, 'lib');
    mkdirSync(libraries);
    const all = prefixes.flatMap((prefix) => readdirSync(join(prefix, 'lib')).map((name) => join(prefix, 'lib', name)));
    for (const file of all.filter((name) => /\.so(\.\d+)*$/.test(name) && !name.includes('librcl_lifecycle'))) {
      symlinkSync(file, join(libraries, file.slice(file.lastIndexOf('/') + 1)));
    }
    t.match(await stateWith(t, host, data, { LD_LIBRARY_PATH: libraries }), {
      transport: 'embedded',
      reason: /does not work: .*librcl_lifecycle\.so.*; embedded instead$/,
    });
    const [key = ''] = keys();
    const elsewhere = join(folder, 'elsewhere');
    cpSync(join(data, 'ros', key), elsewhere, { recursive: true });
    rmSync(addonFile(join(data, 'ros', key)));
    t.match(await stateWith(t, host, data, {}), {
      transport: 'embedded',
      reason: /is incomplete: run edge-health ros-setup --force; embedded instead$/,
    });
    rmSync(join(data, 'ros', key), { recursive: true });
    t.match(await stateWith(t, host, data, {}), {
      transport: 'embedded',
      reason: /not prepared: run edge-health ros-setup; embedded instead$/,
    });
    cpSync(elsewhere, join(data, 'ros', key), { recursive: true });
    t.match(await stateWith(t, host, data, {}), { transport: 'rclnodejs', reason: `ROS 2 ${distro} is sourced and prepared` });
  });

  await t.test('changed interfaces are prepared again, and the old prepared copy is removed', async (t) => {
    const [before = ''] = keys();
    const interfaces = join(temporaryFolder(t), 'edge_health_interfaces');
    cpSync(paths.interfaces, interfaces, { recursive: true });
    const file = join(interfaces, 'msg/HealthStatus.msg');
    writeFileSync(file, `${readFileSync(file, 'utf8')}float64 another\n`);
    const lines: string[] = [];
    const result = await prepare({
      ros: ros as SourcedRos,
      paths: { ...paths, interfaces },
      environment: process.env,
      force: false,
      // The message code of this product does not have the new field: here it only has to load.
      probe: async () => null,
      onProgress: (line) => lines.push(line),
    });
    t.match(result, { state: 'prepared', removed: [before] });
    t.equal(lines.length > 3, true, 'it was at work');
    t.not(keys()[0], before);
    t.equal(keys().length, 1);
    t.match(await stateWith(t, host, data, {}), {
      transport: 'embedded',
      reason: /prepared for another version .*: run edge-health ros-setup again; embedded instead$/,
    });
  });
});

/** The state of the graph that the service reports with the sourced ROS 2 and these changes. */
async function stateWith(t: Test, host: Host, data: string, changes: NodeJS.ProcessEnv): Promise<StatusDocument['ros']> {
  const service = await HostService.start(host, temporaryFolder(t), {
    config: { storage: { path: data } },
    environment: {
      ...process.env,
      ROS_DOMAIN_ID: '0',
      ROS_AUTOMATIC_DISCOVERY_RANGE: 'SUBNET',
      FASTDDS_BUILTIN_TRANSPORTS: 'UDPv4',
      ...changes,
    },
  });
  const { ros: state } = await service.untilGet<StatusDocument>('/status', (status) => status.ros.transport !== 'off');
  await service.end();
  return state;
}
