import t, { type Test } from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { Sender } from '../../src/ros/graph.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import {
  alertOf,
  type InProcessService,
  LOCAL,
  type Logged,
  startInProcess,
  statusOf,
  TestClocks,
} from '../../testkit/service/remote-nodes.ts';
import type { StatusDocument } from '../../testkit/service/rest.ts';

type List<T> = { data: T[]; count: number };

const ROBOT: Sender = { participant: 'a1', address: '10.0.0.2' };
const RESTARTED: Sender = { participant: 'a2', address: '10.0.0.2' };
const MOVED: Sender = { participant: 'a3', address: '10.0.0.4' };
const STRANGER: Sender = { participant: 'b1', address: '10.0.0.3' };

const publish = (service: InProcessService, sender: Sender, more: Partial<HealthStatus> = {}): void =>
  service.remoteNodes.onHealthStatus(statusOf('arm', service.clocks.wallMs, more), sender);

/** A service that has received the robot for long enough to keep it over a restart. */
async function startWithRobot(t: Test, folder = temporaryFolder(t)): Promise<InProcessService> {
  const service = await startInProcess(t, folder, new TestClocks());
  await service.run(70, () => publish(service, ROBOT));
  return service;
}

async function take(service: InProcessService, sender: Sender, ...alerts: Alert[]): Promise<void> {
  for (const alert of alerts) service.remoteNodes.onAlert(alert, sender);
  await service.settled();
}

const openIds = async (service: InProcessService): Promise<string[]> =>
  (await service.json<List<Alert>>('/alerts?resolved=false')).data.map(({ alert_id }) => alert_id);

const nodeOf = async (service: InProcessService, name = 'arm') =>
  (await service.json<StatusDocument>('/status')).nodes.find(({ node_name }) => node_name === name);

const conflicts = ({ published }: InProcessService): Alert[] => published.filter(({ metric }) => metric === 'name_conflict');
const lines = ({ logged }: InProcessService, message: string): Logged[] => logged.filter((line) => line.message === message);

const raised = (service: InProcessService): Alert =>
  alertOf('arm', '1', service.clocks.wallMs, { severity: 'CRITICAL', value: 95, threshold: 90 });
const resolved = (service: InProcessService): Alert => ({ ...raised(service), value: 20, resolved: true });

t.test('another participant can neither resolve, change nor replace the alert of a node', async (t) => {
  const service = await startWithRobot(t);
  const alert = raised(service);
  await take(service, ROBOT, alert);
  service.clocks.pass(1);
  const change = { severity: 'WARNING', timestamp: statusOf('arm', service.clocks.wallMs).timestamp } as const;
  await take(service, STRANGER, resolved(service), { ...alert, ...change });
  t.same(await service.json('/alerts?resolved=false'), { data: [alert], count: 1 });
  await take(service, STRANGER, alertOf('arm', '2', service.clocks.wallMs, { severity: 'CRITICAL' }));
  t.ok((await openIds(service)).includes(alert.alert_id), 'a new episode of the same metric does not end it');
  t.match(lines(service, 'remote alert refused: not sent by the participant that raised it'), [
    { level: 'warning', fields: { alert_id: alert.alert_id, address: STRANGER.address } },
  ]);
  t.equal(service.remoteNodes.counts().alerts_refused, 2);
  await take(service, ROBOT, resolved(service));
  t.notOk((await openIds(service)).includes(alert.alert_id));
});

t.test('a participant that is faster than the node cannot take an alert from it', async (t) => {
  for (const first of [resolved, raised, (service: InProcessService) => ({ ...raised(service), severity: 'WARNING' as const })]) {
    const service = await startWithRobot(t);
    await take(service, STRANGER, first(service));
    await take(service, ROBOT, raised(service));
    service.clocks.pass(1);
    await take(service, STRANGER, resolved(service));
    t.match((await service.json<List<Alert>>('/alerts?resolved=false')).data, [{ severity: 'CRITICAL' }]);
    await take(service, ROBOT, resolved(service));
    t.same(await openIds(service), []);
  }
});

t.test('other participants cannot use up the limit of the alerts of a node', async (t) => {
  const service = await startWithRobot(t);
  const flood = Array.from({ length: 700 }, (_, i) =>
    alertOf(i % 2 === 0 ? 'arm' : `made_up_${i % 50}`, '', service.clocks.wallMs, {
      metric: 'battery',
      alert_id: `${i % 2 === 0 ? 'arm' : `made_up_${i % 50}`}/battery/${i}`,
    }),
  );
  await take(service, STRANGER, ...flood);
  await take(service, ROBOT, raised(service));
  t.ok((await openIds(service)).includes('arm/cpu_percent/1'));
});

