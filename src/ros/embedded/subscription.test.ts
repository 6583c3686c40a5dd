import t, { type Test } from 'tap';
import type { Alert } from '../../core/alerts/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import type { LocalWriter } from '../../rtps/endpoints/endpoints.ts';
import { Participant } from '../../rtps/participant.ts';
import { type MemoryNetwork, Wire } from '../../rtps/testing/memory-network.ts';
import { participantOn, type TestParticipant } from '../../rtps/testing/participants.ts';
import { VirtualTime } from '../../rtps/testing/virtual-time.ts';
import { encode } from '../../rtps/wire/cdr.ts';
import { ALERT, HEALTH_STATUS } from '../interfaces.generated.ts';
import { healthStatusMessage } from '../messages.ts';
import type { Arrived, SubscribedTopics } from '../subscription.ts';
import { EmbeddedSubscription } from './subscription.ts';
import { ALERTED, STATUS } from './testing/transport-rig.ts';

interface Rig {
  readonly time: VirtualTime;
  readonly network: MemoryNetwork;
  readonly other: TestParticipant;
  readonly subscription: EmbeddedSubscription;
  readonly statuses: (HealthStatus & Arrived)[];
  readonly alerts: (Alert & Arrived)[];
  readonly lines: string[];
  writer(topic: string, type?: typeof HEALTH_STATUS, transientLocal?: boolean): LocalWriter;
  publish(writer: LocalWriter, cpu: number): void;
}

function rig(t: Test, topics: SubscribedTopics): Rig {
  const time = new VirtualTime(t, 1000);
  const wire = new Wire();
  const network = wire.host({ lan: '10.0.0.1' });
  const other = participantOn(wire.host({ lan: '10.0.0.2' }), time.now);
  const [statuses, alerts, lines]: [Rig['statuses'], Rig['alerts'], string[]] = [[], [], []];
  const subscription = new EmbeddedSubscription({
    discovery: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: [] },
    nodeName: 'listener',
    topics,
    listener: {
      onHealthStatus: (status, arrived) => statuses.push({ ...status, ...arrived }),
      onAlert: (alert, arrived) => alerts.push({ ...alert, ...arrived }),
    },
    log: (level, message, fields) => {
      if (level !== 'debug') lines.push(`${level}: ${message} ${JSON.stringify(fields)}`);
    },
    monotonicSeconds: time.now,
    wallMilliseconds: () => 1_700_000_000_000,
    network,
  });
  t.teardown(async () => {
    await subscription.stop();
    other.stop();
  });
  return {
    time,
    network,
    other,
    subscription,
    statuses,
    alerts,
    lines,
    writer: (topic, type = HEALTH_STATUS, transientLocal = true) =>
      other.createWriter({ topic, type: type.ddsName, transientLocal, depth: 10, userData: '' }),
    publish: (writer, cpu) => other.write(writer, encode(HEALTH_STATUS, healthStatusMessage({ ...STATUS, cpu_percent: cpu }))),
  };
}

t.test('receives only the configured topics, with the last ten messages, and the publisher of each', async (t) => {
  const { alerts, other, publish, statuses, subscription, time, writer } = rig(t, {
    healthStatus: '/a/health_status',
    alerts: '/a/alerts',
  });
  const [wanted, unwanted] = [writer('rt/a/health_status'), writer('rt/b/health_status')];
  const alert = writer('rt/a/alerts', ALERT);
  for (let i = 1; i <= 15; i += 1) publish(wanted, i);
  publish(unwanted, 99);
  other.write(alert, encode(ALERT, { ...ALERTED }));
  await subscription.start();
  await other.start();
  await time.pass(3);
  publish(wanted, 16);
  await time.pass(1);
  t.same(
    statuses.map(({ cpu_percent, sequenceNumber }) => [cpu_percent, sequenceNumber]),
    [6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16].map((number) => [number, number]),
  );
  t.match(statuses[0], { topic: '/a/health_status', publisher: wanted.guid });
  t.match(alerts, [{ ...ALERTED, topic: '/a/alerts', publisher: alert.guid, sequenceNumber: 1 }]);
});

t.test('receives all topics of the types, also with a lower QoS', async (t) => {
  const { other, publish, statuses, subscription, time, writer } = rig(t, { healthStatus: null, alerts: null });
  const writers = [writer('rt/well/being'), writer('rt/health_status', HEALTH_STATUS, false), writer('rq/no/topic')];
  await subscription.start();
  await other.start();
  await time.pass(3);
  for (const [i, one] of writers.entries()) publish(one, i);
  await time.pass(1);
  t.same(statuses.map(({ topic }) => topic).sort(), ['/health_status', '/well/being']);
});

t.test('the readers of a topic are removed with its last publisher', async (t) => {
  const { other, subscription, time, writer } = rig(t, { healthStatus: null, alerts: null });
  const removals = t.capture(Participant.prototype, 'removeReader', Participant.prototype.removeReader);
  // The first 32 readers are announced to all participants and stay.
  for (let robot = 1; robot <= 40; robot += 1) writer(`rt/robot${robot}/health_status`);
  await subscription.start();
  await other.start();
  await time.pass(3);
  other.stop();
  await time.pass(1);
  t.equal(removals.args().length, 8);
});

t.test('an invalid health status is refused and logged', async (t) => {
  const { lines, other, statuses, subscription, time, writer } = rig(t, { healthStatus: '/health_status', alerts: '/alerts' });
  const liar = writer('rt/health_status');
  await subscription.start();
  await other.start();
  await time.pass(3);
  other.write(liar, encode(HEALTH_STATUS, { ...healthStatusMessage(STATUS), status: 'SPLENDID' }));
  other.write(liar, Buffer.from('nonsense'));
  await time.pass(1);
  t.same(statuses, []);
  t.match(lines, [/^warning: message refused .*SPLENDID/]);
});

t.test('it rejoins when its address is removed, and leaves nothing open when it is stopped', async (t) => {
  const { lines, network, other, publish, statuses, subscription, time, writer } = rig(t, {
    healthStatus: '/health_status',
    alerts: '/alerts',
  });
  const robot = writer('rt/health_status');
  await subscription.start();
  await other.start();
  await time.pass(3);
  publish(robot, 1);
  network.addresses = { lan: '10.0.0.77' };
  await time.pass(15);
  t.match(lines.at(-1), /joined the ROS 2 graph again/);
  publish(robot, 2);
  await time.pass(1);
  t.same(
    statuses.map(({ cpu_percent }) => cpu_percent),
    [1, 1, 2],
    'the last ones once more, as any late joiner',
  );
  await subscription.stop();
  await time.pass(30);
  t.notOk(network.isOpen);
});
