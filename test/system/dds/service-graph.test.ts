import t, { type Test } from 'tap';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { Peer, peersUnavailable, VENDORS } from '../../../testkit/dds/peers.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { Network } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';

/** Tests the whole service on the graph: one appliance shows every robot, and reports when one becomes stale. */

t.jobs = 3;
t.setTimeout(600_000);
const skip = peersUnavailable();

interface Alerts {
  readonly data: readonly Alert[];
}

function newNetwork(t: Test): Network {
  const network = new Network();
  t.teardown(() => network.dispose());
  return network;
}

const named = (name: string, status: StatusDocument): StatusDocument['nodes'][number] | undefined =>
  status.nodes.find(({ node_name }) => node_name === name);

t.test('two appliances and a robot of another make see each other; one that stops is an ERROR until it returns', { skip }, async (t) => {
  const network = newNetwork(t);
  const segment = network.segment();
  const [one, two, three] = [network.host(), network.host(), network.host()];
  for (const host of [one, two, three]) segment.attach(host);
  const first = await HostService.start(one, temporaryFolder(t), { config: { node_name: 'robot1' } });
  const secondFolder = temporaryFolder(t);
  let second = await HostService.start(two, secondFolder, { config: { node_name: 'robot2' } });
  const robot = ['--set', 'node_name=robot3', '--set', 'status=OK', '--set', 'cpu_percent=12.5', '--set', 'temperature=nan'];
  const stamp = ['--set', `timestamp=${new Date().toISOString()}`];
  await Peer.start(three, 'fastdds', 'publish', ['--topic', '/health_status', '--hz', '1', ...robot, ...stamp]);

  const all = await first.untilGet<StatusDocument>('/status', (status) => ['robot2', 'robot3'].every((name) => named(name, status)));
  t.equal(all.ros.transport, 'embedded');
  t.equal(all.ros.reason, 'no ROS 2 is sourced');
  // No more than ten wait for the transport; from then on every sample is passed on.
  const { publish, ros } = await first.untilGet<StatusDocument>('/status', ({ ros }) => (ros.published?.health_status ?? 0) > 10);
  t.equal(ros.published?.health_status, publish.samples);
  t.match(await first.text('/metrics'), /^edge_health_ros_published_messages_total\{topic="health_status"\} \d\d$/m);
  t.equal(named('robot1', all)?.local, true);
  t.equal(named('robot2', all)?.local, false);
  await second.untilGet<StatusDocument>('/status', (status) => ['robot1', 'robot3'].every((name) => named(name, status)));

  const other = await first.get<HealthStatus>('/health?node=robot3');
  t.same([other.cpu_percent, other.temperature, other.status], [12.5, null, 'OK'], 'NaN is unavailable');
  // Every sample of the other appliance is the same here as there.
  const here = await first.untilGet<{ data: HealthStatus[] }>('/health/history?node=robot2', ({ data }) => data.length >= 3);
  const theirs = await second.get<{ data: HealthStatus[] }>('/health/history?node=robot2');
  const known = new Map(theirs.data.map((status) => [status.timestamp, status]));
  for (const status of here.data) t.same(status, known.get(status.timestamp));

  const listener = await Peer.start(three, 'cyclone', 'subscribe', ['--topic', '/alerts']);
  await listener.waitFor('matched', ({ topic }) => topic === '/alerts');
  await second.end('SIGKILL');
  const { data } = await first.untilGet<Alerts>('/alerts?node=robot2&metric=health_status&resolved=false', ({ data }) => data.length > 0);
  const [staleAlert] = data;
  t.match(staleAlert, { severity: 'ERROR', metric: 'health_status', resolved: false });
  t.ok((staleAlert?.value ?? 0) >= (staleAlert?.threshold ?? Number.NaN), `${staleAlert?.value} s, ${staleAlert?.threshold} s are allowed`);
  t.match(staleAlert?.alert_id, /^robot2\/health_status\/\w+$/);
  const reported = await listener.waitFor('sample', ({ data }) => data['alert_id'] === staleAlert?.alert_id);
  t.equal(reported.data['severity'], 'ERROR', 'the topic carries it too');
  t.equal(named('robot2', await first.get<StatusDocument>('/status'))?.stale, true);

  second = await HostService.start(two, secondFolder, { config: { node_name: 'robot2' } });
  await first.untilGet<Alerts>('/alerts?node=robot2&metric=health_status&resolved=false', ({ data }) => data.length === 0);
  await listener.waitFor('sample', ({ data }) => data['alert_id'] === staleAlert?.alert_id && data['resolved'] === true);
  const after = await first.untilGet<StatusDocument>('/status', (status) => named('robot2', status)?.status !== 'UNKNOWN');
  t.equal(named('robot2', after)?.stale, false);
  await Promise.all([first.end(), second.end()]);
});