t.test('a restarted node continues its alerts, also from another address', async (t) => {
  for (const { successor, hasLeft } of [
    { successor: RESTARTED, hasLeft: false },
    { successor: MOVED, hasLeft: true },
    { successor: MOVED, hasLeft: false },
  ]) {
    const service = await startWithRobot(t);
    await take(service, ROBOT, raised(service));
    if (hasLeft) service.remoteNodes.onPublisherGone('arm', ROBOT.participant, true);
    service.clocks.pass(2);
    const first = service.clocks.wallMs;
    // The resolution arrives before the statuses that show who sends it.
    await take(service, successor, resolved(service));
    await service.run(3, () => publish(service, successor));
    t.same(await openIds(service), []);
    t.same(conflicts(service), []);
    const { data } = await service.json<List<HealthStatus>>(`/health/history?node=arm&from=${statusOf('arm', first).timestamp}`);
    t.equal(data.length, 3, 'and none of its statuses is lost');
    t.equal((await nodeOf(service))?.left, null);
    t.same(service.published, [], 'the node was not stale');
  }
});

t.test('an observer has its own alerts about a node, which the node cannot resolve', async (t) => {
  const service = await startWithRobot(t);
  const battery = alertOf('arm', '', service.clocks.wallMs, { metric: 'battery', alert_id: 'arm/battery/7' });
  await take(service, STRANGER, battery);
  service.clocks.pass(1);
  const end = { ...battery, timestamp: statusOf('arm', service.clocks.wallMs).timestamp, resolved: true };
  await take(service, ROBOT, end);
  t.same(await openIds(service), ['arm/battery/7']);
  await take(service, { ...STRANGER, participant: 'b2' }, end);
  t.same(await openIds(service), [], 'the observer can after its restart');
});

t.test('after a restart of this service, the publisher of the node changes what was open, and others do not take its place', async (t) => {
  for (const successor of [ROBOT, RESTARTED, MOVED]) {
    const folder = temporaryFolder(t);
    const first = await startWithRobot(t, folder);
    await take(first, ROBOT, raised(first));
    await first.stop();
    first.clocks.pass(5);
    const service = await startInProcess(t, folder, first.clocks);
    const start = service.clocks.wallMs;
    await take(service, STRANGER, resolved(service));
    if (successor !== MOVED) await service.run(8, () => publish(service, STRANGER, { cpu_percent: -1 }));
    t.same(await openIds(service), ['arm/cpu_percent/1'], 'nobody else does, even before the node is received');
    await take(service, successor, resolved(service));
    await service.run(16, () => publish(service, successor, { cpu_percent: 1 }));
    t.same(await openIds(service), []);
    const { data } = await service.json<List<HealthStatus>>(`/health/history?node=arm&from=${statusOf('arm', start).timestamp}`);
    t.same([data.length, new Set(data.map(({ cpu_percent }) => cpu_percent))], [16, new Set([1])]);
    t.same(service.published, []);
  }
});

t.test('two publishers of one name are a WARNING with their addresses, and the established one is kept', async (t) => {
  const service = await startWithRobot(t);
  const start = service.clocks.wallMs;
  const forged = (): void => {
    // Also with time stamps that would displace those of the robot, and faster than any limit.
    for (let i = 0; i < 3000; i += 1) publish(service, STRANGER, { cpu_percent: -1 - i, status: 'CRITICAL' });
    service.remoteNodes.onHealthStatus(statusOf('arm', service.clocks.wallMs + 50_000, { cpu_percent: -1 }), STRANGER);
  };
  await service.run(20, () => {
    forged();
    publish(service, ROBOT, { cpu_percent: 1 });
  });
  t.match(conflicts(service), [
    { alert_id: /^arm\/name_conflict\/[0-9A-Z]{26}$/, severity: 'WARNING', value: 2, threshold: 2, resolved: false },
  ]);
  t.match(lines(service, 'several machines publish under one node name'), [
    { fields: { node: 'arm', established: ROBOT.address, others: [STRANGER.address] } },
  ]);
  t.match(await nodeOf(service), { status: 'WARNING', conflict_addresses: [ROBOT.address, STRANGER.address], open_alerts: 1 });
  const { data } = await service.json<List<HealthStatus>>(`/health/history?node=arm&from=${statusOf('arm', start).timestamp}`);
  t.same(
    data.map(({ cpu_percent }) => cpu_percent),
    Array.from({ length: 20 }, () => 1),
  );
  t.match(await service.json('/health?node=arm'), { cpu_percent: 1 });
  await take(service, STRANGER, alertOf('arm', 'forged', service.clocks.wallMs));
  t.notOk((await openIds(service)).includes('arm/cpu_percent/forged'), 'nor do its alerts count');

  await service.run(30, forged);
  t.ok(
    service.published.some(({ alert_id, severity }) => alert_id.startsWith('arm/health_status/') && severity === 'ERROR'),
    'a robot that vanishes is an ERROR, whatever the rival sends',
  );
  service.remoteNodes.onPublisherGone('arm', ROBOT.participant, false);
  service.remoteNodes.onPublisherGone('arm', STRANGER.participant, true);
  await service.settled();
  t.equal((await nodeOf(service))?.left, null, 'and a goodbye of the rival does not excuse it');
  t.match(conflicts(service).at(-1), { alert_id: conflicts(service)[0]?.alert_id, value: 1, resolved: true });
  t.same((await nodeOf(service))?.conflict_addresses, []);
});

