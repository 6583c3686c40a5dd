import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { graphNames } from '../names.ts';
import type { Arrivals } from './arrivals.ts';
import { topicsToFollow } from './followed-topics.ts';
import { Follower } from './follower.ts';
import { FakeLibrary, FakeNode } from './testing/fake-library.ts';

const HEALTH = 'edge_health_interfaces/msg/HealthStatus';
const ALERT = 'edge_health_interfaces/msg/Alert';
const FULL = { qos_profile: { reliability: 1, durability: 1 } };
const VOLATILE = { qos_profile: { reliability: 1, durability: 2 } };
/** As many looks as it takes to give a silent topic up. */
const SILENCE = 12;

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
  const names = graphNames({ node_name: 'health_monitor', namespace: null }, []);
  const lines: string[] = [];
  const follower = new Follower({
    library: library.asRclnodejs(),
    node,
    topics: (graph) => topicsToFollow(graph, names),
    arrivals,
    log: (_level, message) => lines.push(message),
  });
  const topics = (): string[] => node.subscriptions.map(({ topic, qos }) => `${topic} ${qos.reliability}${qos.durability}`);
  return { follower, node, graph: library.graph, arrived, lines, topics };
}

t.test('the own topics from the start, reliable and transient local', async (t) => {
  const { node, topics, follower } = setUp();
  t.same(topics(), ['/health_status 11', '/alerts 11']);
  t.same(
    node.subscriptions.map(({ type }) => type),
    [HEALTH, ALERT],
  );
  t.ok(node.subscriptions.every(({ qos }) => qos.depth > 10 && qos.history === 1));
  t.equal(follower.subscriptionCount('/health_status'), 1);
  t.equal(follower.subscriptionCount('/diagnostics'), 0);
});

t.test('topics of other namespaces are taken in when they are seen, while the executor waits', async (t) => {
  const { node, graph, follower, topics } = setUp();
  follower.look();
  t.equal(node.runTriggered(), 0, 'nothing to change, nobody is woken');
  graph.topics.push({ name: '/robot1/health_status', types: [HEALTH] }, { name: '/robot1/alerts', types: [ALERT] });
  follower.look();
  t.equal(topics().length, 2, 'nothing is changed from outside');
  t.equal(node.runTriggered(), 1);
  t.same(topics(), ['/health_status 11', '/alerts 11', '/robot1/alerts 11', '/robot1/health_status 11']);
  follower.look();
  t.equal(node.runTriggered(), 0);
});

t.test('publishers that offer less get a subscription that asks for nothing', async (t) => {
  const { node, graph, follower, topics } = setUp();
  graph.publishers['/health_status'] = [FULL, VOLATILE];
  graph.topics.push({ name: '/robot1/health_status', types: [HEALTH] });
  graph.publishers['/robot1/health_status'] = [VOLATILE];
  follower.look();
  node.runTriggered();
  t.same(topics().sort(), ['/alerts 11', '/health_status 11', '/health_status 22', '/robot1/health_status 11', '/robot1/health_status 22']);
  t.equal(follower.subscriptionCount('/health_status'), 2);
  follower.look();
  t.equal(node.runTriggered(), 0, 'once is enough');
});

t.test('messages arrive outside of the callback of native code, with what is to be known of them', async (t) => {
  const { node, graph, follower, arrived } = setUp();
  node.subscriptions[0]?.deliver(Buffer.from('one'));
  t.same(arrived, []);
  await setImmediate();
  graph.publishers['/alerts'] = [VOLATILE];
  follower.look();
  node.runTriggered();
  node.subscriptions[1]?.deliver(Buffer.from('two'));
  node.subscriptions[2]?.deliver(Buffer.from('two'));
  await setImmediate();
  t.same(arrived, ['health /health_status one false', 'alert /alerts two true', 'alert /alerts two true']);
});

t.test('a topic that nobody publishes on any more is left, the own ones never', async (t) => {
  const { node, graph, follower, topics } = setUp();
  graph.topics.push({ name: '/robot1/health_status', types: [HEALTH] });
  graph.publishers['/robot1/health_status'] = [FULL];
  for (let i = 0; i < SILENCE + 2; i += 1) {
    follower.look();
    node.runTriggered();
  }
  t.equal(topics().length, 3, 'it is published on');
  graph.publishers['/robot1/health_status'] = [];
  for (let i = 0; i < SILENCE; i += 1) {
    t.equal(topics().length, 3, `look ${i}`);
    // Our own subscription alone keeps the topic on the graph.
    follower.look();
    node.runTriggered();
  }
  t.same(topics(), ['/health_status 11', '/alerts 11']);
});

t.test('a subscription that is not allowed costs that topic alone', async (t) => {
  const { node, graph, follower, topics, lines } = setUp();
  const create = node.createSubscription.bind(node);
  node.createSubscription = (type, topic, options, onMessage) => {
    if (topic === '/a/health_status') throw new Error('not found in allow rule');
    return create(type, topic, options, onMessage);
  };
  graph.topics.push({ name: '/a/health_status', types: [HEALTH] }, { name: '/b/health_status', types: [HEALTH] });
  follower.look();
  node.runTriggered();
  t.ok(topics().includes('/b/health_status 11'));
  t.match(lines, [/cannot listen to a topic/]);
});
