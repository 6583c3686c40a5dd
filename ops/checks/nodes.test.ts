import t from 'tap';
import type { StatusDocument } from '../../src/client/documents.ts';
import type { CheckContext } from './check.ts';
import { checkNodes, describeNode, evaluateNode, isOnGraph } from './nodes.ts';

type Node = StatusDocument['nodes'][number];

const node = (age: number | null): Node => ({
  node_name: 'arm',
  local: false,
  status: 'OK',
  timestamp: null,
  age_seconds: age,
  last_seen: null,
  period_seconds: 1,
  clock_ahead_seconds: null,
  conflict_addresses: [],
  left: null,
  open_alerts: 0,
  stale: false,
});

t.test('judges nodes that are expected', async (t) => {
  t.match(evaluateNode('arm', node(30), 30, null), { name: 'node arm', status: 'OK', message: 'last status OK, 30.0 s ago' });
  t.match(evaluateNode('arm', node(31), 30, null), {
    status: 'CRITICAL',
    message: 'its last status is 31 s old; at most 30 s are allowed',
  });
  t.match(evaluateNode('arm', undefined, 30, null), { status: 'CRITICAL', message: 'no status received' });
  t.match(evaluateNode('arm', node(null), 30, null), { status: 'CRITICAL', message: 'no status received' });
  t.match(evaluateNode('arm', undefined, 30, ['/cell/arm']), {
    message: 'no status received; it is on the graph but sends nothing',
    remedy: /ros2 topic info/,
  });
  t.match(evaluateNode('arm', node(99), 30, []), { message: /it is not on the graph/, remedy: /ROS_DOMAIN_ID/ });
});

t.test('expects nothing of nodes that another appliance observes', async (t) => {
  const check = async (ros: object) => {
    const nodes = [{ ...node(1), node_name: 'pi', local: true }];
    const context = {
      config: { ops: { check: { nodes: ['pi', 'arm'], node_max_age_seconds: 30 } } },
      trigger: 'schedule',
      service: Promise.resolve({ kind: 'answer', status: { nodes, ros } }),
    };
    return (await checkNodes(context as unknown as CheckContext)).map(({ isNote, status }) => (isNote ? 'NOTE' : status));
  };
  t.same(await check({ observing: true, observers: ['pi', 'x'] }), ['OK', 'CRITICAL']);
  t.same(await check({ observing: false, observers: ['x'] }), ['OK', 'NOTE']);
  t.same(await check({ observing: false, observers: [] }), ['OK', 'CRITICAL'], 'no appliance observes it');
});

t.test('describes nodes that are not expected', async (t) => {
  t.match(describeNode(node(0.4), true), { name: 'node arm', status: 'OK', isNote: true, message: 'last status OK, 0.4 s ago' });
  t.match(describeNode({ ...node(99), status: 'UNKNOWN' }, false), {
    status: 'OK',
    isNote: false,
    message: 'last status UNKNOWN, 99.0 s ago',
  });
  t.match(describeNode(node(null), true), { status: 'OK', message: 'no status received' });
});

t.test('a node is found on the graph with or without its namespace', async (t) => {
  t.ok(isOnGraph('arm', ['/arm']));
  t.ok(isOnGraph('arm', ['/cell/arm']));
  t.ok(isOnGraph('cell/arm', ['/cell/arm']));
  t.notOk(isOnGraph('arm', ['/forearm', '/arm/controller']));
});
