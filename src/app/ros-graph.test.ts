import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Alert } from '../core/alerts/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { ShutdownProgress } from '../core/shutdown/shutdown.ts';
import type { TransportChoice } from '../ros/choose.ts';
import type { RosTransport } from '../ros/graph.ts';
import { RosGraph } from './ros-graph.ts';

const PROGRESS: ShutdownProgress = {
  request_id: '01J',
  state: 'in_progress',
  step: 'hooks',
  reason: 'MANUAL',
  requested_by: 'me',
  action: 'dry-run',
  seconds_left: 5,
  message: '',
  timestamp: '2026-01-02T03:04:05.000Z',
};

/** What survives a restart; `earlier`: published by the run before. */
function publishedAlerts(earlier: readonly Alert[] = []) {
  const known = new Map<string, Alert>();
  return {
    known,
    read: () => {
      for (const alert of earlier) known.set(alert.alert_id, alert);
      return [...earlier];
    },
    has: (id: string) => known.has(id),
    add: async (alert: Alert) => void known.set(alert.alert_id, alert),
    flush: async () => undefined,
  };
}

function setUp(choice: Partial<TransportChoice>, published = publishedAlerts()) {
  const sent: string[] = [];
  const alerts: Alert[] = [];
  const lists: { timestamp: string; ids: string[] }[] = [];
  const transport: RosTransport = {
    start: async () => undefined,
    stop: async () => void sent.push('stop'),
    isObserving: true,
    observers: () => [],
    joinProblem: null,
    details: () => ({ peers: 0, subscribers: 0, refused: 0, problem: null, note: null }),
    publishHealth: () => undefined,
    publishAlert: (alert) => void alerts.push(alert),
    publishOpenAlerts: (open, timestamp) => void lists.push({ timestamp, ids: open.map(({ alert_id }) => alert_id) }),
    publishShutdown: ({ message }) => void sent.push(message),
  };
  const graph = new RosGraph({
    domainId: 0,
    choose: async () => ({ transport: 'embedded', reason: 'asked for', fallback: false, prepared: null, ...choice }),
    create: async () => transport,
    embeddedInstead: false,
    published,
    wallMilliseconds: () => 1_767_323_045_006,
    log: () => undefined,
  });
  return { graph, sent, alerts, lists, transport };
}

async function started(graph: RosGraph): Promise<void> {
  graph.start();
  for (let i = 0; i < 10; i += 1) await setImmediate();
}

t.test('the reason for being off the graph stays in the state; off by configuration is no problem', async (t) => {
  const off = async (choice: Partial<TransportChoice>) => {
    const { graph } = setUp({ transport: 'off', ...choice });
    await started(graph);
    return graph.state();
  };
  const reason = 'RMW_IMPLEMENTATION=rmw_foo: librmw_foo.so is not found';
  t.match(await off({ reason, fallback: true }), { transport: 'off', reason, problem: reason });
  t.match(await off({ reason: 'ros.transport is off' }), { transport: 'off', problem: null });
});

/** Ten steps of a procedure at once. */
function publishTen(t: Test, graph: RosGraph): string[] {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const messages = Array.from({ length: 10 }, (_, i) => `${i}`);
  for (const message of messages) graph.publishShutdown({ ...PROGRESS, message });
  return messages;
}

t.test('the steps of a shutdown are published one at a time, in order: ros2 topic echo queues five', async (t) => {
  const { graph, sent } = setUp({});
  await started(graph);
  const messages = publishTen(t, graph);
  t.same(sent, ['0'], 'the first at once');
  for (let i = 1; i < messages.length; i += 1) {
    mock.timers.tick(1000);
    t.ok(sent.length > i, 'one more each time');
  }
  t.same(sent, messages);
});

t.test('queued messages are published before the end', async (t) => {
  const { graph, sent } = setUp({});
  await started(graph);
  const messages = publishTen(t, graph);
  await graph.stop();
  t.same(sent, [...messages, 'stop']);
  mock.timers.tick(1000);
  t.same(sent.length, messages.length + 1);
});