t.test('a robot that always publishes the same status, as `ros2 topic pub` does, is not stale', { skip }, async (t) => {
  const host = newNetwork(t).host();
  const service = await HostService.start(host, temporaryFolder(t));
  const same = ['--set', 'node_name=stuck', '--set', 'status=OK', '--set', 'timestamp=2026-01-01T00:00:00Z', '--durability', 'volatile'];
  const robot = await Peer.start(host, 'cyclone', 'publish', ['--topic', '/health_status', '--hz', '1', ...same]);
  await service.untilGet<StatusDocument>('/status', (status) => named('stuck', status) !== undefined);
  await robot.waitFor('written', ({ number }) => number === 10);
  t.equal(named('stuck', await service.get<StatusDocument>('/status'))?.stale, false);
  t.same((await service.get<Alerts>('/alerts?node=stuck')).data, []);
  await robot.kill('SIGKILL');
  const { data } = await service.untilGet<Alerts>('/alerts?node=stuck&resolved=false', ({ data }) => data.length === 1);
  t.match(data[0], { metric: 'health_status', severity: 'ERROR' });
  await service.end();
});

t.test('a robot of another make that is stopped has left, without an alert', { skip }, async (t) => {
  const host = newNetwork(t).host();
  const service = await HostService.start(host, temporaryFolder(t));
  const same = ['--set', 'status=OK', '--set', 'timestamp=2026-01-01T00:00:00Z'];
  const robots = await Promise.all(
    VENDORS.map((name) =>
      Peer.start(host, name, 'publish', ['--topic', '/health_status', '--hz', '1', '--set', `node_name=${name}`, ...same]),
    ),
  );
  await service.untilGet<StatusDocument>('/status', (status) => VENDORS.every((name) => named(name, status)));
  await Promise.all(robots.map((robot) => robot.waitFor('written', ({ number }) => number === 5)));
  await Promise.all(robots.map((robot) => robot.kill('SIGTERM')));
  await service.untilGet<StatusDocument>('/status', (status) => VENDORS.every((name) => (named(name, status)?.left ?? null) !== null));
  // Beyond three periods and the grace.
  await service.untilGet<StatusDocument>('/status', (status) => VENDORS.every((name) => (named(name, status)?.age_seconds ?? 0) > 8));
  t.same(
    (await service.get<Alerts>('/alerts')).data.filter(({ metric }) => metric === 'health_status'),
    [],
  );
  await service.end();
});

