import t, { type Test } from 'tap';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import {
  ALERT as ALERT_TYPE,
  DIAGNOSTIC_ARRAY,
  type DiagnosticArrayMessage,
  HEALTH_STATUS,
  PARTICIPANT_ENTITIES_INFO,
  SAFE_SHUTDOWN,
  SHUTDOWN_STATUS,
} from '../../src/ros/interfaces.generated.ts';
import { ALERT, HEALTH } from '../../testkit/dds/contents.ts';
import { GraphNode, type NodeOptions } from '../../testkit/dds/graph-node.ts';
import { LONG_LEASE_SECONDS, LoopbackParticipant, type TopicReader } from '../../testkit/dds/loopback.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { materialiseFixture } from '../../testkit/machine/machines.ts';
import { reserveDomain } from '../../testkit/network/domain.ts';
import { NO_ROS, THIS_MACHINE } from '../../testkit/network/this-machine.ts';
import { RunningService } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

/**
 * The embedded transport against itself, across processes and real UDP sockets, on the loopback interface alone. Each test has a domain
 * of its own, which no other test and no other run uses at the same time. test/system/dds tests other implementations of DDS.
 */

t.setTimeout(600_000);

interface Health {
  readonly cpu_percent: number;
  readonly node_name: string;
  readonly timestamp: string;
}

/** A node in a process of its own, on loopback. */
const startNode = async (t: Test, domainId: number, options: NodeOptions = {}): Promise<GraphNode> => {
  const node = await GraphNode.start(THIS_MACHINE, { domainId, discoveryRange: 'LOCALHOST', leaseSeconds: LONG_LEASE_SECONDS, ...options });
  t.teardown(() => node.kill());
  return node;
};

const numbers = ({ samples }: TopicReader<Health>): number[] => samples.map(({ message }) => message.cpu_percent);
const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

t.test('late joiners get the last ten statuses, volatile readers only new ones; then every sample, in order', async (t) => {
  const domain = await reserveDomain(t);
  const node = await startNode(t, domain);
  let number = 0;
  const publish = (): void => {
    number += 1;
    node.publishHealth({ ...HEALTH, cpu_percent: number });
    node.publishAlert({ ...ALERT, value: number });
  };
  while (number < 25) publish();
  // Commands are executed in order.
  t.equal((await node.details()).subscribers, 0);
  const late = new LoopbackParticipant(t, domain);
  const health = late.read<Health>('/health_status', HEALTH_STATUS);
  const fresh = late.read<Health>('/health_status', HEALTH_STATUS, { transientLocal: false });
  const alerts = late.read<{ readonly value: number }>('/alerts', ALERT_TYPE);
  await late.start();
  await until('the last ten statuses and alerts', () => health.samples.length >= 10 && alerts.samples.length >= 10);
  await node.detailsUntil(({ subscribers }) => subscribers === 2, 120);
  while (number < 40) publish();
  await until(
    'the last of all',
    () => [health, fresh].every((reader) => numbers(reader).at(-1) === 40) && alerts.samples.at(-1)?.message.value === 40,
  );
  t.same(numbers(health), range(16, 40));
  t.same(numbers(fresh), range(26, 40));
  t.same(
    alerts.samples.map(({ message }) => message.value),
    range(16, 40),
  );
  t.match(health.samples[0]?.message, { memory_percent: Number.NaN, temperature: HEALTH.temperature, node_name: HEALTH.node_name });
  t.equal((await node.details()).refused, 0);

  await node.stop();
  await until('it has left', () => late.participant.peerCount === 0);
  t.same([late.participant.matchedCount, numbers(health).length], [0, 25]);
});

