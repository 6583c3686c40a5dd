import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { spoolFolder } from '../../../src/store/spool/spool.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, Network, networkUnavailable } from '../../../testkit/network/network.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

// The three roles without ROS 2, started by scripts/roles.ts in a network of their own, because their ports are fixed.

t.setTimeout(600_000);

const ROLES = ['edge_brain', 'sensor_node', 'actuator_node'];
const skip = networkUnavailable();

/** The roles started in a folder, a new one by default; `output` is what they have printed so far. */
function startRoles(
  t: Test,
  host: Host,
  roles: readonly string[] = [],
  folder = temporaryFolder(t),
): { child: ChildProcess; output: () => string; ended: Promise<unknown[]> } {
  const child = host.spawn(process.execPath, [join(ROOT, 'scripts/roles.ts'), ...roles], {
    cwd: folder,
    // As in a systemd service: the processes must not share it.
    env: { ...process.env, NODE_OPTIONS: '', RUNTIME_DIRECTORY: temporaryFolder(t) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (more: string) => {
      text += more;
    });
  }
  const ended = once(child, 'close').then((how) => {
    // Samples in memory survive a killed process.
    for (const data of globSync(`${folder}/data/*`)) rmSync(spoolFolder(data, {}), { recursive: true, force: true });
    return how;
  });
  return { child, output: () => text, ended };
}

interface Answer {
  readonly reachable: boolean;
  readonly health: HealthStatus;
  readonly status: StatusDocument;
}

t.test('three processes run one role each on one machine, and Ctrl-C ends all of them', { skip }, async (t) => {
  const network = new Network();
  t.teardown(() => network.dispose());
  const host = network.host();
  const { child, output, ended } = startRoles(t, host);
  await until('all roles are there', () => ROLES.every((role) => new RegExp(`^${role} *\\| .*is running`, 'm').test(output())), {
    describe: output,
  });
  const ask = (index: number): Answer => {
    const argv = ['status', '--url', `http://127.0.0.1:${5000 + index}`, '--json'];
    return JSON.parse(spawnSync(...host.command(join(ROOT, 'bin/edge-health'), argv), { encoding: 'utf8' }).stdout) as Answer;
  };
  for (const [index, role] of ROLES.entries()) {
    const { health, reachable, status } = ask(index);
    t.equal(reachable, true);
    t.equal(health.node_name, role);
    t.equal(status.shutdown.enabled, role === 'edge_brain', 'one call of /safe_shutdown is answered once');
  }
  await until('all roles are there', () => ask(0).status.nodes.length === ROLES.length, { describe: output });
  t.same(
    ask(0)
      .status.nodes.map(({ node_name }) => node_name)
      .toSorted(),
    ROLES.toSorted(),
    'edge_brain shows all three',
  );
  t.notMatch(output(), /<\d>/, 'the log is for people');
  child.kill('SIGINT');
  t.same(await ended, [0, null]);
  for (const role of ROLES) t.match(output(), new RegExp(`^${role} *\\| notice: received `, 'm'));
});

t.test('a process that cannot run ends the others, and its exit code is that of the whole', { skip }, async (t) => {
  const network = new Network();
  t.teardown(() => network.dispose());
  const host = network.host();
  const folder = temporaryFolder(t);
  const first = startRoles(t, host, ['sensor_node'], folder);
  await until('the first one runs', () => first.output().includes('is running'), { describe: first.output });
  const { output, ended } = startRoles(t, host, ['sensor_node', 'actuator_node'], folder);
  t.same(await ended, [75, null]);
  t.match(output(), /^sensor_node +\| error: another edge-health is using the data folder/m);
  t.match(output(), /^roles: sensor_node ended by itself \(75\); the others are ended too$/m);
  first.child.kill('SIGINT');
  await first.ended;
  t.notMatch(output(), /edge_brain/);
});

t.test('an unknown role is refused', async (t) => {
  const child = spawn(process.execPath, [join(ROOT, 'scripts/roles.ts'), 'edge_brain', 'gripper'], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (more: string) => {
    said += more;
  });
  t.same(await once(child, 'close'), [64, null]);
  t.equal(said, 'roles: there is no role gripper; allowed: one or more of edge_brain, sensor_node, actuator_node\n');
});
