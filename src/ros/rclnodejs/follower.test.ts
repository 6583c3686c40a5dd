import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import type { Arrivals } from './arrivals.ts';
import { type FollowedTopic, Follower, MAX_FOLLOWED_TOPICS, topicsToFollow } from './follower.ts';
import { qosClassOf } from './library.ts';
import { FakeLibrary, FakeNode } from './testing/fake-library.ts';

const HEALTH = 'edge_health_interfaces/msg/HealthStatus';
const ALERT = 'edge_health_interfaces/msg/Alert';
const offering = (reliability: number, durability: number, node_name = 'robot') => ({
  node_name,
  node_namespace: '/',
  qos_profile: { reliability, durability },
});
const FULL = offering(1, 1);
const VOLATILE = offering(1, 2);
const BEST_EFFORT = offering(2, 2);
const OWN = offering(1, 1, 'health_monitor');
/** Scans after which a topic without publishers is unsubscribed. */
const TICKS_UNTIL_STALE = 12;

function setUp() {
  const library = new FakeLibrary();
  const node = new FakeNode(library.graph, 'threshold_monitor', '/', {
    startParameterServices: false,
    startTypeDescriptionService: false,
    enableRosout: false,
  });
  const arrived: string[] = [];
  const arrivals = {
    onHealth: (bytes: Buffer, topic: string, twice: boolean) => arrived.push(`health ${topic} ${bytes.toString()} ${twice}`),
    onAlert: (bytes: Buffer, topic: string, twice: boolean) => arrived.push(`alert ${topic} ${bytes.toString()} ${twice}`),
  } as unknown as Arrivals;
  const lines: string[] = [];
  const follower = new Follower({
    library: library.asRclnodejs(),
    node,
    permanent: { healthStatus: '/health_status', alerts: '/alerts' },
    wants: ({ topic }) => topic.endsWith('/health_status') || topic.endsWith('/alerts'),
    isOwn: ({ node_name }) => node_name === 'health_monitor',
    arrivals,
    log: (_level, message) => lines.push(message),
  });
  const topics = (): string[] => node.subscriptions.map(({ topic, qos }) => `${topic} ${qos.reliability}${qos.durability}`);
  return { follower, node, graph: library.graph, arrived, lines, topics };
}

t.test('subscribes to its own topics from the start, with the default QoS of publishers', async (t) => {
  const { node, topics, follower, graph } = setUp();
  t.same(topics(), ['/health_status 12', '/alerts 12']);
  graph.publishers['/health_status'] = [OWN];
  follower.scan();
  t.equal(node.runTriggered(), 0, 'what this process publishes changes nothing');
  t.same(
    node.subscriptions.map(({ type }) => type),
    [HEALTH, ALERT],
  );
  t.ok(node.subscriptions.every(({ qos }) => qos.depth > 10 && qos.history === 1));
  t.equal(follower.subscriptionCount('/health_status'), 1);
  t.equal(follower.subscriptionCount('/diagnostics'), 0);
});

t.test('topics of other namespaces are subscribed in a callback of the executor', async (t) => {
  const { node, graph, follower, topics } = setUp();
  follower.scan();
  t.equal(node.runTriggered(), 0, 'nothing to change, the executor is not woken');
  graph.topics.push({ name: '/robot1/health_status', types: [HEALTH] }, { name: '/robot1/alerts', types: [ALERT] });
  follower.scan();
  t.equal(topics().length, 2, 'nothing is changed from outside');
  t.equal(node.runTriggered(), 1);
  t.same(topics(), ['/health_status 12', '/alerts 12', '/robot1/alerts 12', '/robot1/health_status 12']);
  follower.scan();
  t.equal(node.runTriggered(), 0);
});

t.test('one subscription per QoS class that publishers offer', async (t) => {
  const { node, graph, follower, topics } = setUp();
  const after = (...publishers: (typeof FULL)[]): string[] => {
    graph.publishers['/health_status'] = [OWN, ...publishers];
    follower.scan();
    node.runTriggered();
    t.equal(follower.subscriptionCount('/health_status'), topics().length - 1);
    return topics()
      .filter((topic) => topic !== '/alerts 12')
      .sort();
  };
  t.same(after(VOLATILE), ['/health_status 12'], 'no incompatible QoS for a publisher as most are');
  t.same(after(FULL), ['/health_status 11'], 'with the last ten');
  t.same(after(FULL, FULL, VOLATILE), ['/health_status 11', '/health_status 12']);
  t.same(after(BEST_EFFORT), ['/health_status 22']);
  t.same(after(), ['/health_status 22'], 'without publishers it stays: they may come back');
  follower.scan();
  t.equal(node.runTriggered(), 0, 'once is enough');
});