t.test('ros_discovery_info lists the nodes with their endpoints, and is kept for late joiners', async (t) => {
  const domain = await reserveDomain(t);
  const node = await startNode(t, domain, { namespace: '/robot7' });
  node.publishHealth(HEALTH);
  const late = new LoopbackParticipant(t, domain);
  const graph = late.read<{
    readonly gid: { readonly data: Uint8Array };
    readonly node_entities_info_seq: readonly {
      readonly node_namespace: string;
      readonly node_name: string;
      readonly writer_gid_seq: readonly { readonly data: Uint8Array }[];
      readonly reader_gid_seq: readonly { readonly data: Uint8Array }[];
    }[];
  }>('', PARTICIPANT_ENTITIES_INFO, { ddsName: 'ros_discovery_info' });
  const health = late.read<Health>('/robot7/health_status', HEALTH_STATUS);
  await late.start();
  await until('the graph and a status', () => graph.samples.length > 0 && health.samples.length > 0);
  const { message } = graph.samples[0] as (typeof graph.samples)[number];
  const writer = health.samples[0]?.writer as string;
  t.equal(Buffer.from(message.gid.data).toString('hex'), `${writer.slice(0, 24)}000001c1`);
  t.same(
    message.node_entities_info_seq.map(({ node_namespace, node_name, writer_gid_seq, reader_gid_seq }) => [
      `${node_namespace}/${node_name}`,
      writer_gid_seq.length,
      reader_gid_seq.length,
    ]),
    [
      ['/robot7/health_monitor', 3, 0],
      ['/robot7/threshold_monitor', 0, 1],
      ['/robot7/alert_publisher', 2, 1],
      ['/robot7/safe_shutdown', 3, 2],
    ],
  );
  const gids = message.node_entities_info_seq[0]?.writer_gid_seq.map(({ data }) => Buffer.from(data).toString('hex'));
  t.ok(gids?.includes(writer), 'the writer of the statuses is the health monitor’s');
});

t.test('/safe_shutdown: each client gets its own responses, each once', async (t) => {
  const domain = await reserveDomain(t);
  const node = await startNode(t, domain);
  const participant = new LoopbackParticipant(t, domain);
  const [first, second] = [participant.client('/safe_shutdown', SAFE_SHUTDOWN), participant.client('/safe_shutdown', SAFE_SHUTDOWN)];
  await participant.start();
  for (const requested_by of ['one', 'zwei 日本', 'three']) {
    t.same(await first.call({ reason: 'MAINTENANCE', requested_by, timeout: 5 }), {
      success: true,
      message: `MAINTENANCE for ${requested_by}`,
    });
  }
  t.same(await second.call({ reason: 'MANUAL', requested_by: 'four', timeout: 0 }), { success: false, message: 'MANUAL for four' });
  t.same([first.replies.length, second.replies.length], [3, 1]);
  await node.details();
  t.same(
    node.all('call').map(({ call, caller }) => [call.requested_by, caller.local]),
    [
      ['one', true],
      ['zwei 日本', true],
      ['three', true],
      ['four', true],
    ],
  );
});

t.test('two nodes receive each other’s statuses, and none of another domain', async (t) => {
  const [domain, other] = [await reserveDomain(t), await reserveDomain(t)];
  const [a, b, apart] = [
    await startNode(t, domain, { localNode: 'a' }),
    await startNode(t, domain, { localNode: 'b' }),
    await startNode(t, other, { localNode: 'apart' }),
  ];
  const stream = (node: GraphNode): void => node.stream({ hz: 20, count: 0 });
  for (const node of [a, b, apart]) stream(node);
  const isOf = (name: string) => (event: { readonly status: HealthStatus }) => event.status.node_name === name;
  const received = [await a.waitForCount('health', 20, isOf('b'), 120), await b.waitForCount('health', 20, isOf('a'), 120)];
  for (const events of received) {
    const from = events[0]?.status.cpu_percent ?? 0;
    t.same(
      events.map(({ status }) => status.cpu_percent),
      range(from, from + 19),
    );
  }
  t.same([...a.all('health'), ...b.all('health')].filter(isOf('apart')), []);
  t.equal((await apart.details()).peers, 0);
});

