import t, { type Test } from 'tap';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import { GraphNode } from '../../../testkit/dds/graph-node.ts';
import { Peer, peersUnavailable, VENDORS } from '../../../testkit/dds/peers.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, Network } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';
import { until } from '../../../testkit/wait.ts';
import { GraphWatch } from './support/graph-watch.ts';

/** Tests the subscription of the harness with the real service and its embedded transport, in networks of their own. */

t.jobs = 2;
t.setTimeout(600_000);
const skip = peersUnavailable();
/** Under load a discovery may take its time; no test result depends on it. */
const TIMEOUT_SECONDS = 120;
/** Samples that a late joiner receives. */
const DEPTH = 10;
const OBSERVER_NODE = 'edge_health_harness';

function network(t: Test): Network {
  const made = new Network();
  t.teardown(() => made.dispose());
  return made;
}

interface History {
  readonly data: readonly HealthStatus[];
}

const stampsOf = (statuses: readonly HealthStatus[]): string[] => statuses.map(({ timestamp }) => timestamp);

t.test('everything that the service stores is received, each status once', { skip }, async (t) => {
  const host = network(t).host();
  const config = { publish_frequency: 20, thresholds: { memory: { warning: 0.1, critical: 99.9 } }, alerts: { raise_after_seconds: 0 } };
  const service = await HostService.start(host, temporaryFolder(t), { config });
  const watch = await GraphWatch.start(host);
  t.match(watch.all('ready')[0], { transport: 'embedded', reason: /^light.*domain 0, discovery range SUBNET/ });
  const [first] = await watch.waitForCount('status', 60, () => true, TIMEOUT_SECONDS);
  const { data } = await service.get<History>(`/health/history?order=asc&from=${first?.status.timestamp}&limit=50`);
  t.same(watch.statuses.slice(0, data.length), data, 'as they are stored, in their order');

  const { data: alerts } = await service.get<{ data: readonly Alert[] }>('/alerts?metric=memory_percent');
  const { alert } = await watch.waitFor('alert', ({ alert }) => alert.metric === 'memory_percent', TIMEOUT_SECONDS);
  t.same(alert, alerts[0], 'an alert of before, too');

  t.same(
    watch.all('note').map(({ text }) => text),
    [],
  );
  t.equal(await watch.stop(), 0);
  await service.end();
});

t.test('a late observer receives the last ten statuses', { skip }, async (t) => {
  const host = network(t).host();
  const node = await GraphNode.start(host);
  node.stream({ hz: 50, count: 30 });
  await node.waitFor('published', ({ number }) => number === 30, TIMEOUT_SECONDS);
  const late = await GraphWatch.start(host);
  await late.waitForCount('status', DEPTH, () => true, TIMEOUT_SECONDS);
  t.same(
    late.statuses.map(({ cpu_percent }) => cpu_percent),
    Array.from({ length: DEPTH }, (_, index) => 30 - DEPTH + 1 + index),
  );
  t.same(late.all('note'), []);
});

t.test('after a restart and a kill of the service, its new participants are received', { skip }, async (t) => {
  const host = network(t).host();
  const folder = temporaryFolder(t);
  const watch = await GraphWatch.start(host);
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const service = await HostService.start(host, folder, { config: { publish_frequency: 10 } });
    const count = watch.all('status').length;
    await watch.waitForCount('status', count + 20, () => true, TIMEOUT_SECONDS);
    const { data } = await service.get<History>('/health/history?order=asc&hours=1&limit=10000');
    await service.end(signal);
    // It joins with the last ten samples: earlier ones belong to no subscription.
    const first = watch.statuses[count]?.timestamp ?? '';
    const missing = (): string[] => {
      const received = new Set(stampsOf(watch.statuses));
      return stampsOf(data).filter((stamp) => stamp >= first && !received.has(stamp));
    };
    // What was published before the end may still be on its way.
    await until(`all ${data.length} samples are received`, () => missing().length === 0, { describe: missing });
  }
  t.equal(new Set(stampsOf(watch.statuses)).size, watch.statuses.length, 'none twice');
  await watch.stop();
});

