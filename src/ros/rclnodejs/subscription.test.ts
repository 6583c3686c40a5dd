import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Alert } from '../../core/alerts/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import { encode } from '../../rtps/wire/cdr.ts';
import { HEALTH_STATUS } from '../interfaces.generated.ts';
import { healthStatusMessage } from '../messages.ts';
import type { SubscribedTopics } from '../subscription.ts';
import { RclnodejsSubscription } from './subscription.ts';
import { FakeLibrary } from './testing/fake-library.ts';

const STATUS: HealthStatus = {
  cpu_percent: 12.5,
  memory_percent: null,
  disk_percent: 78.9,
  temperature: 51,
  status: 'OK',
  node_name: 'health_monitor',
  timestamp: '2026-03-04T05:06:07.089Z',
};

function setUp(t: Test, topics: SubscribedTopics) {
  const before = { ...process.env };
  const library = new FakeLibrary();
  const [statuses, alerts, lines]: [[HealthStatus, string][], Alert[], string[]] = [[], [], []];
  const subscription = new RclnodejsSubscription({
    load: () => library.asRclnodejs(),
    prepared: { key: 'jazzy-2.2.0-1a2b3c4d', distro: 'jazzy', folder: '/nonexistent' },
    enclave: null,
    discovery: { domainId: 42, discoveryRange: 'LOCALHOST', staticPeers: [] },
    nodeName: 'listener',
    topics,
    listener: { onHealthStatus: (status, { topic }) => statuses.push([status, topic]), onAlert: (alert) => alerts.push(alert) },
    log: (level, message) => lines.push(`${level} ${message}`),
    monotonicSeconds: () => 1000,
  });
  t.teardown(async () => {
    await subscription.stop();
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  });
  return { library, subscription, statuses, lines };
}

t.test('one node exists, which only subscribes', async (t) => {
  const { library, lines, statuses, subscription } = setUp(t, { healthStatus: '/health_status', alerts: '/alerts' });
  await subscription.start();
  t.equal(process.env['ROS_DOMAIN_ID'], '42');
  t.same(
    library.nodes.map(({ name, namespace }) => [name, namespace]),
    [['listener', '/']],
  );
  const node = library.node('listener');
  t.same(
    node.subscriptions.map(({ topic, qos }) => [topic, qos.reliability, qos.durability]),
    [
      ['/health_status', 1, 2],
      ['/alerts', 1, 2],
    ],
  );
  t.equal(node.publishers.size + node.services.size, 0);
  t.equal(node.spunWith, 500);
  node.subscriptions[0]?.deliver(encode(HEALTH_STATUS, healthStatusMessage(STATUS)));
  node.subscriptions[0]?.deliver(Buffer.from('nonsense'));
  await setImmediate();
  t.same(statuses, [[STATUS, '/health_status']]);
  t.same(lines, ['warning message refused']);
  await subscription.stop();
  t.equal(library.contexts[0]?.shutdowns, 1);
});

t.test('without a configured topic it subscribes to all topics of the type', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const { library, subscription } = setUp(t, { healthStatus: null, alerts: '/alerts' });
  library.graph.topics.push(
    { name: '/well/being', types: ['edge_health_interfaces/msg/HealthStatus'] },
    { name: '/alarms', types: ['edge_health_interfaces/msg/Alert'] },
  );
  await subscription.start();
  mock.timers.tick(1000);
  const node = library.node('listener');
  node.runTriggered();
  t.same(
    node.subscriptions.map(({ topic }) => topic),
    ['/alerts', '/well/being'],
  );
  await subscription.stop();
});

t.test('a failed start leaves nothing running', async (t) => {
  const { library, subscription } = setUp(t, { healthStatus: null, alerts: null });
  library.refusedNode = 'listener';
  await t.rejects(subscription.start(), /no node listener/);
  t.equal(library.contexts[0]?.shutdowns, 1);
});