t.test('the whole service publishes, responds and receives', async (t) => {
  const domain = await reserveDomain(t);
  const machine = materialiseFixture(t, 'pi5');
  const folder = temporaryFolder(t);
  const service = await RunningService.start(folder, {
    config: {
      node_name: 'robot1',
      publish_frequency: 5,
      ros: { transport: 'embedded', domain_id: domain, discovery_range: 'LOCALHOST' },
      safe_shutdown: { enabled: true, action: 'dry-run', hooks_path: temporaryFolder(t) },
    },
    arguments: ['--proc', machine.procRoot, '--sys', machine.sysRoot],
    environment: NO_ROS,
  });
  t.teardown(() => service.end('SIGKILL'));
  const subscriber = new LoopbackParticipant(t, domain);
  const health = subscriber.read<Health>('/health_status', HEALTH_STATUS);
  const progress = subscriber.read<{ readonly state: string; readonly step: string }>('/shutdown_status', SHUTDOWN_STATUS);
  const publish = subscriber.write('/robot2/health_status', HEALTH_STATUS);
  const client = subscriber.client('/safe_shutdown', SAFE_SHUTDOWN);
  await subscriber.start();
  await until('twenty samples', () => health.samples.length >= 20, { describe: () => service.log });
  const arrived = health.samples.slice(0, 20).map(({ message }) => message);
  const { data } = await service.json<{ data: HealthStatus[] }>('/health/history');
  const recorded = data.filter(({ timestamp }) => timestamp >= (arrived[0]?.timestamp ?? '')).slice(0, 20);
  t.same(
    arrived.map(({ node_name, timestamp }) => [node_name, timestamp]),
    recorded.map(({ timestamp }) => ['robot1', timestamp]),
    'every sample that was recorded, in order, none twice',
  );
  t.same(
    arrived.map(({ cpu_percent }) => (Number.isNaN(cpu_percent) ? null : cpu_percent)),
    recorded.map(({ cpu_percent }) => cpu_percent),
  );
  const { ros } = await service.json<StatusDocument>('/status');
  t.match(ros, { transport: 'embedded', domain_id: domain });

  const remote = { cpu_percent: 12.5, memory_percent: 1, disk_percent: 2, temperature: Number.NaN, status: 'OK', node_name: 'robot2' };
  publish({ ...remote, timestamp: new Date().toISOString() });
  await service.until<StatusDocument>('/status', ({ nodes }) => nodes.some(({ node_name }) => node_name === 'robot2'), 120);
  const received = await service.json<HealthStatus>('/health?node=robot2');
  t.same([received.cpu_percent, received.temperature, received.status], [12.5, null, 'OK']);

  const refused = await client.call({ reason: 'BOREDOM', requested_by: 'operator', timeout: 60 });
  t.match(refused, { success: false, message: /reason/ });
  const accepted = await client.call({ reason: 'MAINTENANCE', requested_by: 'operator', timeout: 60 });
  t.equal(accepted['success'], true, String(accepted['message']));
  await until('the shutdown is reported as completed', () => progress.samples.some(({ message }) => message.state === 'completed'), {
    describe: () => progress.samples,
  });
  const steps = new Set(progress.samples.map(({ message }) => message.step));
  t.same([...steps].at(-1), 'power');

  t.equal(await service.end(), 0);
  await until('it has left', () => subscriber.participant.peerCount === 0);
});

t.test('/diagnostics of the whole service has no entry for a metric that was never measured', async (t) => {
  const titlesOf = async (fixture: string): Promise<(string | undefined)[]> => {
    const domain = await reserveDomain(t);
    const machine = materialiseFixture(t, fixture);
    const service = await RunningService.start(temporaryFolder(t), {
      config: { ros: { transport: 'embedded', domain_id: domain, discovery_range: 'LOCALHOST' } },
      arguments: ['--proc', machine.procRoot, '--sys', machine.sysRoot],
      environment: NO_ROS,
    });
    t.teardown(() => service.end('SIGKILL'));
    const subscriber = new LoopbackParticipant(t, domain);
    const diagnostics = subscriber.read<DiagnosticArrayMessage>('/diagnostics', DIAGNOSTIC_ARRAY, { transientLocal: false });
    await subscriber.start();
    await until('diagnostics', () => diagnostics.samples.length > 0, { describe: () => service.log });
    await service.end();
    return (diagnostics.samples[0]?.message.status ?? []).map(({ name }) => name.split(': ')[1]);
  };
  // The CPU counters of a recorded machine stand still, so its usage is never measured either.
  const others = ['Health', 'Memory usage', 'Disk usage'];
  t.same(await titlesOf('vm-no-sensors'), others);
  t.same(await titlesOf('pi5'), [...others, 'Temperature']);
});
