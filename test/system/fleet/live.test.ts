import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { stringify } from 'yaml';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { MachineTree } from '../../../testkit/machine/machine-tree.ts';
import { materialiseFixture } from '../../../testkit/machine/machines.ts';
import { SmallDisk } from '../../../testkit/machine/small-disk.ts';
import { reserveDomain } from '../../../testkit/network/domain.ts';
import { familiesOf, filledIn, queries, rules } from '../../../testkit/ops/fleet-files.ts';
import { startIn } from '../../../testkit/service/rest.ts';
import { ROOT, type RunningService } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';
import { Engine, type Notification } from './support/engines.ts';
import { FleetServers } from './support/fleet.ts';
import { nameServer } from './support/names.ts';

const TOKEN = 'a-token-of-the-fleet';
const judgedAtOnce = { alerts: { raise_after_seconds: 0, clear_after_seconds: 0, hysteresis_percent: 0 } };
const LABORATORY = { site: 'campus', room: 'lab-1' };
const FIRST = 'robot-1.lab-1.campus.example';
const portOf = (service: RunningService): number => Number(new URL(service.url).port);

const SRV_HOST = 'robot-3.lab-1.campus.example';
/** Queries that have no data if all is well; another check ensures that their families exist. */
const EMPTY_WHEN_WELL: readonly RegExp[] = [/Failed jobs/, /Restarts of the service|annotation/];

/** A machine whose load the test sets, with everything that a service can have: a token, a ROS 2 graph, maintenance jobs. */
async function busyMachine(t: Test, folder: string, machine: MachineTree): Promise<RunningService> {
  const token = join(folder, 'rest.token');
  writeFileSync(token, TOKEN, { mode: 0o600 });
  const options = {
    node_name: 'robot_1',
    // How full the disk of this machine is must not matter.
    thresholds: { disk: { warning: 99.8, critical: 99.9 } },
    ...judgedAtOnce,
    rest: { token_file: token },
    // On the graph, in a domain of its own.
    ros: { transport: 'embedded', discovery_range: 'LOCALHOST', domain_id: await reserveDomain(t) },
    ops: { check: { clock: false } },
  };
  const service = await startIn(t, folder, { config: options, arguments: ['--proc', machine.procRoot, '--sys', machine.sysRoot] });
  return service;
}

async function recordedMachine(t: Test, folder: string, name: string, config: Readonly<Record<string, unknown>>): Promise<RunningService> {
  const { procRoot, sysRoot } = materialiseFixture(t, name);
  return startIn(t, folder, { config, arguments: ['--proc', procRoot, '--sys', sysRoot] });
}