t.test('the harness is a node with two subscriptions, and nothing else', { skip }, async (t) => {
  const host = network(t).host();
  const seers = await Promise.all(VENDORS.map(async (vendor) => [vendor, await Peer.start(host, vendor, 'graph')] as const));
  const finder = await Peer.start(host, 'cyclone', 'discovery');
  await finder.waitFor('reader', () => true, TIMEOUT_SECONDS);
  const watch = await GraphWatch.start(host);
  for (const [vendor, seer] of seers) {
    const seen = await seer.waitFor(
      'entities',
      ({ nodes }) => nodes.some(({ name, readers }) => name === OBSERVER_NODE && readers.length === 2),
      TIMEOUT_SECONDS,
    );
    t.match(seen.nodes, [{ namespace: '/', name: OBSERVER_NODE, writers: [] }], vendor);
  }
  const { participant } = await finder.waitFor('endpoint', ({ topic }) => topic === 'rt/health_status', TIMEOUT_SECONDS);
  const its = await finder.waitForCount('endpoint', 3, (endpoint) => endpoint.participant === participant, TIMEOUT_SECONDS);
  const endpoints = its.map(({ kind, topic, reliability, durability }) => [kind, topic, reliability, durability]);
  t.strictSame(endpoints.sort(), [
    ['reader', 'rt/alerts', 'reliable', 'volatile'],
    ['reader', 'rt/health_status', 'reliable', 'volatile'],
    ['writer', 'ros_discovery_info', 'reliable', 'transient-local'],
  ]);
  await watch.stop();
  await finder.waitFor('participant_gone', ({ guid }) => guid === participant, TIMEOUT_SECONDS);
  t.equal(finder.all('endpoint').filter((endpoint) => endpoint.participant === participant).length, 3);
});

const status = (node: string): string[] => ['--set', `node_name=${node}`, '--set', 'status=OK', '--set', 'timestamp=2026-01-01T00:00:00Z'];

t.test('other nodes are ignored, invalid statuses are refused, and a second publisher of the same node is noted', { skip }, async (t) => {
  const host = network(t).host();
  const node = await GraphNode.start(host);
  const watch = await GraphWatch.start(host);
  const robot = await Peer.start(host, 'fastdds', 'publish', ['--topic', '/health_status', '--hz', '20', ...status('robot2')]);
  const lies = ['--set', 'node_name=health_monitor', '--set', 'status=SPLENDID'];
  const liar = await Peer.start(host, 'cyclone', 'publish', ['--topic', '/health_status', '--hz', '20', ...lies]);
  const alert = [
    '--set',
    'severity=ERROR',
    '--set',
    'metric=health_status',
    '--set',
    'timestamp=2026-01-01T00:00:00Z',
    '--count',
    '1',
    '--stay',
  ];
  const judge = await Peer.start(host, 'cyclone', 'publish', [
    '--topic',
    '/alerts',
    '--set',
    'alert_id=health_monitor/health_status/1',
    ...alert,
  ]);
  await node.detailsUntil(({ subscribers }) => subscribers === 1);
  node.stream({ hz: 10, count: 30 });
  await watch.waitFor('status', ({ status }) => status.cpu_percent === 30, TIMEOUT_SECONDS);
  await watch.waitFor('note', ({ text }) => /message refused.*status is "SPLENDID"/.test(text), TIMEOUT_SECONDS);
  for (const peer of [robot, liar, judge]) await peer.waitFor('written');
  // The first sample of a writer that was just discovered may be received twice.
  t.same(
    [...new Set(watch.statuses.map(({ cpu_percent }) => cpu_percent))],
    Array.from({ length: 30 }, (_, i) => i + 1),
  );
  await Promise.all([robot, liar, judge].map((peer) => peer.kill()));

  node.stream({ hz: 10, count: 0 });
  await Peer.start(host, 'cyclone', 'publish', ['--topic', '/health_status', '--hz', '5', ...status('health_monitor')]);
  await watch.waitFor('note', ({ text }) => /two publishers send statuses of health_monitor/.test(text), TIMEOUT_SECONDS);
  t.same(watch.all('alert'), [], 'whether the node is stale is judged by another node, and is no alert of its own');
});