t.test('messages are handled outside of the callback of native code', async (t) => {
  const { node, graph, follower, arrived } = setUp();
  node.subscriptions[0]?.deliver(Buffer.from('one'));
  t.same(arrived, []);
  await setImmediate();
  graph.publishers['/alerts'] = [FULL, VOLATILE];
  follower.scan();
  node.runTriggered();
  node.subscriptions[1]?.deliver(Buffer.from('two'));
  node.subscriptions[2]?.deliver(Buffer.from('two'));
  await setImmediate();
  t.same(arrived, ['health /health_status one false', 'alert /alerts two true', 'alert /alerts two true']);
});

t.test('a topic without a publisher is unsubscribed, its own topics never are', async (t) => {
  const { node, graph, follower, topics } = setUp();
  graph.topics.push({ name: '/robot1/health_status', types: [HEALTH] });
  graph.publishers['/robot1/health_status'] = [FULL];
  for (let i = 0; i < TICKS_UNTIL_STALE + 2; i += 1) {
    follower.scan();
    node.runTriggered();
  }
  t.equal(topics().length, 3, 'it is published on');
  graph.publishers['/robot1/health_status'] = [];
  for (let i = 0; i < TICKS_UNTIL_STALE; i += 1) {
    t.equal(topics().length, 3, `look ${i}`);
    // Our own subscription alone keeps the topic on the graph.
    follower.scan();
    node.runTriggered();
  }
  t.same(topics(), ['/health_status 12', '/alerts 12']);
});

t.test('a refused subscription affects only its topic', async (t) => {
  const { node, graph, follower, topics, lines } = setUp();
  const create = node.createSubscription.bind(node);
  node.createSubscription = (type, topic, options, onMessage) => {
    if (topic === '/a/health_status') throw new Error('not found in allow rule');
    return create(type, topic, options, onMessage);
  };
  graph.topics.push({ name: '/a/health_status', types: [HEALTH] }, { name: '/b/health_status', types: [HEALTH] });
  follower.scan();
  node.runTriggered();
  t.ok(topics().includes('/b/health_status 12'));
  t.match(lines, [/cannot subscribe to a ROS 2 topic/]);
});

const OWN_TOPICS = [
  { topic: '/health_status', kind: 'health' },
  { topic: '/alerts', kind: 'alert' },
];

t.test('permanent topics come first, then the wanted ones of the right type, sorted by name', async (t) => {
  const graph = [
    { name: '/robot2/health_status', types: [HEALTH] },
    { name: '/robot1/alerts', types: [ALERT] },
    { name: '/robot1/health_status', types: ['std_msgs/msg/String', HEALTH] },
    { name: '/health_status', types: [HEALTH] },
    { name: '/robot3/health_status', types: ['std_msgs/msg/String'] },
    { name: '/robot4/unwanted', types: [HEALTH] },
    { name: '/rosout', types: ['rcl_interfaces/msg/Log'] },
    { name: '/_edge_health_probe/health_status', types: [HEALTH] },
    { name: '/_edge_health_probe/alerts', types: [ALERT] },
  ];
  const wants = ({ topic }: FollowedTopic): boolean => !topic.endsWith('/unwanted');
  const permanent = { healthStatus: '/health_status', alerts: '/alerts' };
  t.same(topicsToFollow([], { permanent, wants }), OWN_TOPICS);
  t.same(topicsToFollow(graph, { permanent, wants }), [
    ...OWN_TOPICS,
    { topic: '/robot1/alerts', kind: 'alert' },
    { topic: '/robot1/health_status', kind: 'health' },
    { topic: '/robot2/health_status', kind: 'health' },
  ]);
  t.same(topicsToFollow([], { permanent: { healthStatus: null, alerts: null }, wants }), []);
  t.same(topicsToFollow(graph, { permanent: { healthStatus: null, alerts: '/alerts' }, wants: ({ kind }) => kind === 'health' }), [
    OWN_TOPICS[1],
    { topic: '/health_status', kind: 'health' },
    { topic: '/robot1/health_status', kind: 'health' },
    { topic: '/robot2/health_status', kind: 'health' },
    { topic: '/robot4/unwanted', kind: 'health' },
  ]);
});

t.test('the topics are bounded and stable', async (t) => {
  const graph = Array.from({ length: 500 }, (_, i) => ({ name: `/r${String(i).padStart(3, '0')}/health_status`, types: [HEALTH] }));
  const options = { permanent: { healthStatus: '/health_status', alerts: '/alerts' }, wants: () => true };
  const followed = topicsToFollow(graph, options);
  t.equal(followed.length, MAX_FOLLOWED_TOPICS);
  t.same(topicsToFollow(graph.toReversed(), options), followed);
  t.same(followed.slice(0, 2), OWN_TOPICS);
});

t.test('the QoS class follows the offer of the publisher', async (t) => {
  t.equal(qosClassOf({ reliability: 1, durability: 1 }), 'transient local');
  t.equal(qosClassOf({ reliability: 2, durability: 1 }), 'best effort');
  t.equal(qosClassOf({ reliability: 1, durability: 2 }), 'volatile');
});