t.test('a shutdown that began before the graph was joined is published from its first step', async (t) => {
  const { graph, sent } = setUp({});
  const messages = Array.from({ length: 60 }, (_, i) => `${i}`);
  for (const message of messages) graph.publishShutdown({ ...PROGRESS, message });
  await started(graph);
  await graph.stop();
  t.same(sent, [...messages, 'stop']);
});

const alertOf = (n: number, value = 95, resolved = false): Alert => ({
  alert_id: `health_monitor/cpu_percent/${n}`,
  severity: 'CRITICAL',
  metric: 'cpu_percent',
  value,
  threshold: 90,
  timestamp: '2026-01-02T03:04:05.000Z',
  resolved,
});
const healthAt = (second: number): HealthStatus => ({
  cpu_percent: 1,
  memory_percent: 1,
  disk_percent: 1,
  temperature: 1,
  status: 'OK',
  node_name: 'health_monitor',
  timestamp: `2026-01-02T03:04:${String(second).padStart(2, '0')}.000Z`,
});
/** The alerts that a subscriber receives when it joins now. */
const late = (alerts: readonly Alert[]): Map<string, Alert> => new Map(alerts.slice(-10).map((alert) => [alert.alert_id, alert]));

t.test('however often another alert flaps, a late subscriber receives each open one, unchanged', async (t) => {
  const { alerts, graph } = setUp({});
  for (let n = 0; n < 9; n += 1) graph.publishAlert(alertOf(n));
  await started(graph);
  for (let n = 100; n < 150; n += 1) {
    for (const resolved of [false, true]) {
      graph.publishAlert(alertOf(n, 95, resolved));
      const received = late(alerts);
      for (let open = 0; open < 9; open += 1) t.same(received.get(alertOf(open).alert_id), alertOf(open));
    }
  }
  graph.publishAlert(alertOf(3, 20, true));
  for (let n = 200; n < 250; n += 1) graph.publishAlert(alertOf(n, 20, true));
  t.notOk(late(alerts).has(alertOf(3).alert_id), 'one that was resolved is not published again');
  t.equal(graph.state().published?.alerts, alerts.length);
  const before = alerts.length;
  for (let second = 0; second < 50; second += 1) graph.publishHealth(healthAt(second));
  t.equal(alerts.length, before, 'nothing is repeated needlessly');
});

t.test('open alerts beyond a late subscriber’s depth take turns, one per second at any publish frequency', async (t) => {
  const { alerts, graph } = setUp({});
  await started(graph);
  for (let n = 0; n < 15; n += 1) graph.publishAlert(alertOf(n));
  t.equal(alerts.length, 15);
  const seen = new Set<string>();
  for (let second = 0; second < 15; second += 1) {
    for (let i = 0; i < 200; i += 1) graph.publishHealth(healthAt(second));
    t.equal(alerts.length, 15 + second + 1);
    for (const id of late(alerts).keys()) seen.add(id);
  }
  t.equal(seen.size, 15);
});

t.test('every open alert is published in one list: on joining, and once after changes; the worst first', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const { alerts, graph, lists } = setUp({});
  await started(graph);
  t.same(lists, [{ timestamp: '2026-01-02T03:04:05.006Z', ids: [] }], 'nothing is open');
  const warning: Alert = { ...alertOf(0), severity: 'WARNING' };
  const open = [warning, ...Array.from({ length: 29 }, (_, n) => alertOf(n + 1))];
  for (const alert of open) graph.publishAlert(alert);
  graph.publishAlert(alertOf(99));
  graph.publishAlert(alertOf(99, 20, true));
  mock.timers.tick(1000);
  t.equal(lists.length, 2, 'a burst is one list');
  const ids = lists[1]?.ids ?? [];
  t.same(ids.toSorted(), open.map(({ alert_id }) => alert_id).sort());
  t.equal(ids.at(-1), warning.alert_id);
  for (let second = 0; second < 20; second += 1) graph.publishHealth(healthAt(second));
  mock.timers.tick(1000);
  t.equal(alerts.length, 32 + 20, 'open alerts take turns on /alerts');
  t.equal(lists.length, 2, 'which does not change the list');
  graph.publishAlert({ ...warning, resolved: true });
  await graph.stop();
  t.same(lists[2]?.ids.length, 29, 'a change is published before the end');
});