t.test('another monitor of the same name is reported, and its statuses are kept apart', { skip }, async (t) => {
  const host = newNetwork(t).host();
  const service = await HostService.start(host, temporaryFolder(t));
  const twin = [
    '--set',
    'node_name=health_monitor',
    '--set',
    'status=OK',
    '--set',
    'cpu_percent=-7',
    '--set',
    'timestamp=2026-01-01T00:00:00Z',
  ];
  await Peer.start(host, 'cyclone', 'publish', ['--topic', '/health_status', '--hz', '2', ...twin]);
  const { ros } = await service.untilGet<StatusDocument>('/status', ({ ros }) => ros.problem !== null);
  t.match(ros.problem, /named health_monitor; set another node_name/);
  const { data: alerts } = await service.untilGet<Alerts>('/alerts?metric=name_conflict', ({ data }) => data.length > 0);
  t.match(alerts, [{ alert_id: /^health_monitor\/name_conflict\//, severity: 'WARNING', value: 2, resolved: false }]);
  t.same((await service.get<StatusDocument>('/status')).nodes[0]?.conflict_addresses, ['127.0.0.1', '127.0.0.1']);
  const { data } = await service.get<{ data: HealthStatus[] }>('/health/history');
  t.notOk(data.some(({ cpu_percent }) => cpu_percent === -7));
  await service.end();
});

t.test('an alert of another node is served here, also when it was raised before this one joined', { skip }, async (t) => {
  const host = newNetwork(t).host();
  const alert = [
    '--set',
    'alert_id=robot9/cpu_percent/01ABC',
    '--set',
    'severity=CRITICAL',
    '--set',
    'metric=cpu_percent',
    '--set',
    'value=95',
  ];
  const rest = ['--set', 'threshold=90', '--set', `timestamp=${new Date().toISOString()}`, '--count', '1', '--stay'];
  const robot = await Peer.start(host, 'fastdds', 'publish', ['--topic', '/alerts', ...alert, ...rest]);
  await robot.waitFor('written');
  const service = await HostService.start(host, temporaryFolder(t));
  const { data } = await service.untilGet<Alerts>('/alerts?node=robot9', ({ data }) => data.length > 0);
  t.match(data, [{ alert_id: 'robot9/cpu_percent/01ABC', severity: 'CRITICAL', value: 95, resolved: false }]);
  await service.end();
});

t.test('a late subscriber receives what is open, also after a restart of the service', { skip }, async (t) => {
  const host = newNetwork(t).host();
  const folder = temporaryFolder(t);
  // Memory is always in use.
  const config = { thresholds: { memory: { warning: 0.1, critical: 99.9 } }, alerts: { raise_after_seconds: 0 } };
  let service = await HostService.start(host, folder, { config });
  const { data } = await service.untilGet<Alerts>('/alerts?metric=memory_percent', ({ data }) => data.length > 0);
  await service.end();
  service = await HostService.start(host, folder, { config });
  for (const vendor of VENDORS) {
    const late = await Peer.start(host, vendor, 'subscribe', ['--topic', '/alerts']);
    const reported = await late.waitFor('sample', ({ data }) => data['metric'] === 'memory_percent');
    t.equal(reported.data['alert_id'], data[0]?.alert_id);
    t.equal(reported.data['timestamp'], data[0]?.timestamp, `${vendor}: as it was raised`);
  }
  await service.end();
});

t.test('in a namespace all of its names are in it, and other namespaces are remote', { skip }, async (t) => {
  const host = newNetwork(t).host();
  const config = { ros: { namespace: '/lab' } };
  const service = await HostService.start(host, temporaryFolder(t), { config, arguments: ['--ros-args', '-r', '__node:=guard'] });
  const listener = await Peer.start(host, 'cyclone', 'subscribe', ['--topic', '/lab/health_status']);
  const { data } = await listener.waitFor('sample', () => true);
  t.equal(data['node_name'], 'lab/guard');
  const robot = ['--set', 'node_name=arm', '--set', 'status=OK', '--set', 'timestamp=2026-01-01T00:00:00Z'];
  await Peer.start(host, 'fastdds', 'publish', ['--topic', '/robot7/health_status', ...robot]);
  await service.untilGet<StatusDocument>('/status', (status) => named('arm', status) !== undefined);
  await service.end();
});

t.test('if the graph cannot be joined the service stays up and reports the reason', { skip }, async (t) => {
  const cases = [
    { environment: { ROS_DOMAIN_ID: '233' }, reason: /ROS_DOMAIN_ID is "233"; set it to a whole number from 0 to 232/ },
    { environment: { ROS_DOMAIN_ID: 'seven' }, reason: /ROS_DOMAIN_ID is "seven"/ },
    { environment: { ROS_AUTOMATIC_DISCOVERY_RANGE: 'OFF' }, reason: /the discovery range is OFF/ },
    { config: { ros: { transport: 'off' } }, reason: /ros.transport is off/ },
    { config: { ros: { transport: 'rclnodejs' } }, reason: /no ROS 2 is sourced; ros.transport is rclnodejs/ },
  ];
  for (const { reason, ...options } of cases) {
    const service = await HostService.start(newNetwork(t).host(), temporaryFolder(t), options);
    const { ros } = await service.untilGet<StatusDocument>('/status', ({ ros }) => ros.reason !== 'not decided yet');
    t.equal(ros.transport, 'off');
    t.match(ros.reason, reason);
    t.match(service.log, /not on the ROS 2 graph/);
    await service.end();
  }
});
