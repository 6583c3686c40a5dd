import t from 'tap';
import { graphNames } from '../names.ts';
import { MAX_FOLLOWED_TOPICS, qosClassOf, subscribedTopics, topicsToFollow } from './followed-topics.ts';

const HEALTH = 'edge_health_interfaces/msg/HealthStatus';
const ALERT = 'edge_health_interfaces/msg/Alert';
const names = graphNames({ node_name: 'health_monitor', namespace: null }, []);
const own = [
  { topic: '/health_status', kind: 'health' },
  { topic: '/alerts', kind: 'alert' },
];

t.test('on an empty graph it follows its own topics', async (t) => {
  t.same(topicsToFollow([], names), own);
  const brain = graphNames({ node_name: 'health_monitor', namespace: '/brain' }, []);
  t.same(
    topicsToFollow([], brain).map(({ topic }) => topic),
    ['/brain/health_status', '/brain/alerts'],
  );
});

t.test('other topics are found by the end of their name and their type', async (t) => {
  const graph = [
    { name: '/robot2/health_status', types: [HEALTH] },
    { name: '/robot1/alerts', types: [ALERT] },
    { name: '/robot1/health_status', types: ['std_msgs/msg/String', HEALTH] },
    { name: '/health_status', types: [HEALTH] },
    { name: '/robot3/health_status', types: ['std_msgs/msg/String'] },
    { name: '/robot3/my_health_status', types: [HEALTH] },
    { name: '/robot3/alerts', types: [HEALTH] },
    { name: '/rosout', types: ['rcl_interfaces/msg/Log'] },
    { name: '/_edge_health_probe/health_status', types: [HEALTH] },
    { name: '/_edge_health_probe/alerts', types: [ALERT] },
  ];
  t.same(topicsToFollow(graph, names), [
    ...own,
    { topic: '/robot1/alerts', kind: 'alert' },
    { topic: '/robot1/health_status', kind: 'health' },
    { topic: '/robot2/health_status', kind: 'health' },
  ]);
});

t.test('the topics are bounded and stable', async (t) => {
  const graph = Array.from({ length: 500 }, (_, i) => ({ name: `/r${String(i).padStart(3, '0')}/health_status`, types: [HEALTH] }));
  const followed = topicsToFollow(graph, names);
  t.equal(followed.length, MAX_FOLLOWED_TOPICS);
  t.same(topicsToFollow(graph.toReversed(), names), followed);
  t.same(followed.slice(0, 2), own);
});

t.test('the QoS class follows the offer of the publisher', async (t) => {
  t.equal(qosClassOf({ reliability: 1, durability: 1 }), 'transient local');
  t.equal(qosClassOf({ reliability: 2, durability: 1 }), 'best effort');
  t.equal(qosClassOf({ reliability: 1, durability: 2 }), 'volatile');
});

t.test('a subscription follows the configured topics, otherwise all topics of the type', async (t) => {
  const graph = [
    { name: '/well/being', types: [HEALTH] },
    { name: '/a/health_status', types: [HEALTH] },
    { name: '/alarms', types: [ALERT] },
    { name: '/rosout', types: ['rcl_interfaces/msg/Log'] },
    { name: '/_edge_health_probe/health_status', types: [HEALTH] },
  ];
  t.same(subscribedTopics(graph, { healthStatus: '/health_status', alerts: '/alerts' }), own);
  t.same(subscribedTopics([], { healthStatus: null, alerts: null }), []);
  t.same(subscribedTopics(graph, { healthStatus: null, alerts: '/alerts' }), [
    { topic: '/alerts', kind: 'alert' },
    { topic: '/a/health_status', kind: 'health' },
    { topic: '/well/being', kind: 'health' },
  ]);
  t.same(subscribedTopics(graph, { healthStatus: '/health_status', alerts: null }), [own[0], { topic: '/alarms', kind: 'alert' }]);
});