t.test('the shipped files work with real engines and real appliances', async (t) => {
  const [here, one, two, three] = [1, 2, 3, 4].map(() => temporaryFolder(t)) as [string, string, string, string];
  const disk = new SmallDisk(t);
  const machine = new MachineTree(t, 'pi5');
  const [robot1, robot2, robot3] = await Promise.all([
    busyMachine(t, one, machine),
    recordedMachine(t, two, 'pi5', { node_name: 'robot_2' }),
    recordedMachine(t, three, 'intel-nuc', {
      ...judgedAtOnce,
      node_name: 'robot_3',
      disk: { paths: [disk.folder] },
      // Prometheus requests a target of an SRV record by that name.
      rest: { allowed_hosts: [SRV_HOST] },
    }),
  ]);
  // The jobs find the service by its runtime folder.
  process.env['RUNTIME_DIRECTORY'] = join(one, 'run');
  const operations = (name: string): void => {
    const { status, stderr, stdout } = spawnSync(join(ROOT, 'bin/edge-health'), ['ops', name, '--config', robot1.configFile], {
      encoding: 'utf8',
    });
    t.ok([0, 1, 2].includes(status ?? -1), `edge-health ops ${name} runs`, { stderr, stdout });
  };
  for (const name of ['health_check', 'collect_metrics', 'backup_logs']) operations(name);
  new Engine(t, join(ROOT, 'bin/edge-health'), ['ops', 'run', '--config', robot1.configFile]);

  const srv = { name: '_edge-health._tcp.lab-1.campus.example', host: SRV_HOST, port: portOf(robot3) };
  const alone = 'robot-4.lab-2.campus.example';
  const resolvConf = await nameServer(t, here, { hosts: [srv.host, alone], srv });
  const servers = await FleetServers.start(
    t,
    here,
    {
      static: [{ targets: [`127.0.0.1:${portOf(robot1)}`], labels: { ...LABORATORY, host: FIRST } }],
      files: {
        'robots.yml': stringify([
          { targets: [`127.0.0.1:${portOf(robot2)}`], labels: { ...LABORATORY, host: 'robot-2.lab-1.campus.example' } },
        ]),
        'more.json': JSON.stringify([
          { targets: [`localhost:${portOf(robot2)}`], labels: { site: 'campus', room: 'workshop', robot: 'arm', host: 'arm-cell' } },
        ]),
      },
      dns: { srv: srv.name, a: alone, aPort: portOf(robot3) },
      token: TOKEN,
    },
    resolvConf,
  );
  const { prometheus, webhook, log } = servers;

  await t.test('targets are found through files and the name server, with readable labels', async (t) => {
    const wanted = [
      { instance: FIRST, robot: 'robot-1', ...LABORATORY },
      { instance: 'robot-2.lab-1.campus.example', robot: 'robot-2', ...LABORATORY },
      { instance: 'arm-cell', robot: 'arm', site: 'campus', room: 'workshop' },
      { instance: `${srv.host}:${srv.port}`, robot: 'robot-3', ...LABORATORY },
      { instance: alone, robot: 'robot-4', site: 'campus', room: 'lab-2' },
    ];
    const targets = await until(
      'all targets are up',
      async () => {
        const found = (await prometheus.targets()).filter(({ labels }) => labels['job'] === 'edge-health');
        return found.length === wanted.length && found.every(({ health }) => health === 'up') ? found : null;
      },
      { describe: log },
    );
    const sorted = (list: readonly Readonly<Record<string, string>>[]) =>
      list.map((labels) => ({ ...labels })).sort((a, b) => (`${a['instance']}` < `${b['instance']}` ? -1 : 1));
    t.same(sorted(targets.map(({ labels }) => labels)), sorted(wanted.map((labels) => ({ ...labels, job: 'edge-health' }))));
    t.equal((await robot1.get('/metrics')).status, 401, 'the first wants the token');
  });

  const critical =
    (instance: string, status: Notification['status']) =>
    (reported: Notification): boolean =>
      reported.receiver === 'on-call' &&
      reported.status === status &&
      reported.labels['alertname'] === 'EdgeHealthCritical' &&
      reported.labels['instance'] === instance;

  await t.test('a full disk raises an alert, which reaches the person on call and is resolved when there is space', async (t) => {
    disk.fill();
    await webhook.one(critical(alone, 'firing'), log);
    disk.free();
    await webhook.one(critical(alone, 'resolved'), log);
    t.same(
      webhook.notifications.filter(critical(alone, 'firing')).map(({ labels }) => labels['room']),
      ['lab-2'],
      'notified once',
    );
  });

  await t.test('a loaded CPU raises an alert, which is resolved afterwards', async (t) => {
    machine.setCpuPercent(99);
    const fired = await webhook.one(critical(FIRST, 'firing'), log);
    const about = { severity: 'critical', job: 'edge-health', instance: FIRST, robot: 'robot-1', node: 'robot_1', ...LABORATORY };
    t.same({ ...fired.labels }, { alertname: 'EdgeHealthCritical', ...about });
    t.match(fired.annotations['description'], /^robot_1 on robot-1\.lab-1\.campus\.example has been CRITICAL for a minute: CPU 99/);
    await t.test('every name in rules and dashboards exists, no rule fails, every panel has data', (t) => everythingHasData(t, servers));
    machine.setCpuPercent(5);
    await webhook.one(critical(FIRST, 'resolved'), log);
  });

  await t.test('a killed service is reported as down', async (t) => {
    await robot2.end('SIGKILL');
    const isDown = ({ labels, status }: Notification): boolean =>
      labels['alertname'] === 'EdgeHealthDown' &&
      status === 'firing' &&
      /^(?:arm-cell|robot-2\.lab-1\.campus\.example)$/.test(labels['instance'] ?? '');
    const down = await webhook.one(isDown, log);
    t.equal(down.labels['severity'], 'critical');
    // A loaded machine may have missed a sample before, which is a warning.
    const others = webhook.notifications.filter(
      ({ labels, status }) => labels['instance'] === down.labels['instance'] && labels['severity'] === 'critical' && status === 'firing',
    );
    t.same([...new Set(others.map(({ labels }) => labels['alertname']))], ['EdgeHealthDown'], 'and nothing else is reported of it');
  });
});

async function everythingHasData(t: Test, { log, prometheus }: FleetServers): Promise<void> {
  const instances = [FIRST, 'robot-2.lab-1.campus.example', 'robot-3.*'];
  let dead: string[] = [];
  await until(
    'every family that is named exists',
    async () => {
      dead = deadNames(await prometheus.families());
      return dead.length === 0;
    },
    { describe: () => `${dead}\n${log()}` },
  );
  t.same(await prometheus.failedRules(), [], 'every rule was evaluated');
  const all = queries();
  t.ok(all.length > 50, `${all.length} queries`);
  for (const { expr, where } of all) {
    const found = await Promise.all(
      instances.map((instance) => prometheus.query(filledIn(expr, instance).replaceAll('instance="robot-3.*"', 'instance=~"robot-3.*"'))),
    );
    if (!EMPTY_WHEN_WELL.some((pattern) => pattern.test(where)))
      t.ok(
        found.some((series) => series.length > 0),
        `${where} has data`,
        { expr },
      );
  }
}

/** Families that rules or dashboards name and that no program exports. */
function deadNames(families: ReadonlySet<string>): string[] {
  const named = new Set([...rules().map(({ expr }) => expr), ...queries().map(({ expr }) => expr)].flatMap(familiesOf));
  return [...named].filter((name) => !families.has(name));
}
