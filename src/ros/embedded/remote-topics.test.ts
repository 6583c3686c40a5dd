import t from 'tap';
import { runs } from '../../../testkit/effort.ts';
import { dissect } from '../../rtps/testing/dissect.ts';
import { participantOn, writerOf } from '../../rtps/testing/participants.ts';
import { encode } from '../../rtps/wire/cdr.ts';
import { ENTITY, entityOf } from '../../rtps/wire/protocol.ts';
import { ALERT, HEALTH_STATUS } from '../interfaces.generated.ts';
import { healthStatusMessage } from '../messages.ts';
import { ALERTED, STATUS, transportRig } from './testing/transport-rig.ts';

// With EDGE_HEALTH_LONG=1 it takes minutes.
t.setTimeout(900_000);

t.test('remote messages are received in every namespace and with every offered QoS', async (t) => {
  const { time, transport, other, writes, statuses, alerts, senders } = transportRig(t);
  const offers = [
    writes('rt/health_status', HEALTH_STATUS),
    writes('rt/robot1/health_status', HEALTH_STATUS),
    writes('rt/robot2/health_status', HEALTH_STATUS, { transientLocal: false }),
  ];
  const alert = writes('rt/robot1/alerts', ALERT);
  writes('rt/robot3/health', HEALTH_STATUS);
  await transport.start();
  await other.start();
  await time.pass(3);
  for (const [i, writer] of offers.entries()) {
    other.write(writer, encode(HEALTH_STATUS, healthStatusMessage({ ...STATUS, node_name: `robot${i}` })));
  }
  other.write(alert, encode(ALERT, { ...ALERTED }));
  await time.pass(1);
  t.same(
    senders,
    Array.from({ length: 4 }, () => ({ participant: other.prefix, address: '10.0.0.2', appliance: null })),
  );
  t.same(statuses.map(({ node_name }) => node_name).sort(), ['robot0', 'robot1', 'robot2'], 'each once');
  t.same(statuses[0], { ...STATUS, node_name: statuses[0]?.node_name });
  t.same(alerts, [ALERTED]);
});

t.test('the self-test of another machine is ignored', async (t) => {
  const { time, transport, other, writes, statuses, alerts } = transportRig(t);
  const status = writes('rt/_edge_health_probe/health_status', HEALTH_STATUS);
  const alert = writes('rt/_edge_health_probe/alerts', ALERT);
  const real = writes('rt/robot1/health_status', HEALTH_STATUS);
  await transport.start();
  await other.start();
  await time.pass(3);
  other.write(status, encode(HEALTH_STATUS, healthStatusMessage({ ...STATUS, node_name: 'probe' })));
  other.write(alert, encode(ALERT, { ...ALERTED }));
  other.write(real, encode(HEALTH_STATUS, healthStatusMessage(STATUS)));
  await time.pass(1);
  t.same([statuses, alerts], [[STATUS], []]);
});

t.test('one subscription is announced to a publisher, and it requests the QoS that the publisher offers', async (t) => {
  for (const { late, transientLocal } of [
    { late: false, transientLocal: true },
    { late: false, transientLocal: false },
    { late: true, transientLocal: true },
  ]) {
    const { time, transport, other, writes, statuses } = transportRig(t);
    const start = () => Promise.all([transport.start(), other.start()]).then(() => time.pass(3));
    // By then the subscription is announced.
    if (late) await start();
    const writer = writes('rt/health_status', HEALTH_STATUS, { transientLocal });
    other.write(writer, encode(HEALTH_STATUS, healthStatusMessage({ ...STATUS, node_name: 'before' })));
    if (late) await time.pass(3);
    else await start();
    // The writer's participant checks the disposal of the replaced subscription.
    await time.pass(4);
    t.match(writer.state.readers, [{ reliable: true, transientLocal }]);
    t.equal(writer.state.readers.length, 1);
    t.same(other.lines, [], 'no incompatible QoS');
    other.write(writer, encode(HEALTH_STATUS, healthStatusMessage(STATUS)));
    await time.pass(1);
    t.same(
      statuses.map(({ node_name }) => node_name),
      transientLocal ? ['before', 'other'] : ['other'],
      'each once',
    );
    await transport.stop();
    other.stop();
  }
});

t.test('a participant with volatile and transient local publishers gets a subscription for each', async (t) => {
  const { time, transport, other, writes, statuses } = transportRig(t);
  const writers = [false, true].map((transientLocal) => writes('rt/health_status', HEALTH_STATUS, { transientLocal }));
  await transport.start();
  await other.start();
  await time.pass(3);
  for (const [i, writer] of writers.entries()) {
    other.write(writer, encode(HEALTH_STATUS, healthStatusMessage({ ...STATUS, node_name: `robot${i}` })));
  }
  await time.pass(1);
  t.same(statuses.map(({ node_name }) => node_name).sort(), ['robot0', 'robot1'], 'each once');
});