t.test('an open conflict continues after a restart, and ends when one of the two is gone', async (t) => {
  const folder = temporaryFolder(t);
  const first = await startWithRobot(t, folder);
  const both = (service: InProcessService) => (): void => {
    publish(service, ROBOT);
    publish(service, STRANGER, { cpu_percent: -1 });
  };
  await first.run(10, both(first));
  t.equal(conflicts(first).length, 1);
  await first.stop();
  first.clocks.pass(5);
  const service = await startInProcess(t, folder, first.clocks);
  await service.run(30, both(service));
  t.same(conflicts(service), [], 'neither raised again nor resolved');
  await service.run(70, () => publish(service, ROBOT));
  t.match(conflicts(service), [{ alert_id: conflicts(first)[0]?.alert_id, resolved: true }]);
});

t.test('a rival that comes and goes raises few alerts', async (t) => {
  const service = await startWithRobot(t);
  for (let i = 0; i < 20; i += 1) {
    await service.run(8, () => {
      publish(service, ROBOT);
      publish(service, STRANGER, { cpu_percent: -1 });
    });
    service.remoteNodes.onPublisherGone('arm', STRANGER.participant, true);
  }
  t.ok(conflicts(service).length <= 12, `${conflicts(service).length}`);
  const forgotten = await service.remoteNodes.forget('arm', 'of the test');
  t.equal(forgotten, 0);
});

t.test('forgetting a node resolves its conflict', async (t) => {
  const service = await startWithRobot(t);
  await service.run(8, () => {
    publish(service, ROBOT);
    publish(service, STRANGER, { cpu_percent: -1 });
  });
  t.equal(await service.remoteNodes.forget('arm', 'of the test'), 1);
  await service.settled();
  t.match(conflicts(service), [{ resolved: false }, { resolved: true }]);
});

t.test('another machine with the name of this one is a WARNING about this node', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  service.measure({ cpu_percent: 5 });
  await service.run(10, () => {
    service.remoteNodes.onOwnName(STRANGER);
    service.remoteNodes.onHealthStatus(statusOf(LOCAL, service.clocks.wallMs, { cpu_percent: -1 }), STRANGER);
    service.remoteNodes.onAlert(alertOf(LOCAL, '9', service.clocks.wallMs), STRANGER);
  });
  t.match(conflicts(service), [{ alert_id: new RegExp(`^${LOCAL}/name_conflict/`), severity: 'WARNING', resolved: false }]);
  t.same((await nodeOf(service, LOCAL))?.conflict_addresses, ['127.0.0.1', STRANGER.address]);
  t.match(await service.json('/health'), { cpu_percent: 5 });
  t.equal((await openIds(service)).length, 1);
  service.remoteNodes.onPublisherGone(LOCAL, STRANGER.participant, true);
  await service.run(6);
  t.match(conflicts(service).slice(1), [{ resolved: true }]);
});

t.test('a transport that cannot identify senders delivers everything', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  await service.run(10, () => service.remoteNodes.onHealthStatus(statusOf('arm', service.clocks.wallMs), null));
  const alert = raised(service);
  service.remoteNodes.onAlert(alert, null);
  service.clocks.pass(1);
  service.remoteNodes.onAlert(resolved(service), null);
  await service.settled();
  t.match(service.remoteNodes.counts(), { statuses: 10, alerts: 2, alerts_refused: 0 });
  service.measure();
  await service.run(10, () => service.remoteNodes.onOwnName(null));
  t.same((await nodeOf(service, LOCAL))?.conflict_addresses ?? [], ['127.0.0.1', 'an unknown address']);
});
