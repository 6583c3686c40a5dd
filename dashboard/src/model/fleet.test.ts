import t from 'tap';
import type { HealthStatus, NodeState, Status } from '../types.ts';
import { clockOffsetMs, Fleet, fleetText, hertzOf } from './fleet.ts';

const health = (node_name: string, status: Status = 'OK'): HealthStatus => ({
  cpu_percent: 1,
  memory_percent: 2,
  disk_percent: 3,
  temperature: null,
  status,
  node_name,
  timestamp: '2026-03-04T05:06:07.000Z',
});
const nodeState = (node_name: string, more: Partial<NodeState> = {}): NodeState => ({
  node_name,
  local: false,
  status: 'OK',
  timestamp: '2026-03-04T05:06:07.000Z',
  age_seconds: 1,
  period_seconds: 1,
  clock_ahead_seconds: null,
  conflict_addresses: [],
  left: null,
  ...more,
});

t.test('a tile shows the last status received, and UNKNOWN once the node is stale', async (t) => {
  const fleet = new Fleet();
  const nodes = [
    nodeState('arm'),
    nodeState('slow', { period_seconds: 10 }),
    nodeState('new', { timestamp: null, age_seconds: null, period_seconds: null }),
  ];
  fleet.recordStatus(health('arm', 'CRITICAL'), 10_000);
  fleet.recordStatus(health('slow'), 10_000);
  const at = (nowMs: number): unknown =>
    fleet.tiles(nodes, 9000, nowMs).map(({ node, status, isStale, ageSeconds }) => [node, status, isStale, ageSeconds]);
  t.same(at(12_000), [
    ['arm', 'CRITICAL', false, 2],
    ['new', 'UNKNOWN', true, null],
    ['slow', 'OK', false, 2],
  ]);
  t.same(at(20_000), [
    ['arm', 'UNKNOWN', true, 10],
    ['new', 'UNKNOWN', true, null],
    ['slow', 'OK', false, 10],
  ]);
  t.equal(fleet.tiles(nodes, 9000, 60_000)[0]?.readings?.cpu_percent, 1, 'the last known values are kept');
});

t.test('a tile shows the status from /status until the stream delivers one', async (t) => {
  const [tile] = new Fleet().tiles([nodeState('arm', { status: 'WARNING', age_seconds: 0.5 })], 1000, 2000);
  t.match(tile, { status: 'WARNING', ageSeconds: 1.5, isStale: false, readings: null });
});

t.test('tiles are sorted: local node, nodes that are not OK, other nodes, each by name with numbers in numeric order', async (t) => {
  const fleet = new Fleet();
  fleet.recordStatus(health('robot_10', 'WARNING'), 0);
  const nodes = [nodeState('robot_2'), nodeState('robot_10'), nodeState('b'), nodeState('zz', { local: true })];
  t.same(
    fleet.tiles(nodes, 0, 0).map(({ node }) => node),
    ['zz', 'robot_10', 'b', 'robot_2'],
  );
});

t.test('nodes that /status no longer lists are removed', async (t) => {
  const fleet = new Fleet();
  fleet.recordStatus(health('arm'), 0);
  fleet.recordStatus(health('leg'), 0);
  fleet.removeAllExcept([nodeState('leg')]);
  t.equal(fleet.get('arm'), null);
  t.ok(fleet.get('leg'));
});

t.test('a node that left is sorted last and counted separately until it publishes again', async (t) => {
  const fleet = new Fleet();
  const nodes = [nodeState('a', { left: '2026-03-04T05:06:08.000Z', age_seconds: 60 }), nodeState('b')];
  const tiles = fleet.tiles(nodes, 1000, 2000);
  t.same(
    tiles.map(({ node, leftMs }) => [node, leftMs]),
    [
      ['b', null],
      ['a', Date.parse('2026-03-04T05:06:08.000Z')],
    ],
  );
  t.equal(fleetText(tiles), '2 nodes: 1 OK, 1 left');
  fleet.recordStatus(health('a'), 1500);
  t.equal(fleet.tiles(nodes, 1000, 2000)[0]?.leftMs, null, 'even before the next /status');
});

t.test('the summary counts nodes by status, worst first', async (t) => {
  const fleet = new Fleet();
  fleet.recordStatus(health('a', 'CRITICAL'), 0);
  fleet.recordStatus(health('b', 'WARNING'), 0);
  const tiles = fleet.tiles([nodeState('a'), nodeState('b'), nodeState('c'), nodeState('d', { age_seconds: 60 })], 0, 0);
  t.equal(fleetText(tiles), '4 nodes: 1 CRITICAL, 1 without data, 1 WARNING, 1 OK');
});

t.test('the clock offset and the publish rate of a node are shown', async (t) => {
  t.equal(clockOffsetMs(nodeState('a'), 5000), Date.parse('2026-03-04T05:06:07.000Z') + 1000 - 5000);
  t.equal(clockOffsetMs(nodeState('a', { timestamp: null }), 5000), null);
  t.equal(hertzOf(nodeState('a', { period_seconds: 0.1 })), 10);
  t.equal(hertzOf(null), 1);
});