t.test('many robots in separate namespaces: all are read, and most readers are announced to few participants', async (t) => {
  // More than the 32 subscriptions that are announced to all.
  const ROBOTS = runs(44, 120);
  const { time, wire, network, transport, statuses, lines } = transportRig(t);
  // Each in a segment of its own with this machine, so that they have nothing to do with each other.
  const segments = Array.from({ length: ROBOTS }, (_, i) => [`lan${i}`, `10.1.${i}`] as const);
  network.addresses = Object.fromEntries(segments.map(([name, prefix]) => [name, `${prefix}.1`]));
  const robots = segments.map(([name, prefix], i) => {
    const participant = participantOn(wire.host({ [name]: `${prefix}.2` }), time.now);
    const writer = writerOf(participant, { topic: `rt/robot${i}/health_status`, type: HEALTH_STATUS.ddsName });
    t.teardown(() => participant.stop());
    return { participant, writer };
  });
  let [sent, announced] = [0, 0];
  wire.onFlight = ({ datagram, from, isMulticast }) => {
    if (!from.endsWith('.1') || isMulticast) return;
    sent += 1;
    announced += dissect(datagram).filter((part) => part.kind === 'data' && entityOf(part.sender) === ENTITY.SUBSCRIPTIONS_WRITER).length;
  };
  await transport.start();
  for (const { participant } of robots) await participant.start();
  await time.pass(10);
  for (const [i, { participant, writer }] of robots.entries()) {
    participant.write(writer, encode(HEALTH_STATUS, healthStatusMessage({ ...STATUS, node_name: `robot${i}` })));
  }
  await time.pass(1);
  t.equal(new Set(statuses.map(({ node_name }) => node_name)).size, ROBOTS);
  t.equal(statuses.length, ROBOTS);
  // Each robot gets the 32 that are announced to all, and the one that replaces one of them.
  t.ok(announced >= ROBOTS && announced <= ROBOTS * 36, `${announced} announcements of subscriptions`);
  t.ok(sent < ROBOTS * 60, `${sent} datagrams`);
  t.same(lines, []);
  const before = sent;
  await time.pass(30);
  t.equal(sent, before, 'then all traffic ends');

  // A participant with a matching writer has returned with a new GUID, and gets the announcement, too.
  const place = robots.at(-1) as (typeof robots)[number];
  place.participant.stop();
  const [name, prefix] = segments.at(-1) as (typeof segments)[number];
  const again = participantOn(wire.host({ [name]: `${prefix}.3` }), time.now);
  t.teardown(() => again.stop());
  const writer = writerOf(again, { topic: `rt/robot${ROBOTS - 1}/health_status`, type: HEALTH_STATUS.ddsName });
  await again.start();
  await time.pass(5);
  again.write(writer, encode(HEALTH_STATUS, healthStatusMessage({ ...STATUS, node_name: 'back again' })));
  await time.pass(1);
  t.equal(statuses.at(-1)?.node_name, 'back again');
});

t.test('readers of topics without publishers are removed at the limit', async (t) => {
  const { time, wire, network, transport, statuses, lines } = transportRig(t);
  // Each in a segment of its own with this machine, so that they have nothing to do with each other.
  network.addresses = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`lan${n}`, `10.1.${n}.1`]));
  await transport.start();
  // Five participants with 240 topics each are more than the 1,088 readers that there may be.
  const strangers = [1, 2, 3, 4, 5].map((n) => {
    const host = wire.host({ [`lan${n}`]: `10.1.${n}.2` });
    const participant = participantOn(host, time.now);
    for (let i = 0; i < 240; i += 1) writerOf(participant, { topic: `rt/made_up_${n}_${i}/health_status`, type: HEALTH_STATUS.ddsName });
    t.teardown(() => participant.stop());
    return { host, participant };
  });
  for (const { participant } of strangers) await participant.start();
  await time.pass(3);
  t.match(lines.join('\n'), /too many remote topics.*1088/);
  const say = async (n: number, topic: string): Promise<void> => {
    const robot = participantOn(wire.host({ [`lan${n}`]: `10.1.${n}.2` }), time.now);
    t.teardown(() => robot.stop());
    const writer = writerOf(robot, { topic, type: HEALTH_STATUS.ddsName });
    await robot.start();
    await time.pass(3);
    robot.write(writer, encode(HEALTH_STATUS, healthStatusMessage({ ...STATUS, node_name: `robot${n}` })));
    await time.pass(1);
  };
  await say(7, 'rt/robot7/health_status');
  t.same(statuses, [], 'while they are all there');
  for (const { host } of strangers) host.isFrozen = true;
  await time.pass(25);
  await say(8, 'rt/robot8/health_status');
  await say(9, 'rt/health_status');
  t.same(
    statuses.map(({ node_name }) => node_name).sort(),
    ['robot7', 'robot8', 'robot9'],
    'also the one that was refused: it does not announce itself once more',
  );
});