t.test('samples that the graph never delivered are noted with their numbers', { skip }, async (t) => {
  const host = network(t).host();
  const watch = await GraphWatch.start(host);
  const node = await GraphNode.start(host);
  node.stream({ hz: 50, count: 0 });
  await watch.waitForCount('status', 50, () => true, TIMEOUT_SECONDS);
  // Longer than the service keeps samples for it, and more than the kernel buffers.
  watch.signal('SIGSTOP');
  host.ip('link', 'set', 'lo', 'down');
  const published = node.all('published').length;
  await node.waitForCount('published', published + 5 * DEPTH, () => true, TIMEOUT_SECONDS);
  host.ip('link', 'set', 'lo', 'up');
  host.route();
  watch.signal('SIGCONT');
  const note = await watch.waitFor('note', ({ text }) => /statuses were published and never delivered/.test(text), TIMEOUT_SECONDS);
  await watch.waitForCount('status', watch.all('status').length + 20, () => true, TIMEOUT_SECONDS);
  const numbers = watch.statuses.map(({ cpu_percent }) => cpu_percent as number);
  const holes = numbers.slice(1).map((number, i) => number - (numbers[i] ?? 0) - 1);
  t.equal(Math.max(...holes), Number(/: (\d+) statuses/.exec(note.text)?.[1]));
});

async function receivedBy(t: Test, watch: GraphWatch, host: Host, argument: string[], config: Record<string, unknown>): Promise<void> {
  const service = await HostService.start(host, temporaryFolder(t), { config, arguments: argument });
  await watch.waitForCount('status', 3, () => true, TIMEOUT_SECONDS);
  await service.end();
}

t.test('in a namespace it subscribes there, and remapped topics are found', { skip }, async (t) => {
  const host = network(t).host();
  const lab = await GraphWatch.start(host, { node: 'lab/health_monitor' });
  await receivedBy(t, lab, host, [], { ros: { namespace: '/lab' } });
  t.same(lab.all('note'), []);
  const searching = await GraphWatch.start(host);
  const remapped = ['--ros-args', '-r', 'health_status:=/well/being'];
  const service = await HostService.start(host, temporaryFolder(t), { arguments: remapped, config: { publish_frequency: 5 } });
  await searching.waitFor('note', ({ text }) => text.includes('health_monitor publishes on /well/being'), TIMEOUT_SECONDS);
  const count = searching.all('status').length;
  await searching.waitForCount('status', count + 10, () => true, TIMEOUT_SECONDS);
  await service.end();
});

t.test('changing addresses and a domain of its own are supported', { skip }, async (t) => {
  const made = network(t);
  const segment = made.segment();
  const [brain, desk] = [made.host(), made.host()];
  segment.attach(brain);
  const own = segment.attach(desk);
  const node = await GraphNode.start(brain, { domainId: 7 });
  const [watch, stranger] = await Promise.all([GraphWatch.start(desk, { domainId: 7 }), GraphWatch.start(desk)]);
  t.match(watch.all('ready')[0]?.reason, /domain 7/);
  node.stream({ hz: 5, count: 0 });
  await watch.waitForCount('status', 10, () => true, TIMEOUT_SECONDS);
  own.setAddress('10.77.1.99');
  await watch.waitFor('note', ({ text }) => /joined the ROS 2 graph again/.test(text), TIMEOUT_SECONDS);
  const count = watch.all('status').length;
  await watch.waitForCount('status', count + 20, () => true, TIMEOUT_SECONDS);
  t.same(stranger.all('status'), []);
});

t.test('if it can never subscribe, it reports what to do', { skip }, async (t) => {
  const host = network(t).host();
  const cases = [
    [{ transport: 'rclnodejs' }, {}, /rclnodejs cannot be used: no ROS 2 is sourced; or use --transport embedded/],
    [{}, { ROS_AUTOMATIC_DISCOVERY_RANGE: 'OFF' }, /discovery range is OFF.*--transport off/],
    [{}, { ROS_DOMAIN_ID: '233' }, /ROS_DOMAIN_ID is "233"; set it/],
    [{ transport: 'embedded' }, { ROS_SECURITY_ENABLE: 'true', ROS_SECURITY_STRATEGY: 'Enforce' }, /Enforce.*--transport rclnodejs/],
    [{}, { ROS_SECURITY_ENABLE: 'true', ROS_SECURITY_STRATEGY: 'Enforce' }, /rclnodejs cannot be used: no ROS 2.*--transport off/],
  ] as const;
  for (const [options, variables, error] of cases) {
    const none = { ROS_DISTRO: '', AMENT_PREFIX_PATH: '', ROS_DOMAIN_ID: '', ROS_LOCALHOST_ONLY: '', ROS_AUTOMATIC_DISCOVERY_RANGE: '' };
    const watch = GraphWatch.launch(host, options, { ...none, ...variables });
    t.match((await watch.waitFor('failed', () => true, TIMEOUT_SECONDS)).error, error);
    t.equal(await watch.ended, 69);
  }
});
