import t from 'tap';
import { clockOffsetMs, Fleet, fleetText, hertzOf } from './fleet.ts';
import type { HealthStatus, NodeState, Status } from './types.ts';

const health = (node_name: string, status: Status = 'OK'): HealthStatus => ({
  cpu_percent: 1,
  memory_percent: 2,
  disk_percent: 3,
  temperature: null,
  status,
  node_name,
  timestamp: '2026-03-04T05:06:07.000Z',
});
const told = (node_name: string, more: Partial<NodeState> = {}): NodeState => ({
  node_name,
  local: false,
  status: 'OK',
  timestamp: '2026-03-04T05:06:07.000Z',
  age_seconds: 1,
  period_seconds: 1,
  left: null,
  ...more,
});

t.test('a node is as it was last received, and without data once nothing came for too long', async (t) => {
  const fleet = new Fleet();
  const nodes = [
    told('arm'),
    told('slow', { period_seconds: 10 }),
    told('new', { timestamp: null, age_seconds: null, period_seconds: null }),
  ];
  fleet.hear(health('arm', 'CRITICAL'), 10_000);
  fleet.hear(health('slow'), 10_000);
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
  t.equal(fleet.tiles(nodes, 9000, 60_000)[0]?.readings?.cpu_percent, 1, 'what was known last stays');
});

t.test('before anything came on the stream /status tells', async (t) => {
  const [tile] = new Fleet().tiles([told('arm', { status: 'WARNING', age_seconds: 0.5 })], 1000, 2000);
  t.match(tile, { status: 'WARNING', ageSeconds: 1.5, isStale: false, readings: null });
});

t.test('this machine first, then who is not well, then the others, by name with numbers in order', async (t) => {
  const fleet = new Fleet();
  fleet.hear(health('robot_10', 'WARNING'), 0);
  const nodes = [told('robot_2'), told('robot_10'), told('b'), told('zz', { local: true })];
  t.same(
    fleet.tiles(nodes, 0, 0).map(({ node }) => node),
    ['zz', 'robot_10', 'b', 'robot_2'],
  );
});

t.test('nodes that are no longer there are forgotten', async (t) => {
  const fleet = new Fleet();
  fleet.hear(health('arm'), 0);
  fleet.hear(health('leg'), 0);
  fleet.keep([told('leg')]);
  t.equal(fleet.of('arm'), null);
  t.ok(fleet.of('leg'));
});

t.test('one that left is shown last and counted apart, until it is heard again', async (t) => {
  const fleet = new Fleet();
  const nodes = [told('a', { left: '2026-03-04T05:06:08.000Z', age_seconds: 60 }), told('b')];
  const tiles = fleet.tiles(nodes, 1000, 2000);
  t.same(
    tiles.map(({ node, leftMs }) => [node, leftMs]),
    [
      ['b', null],
      ['a', Date.parse('2026-03-04T05:06:08.000Z')],
    ],
  );
  t.equal(fleetText(tiles), '2 nodes: 1 OK, 1 left');
  fleet.hear(health('a'), 1500);
  t.equal(fleet.tiles(nodes, 1000, 2000)[0]?.leftMs, null, 'before /status shows it');
});

t.test('how they are, worst first', async (t) => {
  const fleet = new Fleet();
  fleet.hear(health('a', 'CRITICAL'), 0);
  const tiles = fleet.tiles([told('a'), told('b'), told('c'), told('d', { age_seconds: 60 })], 0, 0);
  t.equal(fleetText(tiles), '4 nodes: 1 CRITICAL, 1 without data, 2 OK');
});

t.test('clock and rate of a node', async (t) => {
  t.equal(clockOffsetMs(told('a'), 5000), Date.parse('2026-03-04T05:06:07.000Z') + 1000 - 5000);
  t.equal(clockOffsetMs(told('a', { timestamp: null }), 5000), null);
  t.equal(hertzOf(told('a', { period_seconds: 0.1 })), 10);
  t.equal(hertzOf(null), 1);
});