t.test('the publisher of a node is gone with its last writer, and has left unless its lease expired', async (t) => {
  const { time, wire, transport, other, writes, left, expired } = transportRig(t);
  const writer = writes('rt/health_status', HEALTH_STATUS);
  const second = participantOn(wire.host({ lan: '10.0.0.3' }), time.now);
  const silentHost = wire.host({ lan: '10.0.0.4' });
  const stale = participantOn(silentHost, time.now);
  const secondWriter = writerOf(second, { topic: 'rt/robot1/health_status', type: HEALTH_STATUS.ddsName });
  const silentWriter = writerOf(stale, { topic: 'rt/robot2/health_status', type: HEALTH_STATUS.ddsName });
  t.teardown(() => {
    second.stop();
    stale.stop();
  });
  await transport.start();
  for (const participant of [other, second, stale]) await participant.start();
  await time.pass(3);
  const message = (node_name: string): Buffer => encode(HEALTH_STATUS, healthStatusMessage({ ...STATUS, node_name }));
  other.write(writer, message('robot1'));
  second.write(secondWriter, message('robot1'));
  stale.write(silentWriter, message('robot2'));
  await time.pass(1);
  other.stop();
  await time.pass(1);
  t.same(left, ['robot1']);
  silentHost.isFrozen = true;
  second.stop();
  await time.pass(1);
  t.same(left, ['robot1', 'robot1'], 'another participant with the same node name');
  await time.pass(60);
  t.equal(transport.details().peers, 0, 'the lease of the stopped one has expired');
  t.same([left, expired], [['robot1', 'robot1'], ['robot2']]);
});

t.test('without observation no messages are received', async (t) => {
  const { time, transport, other, writes, statuses } = transportRig(t, { observe: 'never' });
  const writer = writes('rt/health_status', HEALTH_STATUS);
  await transport.start();
  await other.start();
  await time.pass(3);
  other.write(writer, encode(HEALTH_STATUS, healthStatusMessage(STATUS)));
  await time.pass(1);
  t.same(statuses, []);
});

t.test('invalid messages are refused and logged once', async (t) => {
  const { time, transport, other, writes, statuses, lines } = transportRig(t);
  const writer = writes('rt/health_status', HEALTH_STATUS);
  await transport.start();
  await other.start();
  await time.pass(3);
  for (let i = 0; i < 5; i += 1) other.write(writer, encode(HEALTH_STATUS, { ...healthStatusMessage(STATUS), status: 'FINE' }));
  other.write(writer, Buffer.from('0001000000000000', 'hex'));
  other.write(writer, Buffer.from('nonsense'));
  other.write(writer, encode(HEALTH_STATUS, healthStatusMessage(STATUS)));
  await time.pass(1);
  t.equal(statuses.length, 1);
  t.equal(transport.details().refused, 7);
  t.equal(lines.filter((line) => line.includes('refused')).length, 1);
  t.match(lines.join(), /rt\/health_status.*status.*FINE.*10\.0\.0\.2/);
});

t.test('another monitor with the same name is a problem until a while after it is gone', async (t) => {
  const { time, transport, other, writes, statuses, alerts, namesakes, lines } = transportRig(t);
  const writer = writes('rt/health_status', HEALTH_STATUS);
  const alertWriter = writes('rt/alerts', ALERT);
  await transport.start();
  await other.start();
  await time.pass(3);
  const raise = async (metric: string): Promise<void> => {
    other.write(alertWriter, encode(ALERT, { ...ALERTED, metric, alert_id: `here/${metric}/01` }));
    await time.pass(1);
  };
  for (const metric of ['health_status', 'name_conflict', 'cpu_percent']) await raise(metric);
  t.same([alerts.length, transport.details().problem, namesakes], [3, null, []], 'alerts about it are none');
  const say = (node: string): void => other.write(writer, encode(HEALTH_STATUS, healthStatusMessage({ ...STATUS, node_name: node })));
  for (let i = 0; i < 10; i += 1) {
    say('here');
    await time.pass(1);
  }
  t.same(statuses, [], 'it is not taken for ours');
  t.same([namesakes.length, namesakes[0]], [10, { participant: other.prefix, address: '10.0.0.2', appliance: null }]);
  t.match(transport.details().problem, /also named here/);
  t.equal(lines.filter((line) => line.includes('same name')).length, 1);
  await time.pass(70);
  t.equal(transport.details().problem, null);
});