t.test('alerts of an earlier run are published again after a restart, as they are then', async (t) => {
  const { alerts, graph, lists } = setUp({}, publishedAlerts([alertOf(1), alertOf(2), alertOf(3)]));
  t.same(graph.restore(), [alertOf(1), alertOf(2), alertOf(3)]);
  graph.publishAlert(alertOf(1, 96));
  graph.publishAlert(alertOf(2, 20, true));
  // More changes than are kept until the graph is joined.
  for (let n = 10; n < 20; n += 1) for (const resolved of [false, true]) graph.publishAlert(alertOf(n, 95, resolved));
  await started(graph);
  const received = late(alerts);
  t.same(received.get(alertOf(1).alert_id), alertOf(1, 96));
  t.same(received.get(alertOf(2).alert_id), alertOf(2, 20, true));
  t.notOk(received.has(alertOf(3).alert_id), 'one that the service has not judged yet is not repeated');
  t.same(lists[0]?.ids, [alertOf(1).alert_id]);
});

t.test('more resolutions than a late subscriber receives take turns after the graph was joined, for a while', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const earlier = Array.from({ length: 25 }, (_, n) => alertOf(n));
  const { alerts, graph } = setUp({}, publishedAlerts(earlier));
  graph.restore();
  for (let n = 0; n < 25; n += 1) graph.publishAlert(alertOf(n, 20, true));
  await started(graph);
  const seen = new Set<string>();
  for (let second = 0; second < 25; second += 1) {
    graph.publishHealth(healthAt(second));
    for (const id of late(alerts).keys()) seen.add(id);
  }
  t.equal(seen.size, 25);
  t.ok(alerts.every(({ resolved }) => resolved));
  mock.timers.tick(30_000);
  const before = alerts.length;
  for (let second = 30; second < 60; second += 1) graph.publishHealth(healthAt(second));
  t.equal(alerts.length, before);
});

t.test('a list contains at most 512 alerts; the least severe ones are left out', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const { graph, lists } = setUp({});
  for (let n = 0; n < 700; n += 1) graph.publishAlert({ ...alertOf(n), severity: n < 300 ? 'WARNING' : 'ERROR' });
  await started(graph);
  const [ids = []] = lists.map((list) => list.ids);
  t.equal(ids.length, 512);
  t.equal(ids.filter((id) => Number(id.split('/')[2]) >= 300).length, 400);
});

t.test('a transport that could not be started is started again, and has what was published meanwhile', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const { alerts, graph, transport } = setUp({ transport: 'rclnodejs' });
  transport.start = () => Promise.reject(new Error('rcl_init failed'));
  await started(graph);
  graph.publishAlert(alertOf(1));
  const problem = 'rclnodejs could not be started: rcl_init failed';
  t.match(graph.state(), { transport: 'off', reason: problem, problem });
  t.equal(graph.problem, problem);
  mock.timers.tick(1000);
  for (let i = 0; i < 10; i += 1) await setImmediate();
  transport.start = async () => undefined;
  mock.timers.tick(1999);
  await setImmediate();
  t.equal(graph.problem, problem, 'the pause has doubled');
  mock.timers.tick(1);
  for (let i = 0; i < 10; i += 1) await setImmediate();
  t.equal(graph.problem, null);
  t.match(graph.state(), { transport: 'rclnodejs', problem: null });
  t.same(alerts, [alertOf(1)]);
  await graph.stop();
});

t.test('an unexpected error while joining is the reason for being off the graph', async (t) => {
  const graph = new RosGraph({
    domainId: 0,
    choose: () => Promise.reject(new Error('EACCES: permission denied')),
    create: () => t.fail('no transport was chosen') as never,
    embeddedInstead: true,
    published: publishedAlerts(),
    wallMilliseconds: () => 0,
    log: () => undefined,
  });
  await started(graph);
  t.match(graph.state(), { transport: 'off', problem: 'EACCES: permission denied' });
  await graph.stop();
});
