import t from 'tap';
import type { EndpointData } from '../../rtps/discovery/discovery-data.ts';
import { LEASE_SECONDS } from '../../rtps/participant.ts';
import type { Flight } from '../../rtps/testing/memory-network.ts';
import { participantOn } from '../../rtps/testing/participants.ts';
import { encode } from '../../rtps/wire/cdr.ts';
import type { GraphOptions } from '../graph.ts';
import { ALERT, ALERT_ARRAY, DIAGNOSTIC_ARRAY, HEALTH_STATUS, SAFE_SHUTDOWN, SHUTDOWN_STATUS } from '../interfaces.generated.ts';
import { ALERTED, HUMBLE_INFO, NAMES, STATUS, type TransportRig, transportRig } from './testing/transport-rig.ts';

t.test('messages arrive; late joiners get the last ten, of a shutdown all', async (t) => {
  const { time, transport, other, reads } = transportRig(t);
  const [statuses, alerts, progress] = [
    reads('rt/health_status', HEALTH_STATUS),
    reads('rt/alerts', ALERT),
    reads('rt/shutdown_status', SHUTDOWN_STATUS),
  ];
  transport.publishHealth(STATUS);
  await transport.start();
  for (let i = 0; i < 12; i += 1) transport.publishHealth({ ...STATUS, cpu_percent: i });
  transport.publishAlert(ALERTED);
  for (let i = 0; i < 150; i += 1) {
    transport.publishShutdown({
      request_id: `${i}`,
      state: 'in_progress',
      step: 'announce',
      reason: 'MANUAL',
      requested_by: 'me',
      action: 'dry-run',
      seconds_left: 5,
      message: '',
      timestamp: STATUS.timestamp,
    });
  }
  await other.start();
  await time.pass(3);
  t.same(
    statuses.map((status) => (status as { cpu_percent: number }).cpu_percent),
    [2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
  );
  t.same((statuses[0] as { disk_percent: number }).disk_percent, Number.NaN);
  t.match(alerts, [{ alert_id: 'other/cpu_percent/01', value: 81, resolved: false }]);
  t.match(progress[0], { request_id: '0', seconds_left: 5 });
  t.equal(progress.length, 150, 'a whole shutdown procedure, however many units and hooks it has');
  t.match(transport.details(), { peers: 1, subscribers: 1, refused: 0, problem: null });
});

t.test('a late joiner gets the last list of open alerts, however long, and no earlier one', async (t) => {
  const { time, transport, other, reads } = transportRig(t);
  await transport.start();
  const many = Array.from({ length: 512 }, (_, n) => ({ ...ALERTED, alert_id: `other/disk:/mnt/${n}/01` }));
  transport.publishOpenAlerts([ALERTED], STATUS.timestamp);
  transport.publishOpenAlerts(many, STATUS.timestamp);
  const lists = reads('rt/open_alerts', ALERT_ARRAY);
  await other.start();
  await time.pass(3);
  t.same(lists, [{ stamp: { sec: 1_767_323_045, nanosec: 0 }, node_name: 'here', alerts: many }]);
});

t.test('/diagnostics at most once a second, and only with a subscriber', async (t) => {
  const { time, transport, other, reads } = transportRig(t);
  await transport.start();
  await time.pass(1);
  transport.publishHealth(STATUS);
  const arrays = reads('rt/diagnostics', DIAGNOSTIC_ARRAY, false);
  await other.start();
  await time.pass(2);
  for (let i = 0; i < 30; i += 1) {
    transport.publishHealth(STATUS);
    await time.pass(0.1);
  }
  t.ok(arrays.length >= 2 && arrays.length <= 4, `${arrays.length} in three seconds at 10 Hz`);
  t.match(arrays[0], { status: [{ name: 'other: Health', level: 0, hardware_id: 'robot' }] });
});

t.test('after the removal of an address it rejoins with its history and its static peers', async (t) => {
  const { time, wire, network, transport, other, reads, lines } = transportRig(t, {
    discovery: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: ['10.0.0.9'] },
  });
  const statuses = reads('rt/health_status', HEALTH_STATUS);
  await transport.start();
  await other.start();
  await time.pass(3);
  transport.publishHealth(STATUS);
  await time.pass(1);
  t.equal(statuses.length, 1);
  network.addresses = { lan: '10.0.0.77' };
  await time.pass(7);
  t.match(lines.join('\n'), /joined the ROS 2 graph again/);
  t.equal(statuses.length, 2, 'from one that it takes for another');
  const asked: Flight[] = [];
  wire.onFlight = (flight) => {
    if (flight.to === '10.0.0.9') asked.push(flight);
  };
  await time.pass(4);
  t.ok(asked.length > 0, 'static peers are asked again');
  t.ok(asked.every(({ from }) => from === '10.0.0.77'));
  // The goodbye came from an address that was not its own, which any host could have sent.
  await time.pass(LEASE_SECONDS);
  t.equal(other.peerCount, 1, 'the old one is forgotten when its lease has ended');
  t.equal(transport.details().problem, null);
});

t.test('if the ports are in use at the start, the transport joins later, with what was published meanwhile', async (t) => {
  const { time, network, transport, other, reads } = transportRig(t);
  const open = network.open.bind(network);
  network.open = () => Promise.reject(new Error('no free port'));
  await transport.start();
  t.match(transport.joinProblem, /no free port/);
  t.equal(transport.details().problem, transport.joinProblem);
  transport.publishHealth({ ...STATUS, cpu_percent: 1 });
  transport.publishHealth({ ...STATUS, cpu_percent: 2 });
  const statuses = reads('rt/health_status', HEALTH_STATUS);
  await other.start();
  await time.pass(3);
  t.same(statuses, []);
  network.open = open;
  await time.pass(11);
  t.equal(transport.joinProblem, null);
  t.same(
    statuses.map((status) => (status as { cpu_percent: number }).cpu_percent),
    [1, 2],
  );
});

t.test('a failed rejoin is logged and retried without loss of history', async (t) => {
  const { time, network, transport, other, reads, lines } = transportRig(t);
  await transport.start();
  await time.pass(3);
  transport.publishHealth({ ...STATUS, cpu_percent: 1 });
  const open = network.open.bind(network);
  network.open = () => Promise.reject(new Error('no free port'));
  network.addresses = { lan: '10.0.0.77' };
  await time.pass(7);
  t.match(transport.details().problem, /cannot join the ROS 2 graph: no free port/);
  transport.publishHealth({ ...STATUS, cpu_percent: 2 });
  network.open = open;
  await time.pass(11);
  t.equal(transport.details().problem, null);
  t.match(lines.join('\n'), /will retry[\s\S]*joined the ROS 2 graph again/);
  const statuses = reads('rt/health_status', HEALTH_STATUS);
  await other.start();
  await time.pass(3);
  t.same(
    statuses.map((status) => (status as { cpu_percent: number }).cpu_percent),
    [1, 2],
  );
});

t.test(
  'the safe shutdown has the shared name and its own; a call may be for another machine while one offers the shared name',
  async (t) => {
    const calls: unknown[] = [];
    const { time, wire, transport, other, reads, writes } = transportRig(t, {
      listener: {
        onHealthStatus: () => {},
        onAlert: () => {},
        onSafeShutdown: async ({ requested_by }, { mayBeForAnother }) => {
          calls.push([requested_by, mayBeForAnother()]);
          return mayBeForAnother() ? null : { success: false, message: 'refused' };
        },
      },
    });
    const replies = ['rr/safe_shutdownReply', 'rr/health_monitor/safe_shutdownReply'].map((topic) =>
      reads(topic, SAFE_SHUTDOWN.response, false),
    );
    const clients = ['rq/safe_shutdownRequest', 'rq/health_monitor/safe_shutdownRequest'].map((topic) =>
      writes(topic, SAFE_SHUTDOWN.request, { transientLocal: false }),
    );
    const rival = participantOn(wire.host({ lan: '10.0.0.3' }), time.now);
    t.teardown(() => rival.stop());
    rival.createWriter({
      topic: 'rr/safe_shutdownReply',
      type: SAFE_SHUTDOWN.response.ddsName,
      transientLocal: false,
      depth: 10,
      userData: '',
    });
    const call = async (requested_by: string): Promise<void> => {
      for (const client of clients) other.write(client, encode(SAFE_SHUTDOWN.request, { reason: 'MANUAL', requested_by, timeout: 5 }));
      await time.pass(3);
    };
    await transport.start();
    await other.start();
    await time.pass(3);
    await call('alone');
    await rival.start();
    await time.pass(3);
    await call('one of two');
    rival.stop();
    await time.pass(30);
    await call('alone again');
    t.same(calls, [
      ['alone', false],
      ['alone', false],
      ['one of two', true],
      ['one of two', false],
      ['alone again', false],
      ['alone again', false],
    ]);
    t.same(
      replies.map(({ length }) => length),
      [2, 3],
    );
  },
);

t.test('statuses are offered with a deadline and a lease by their period, and nothing else is', async (t) => {
  for (const [publishSeconds, deadlineSeconds, livelinessLeaseSeconds] of [
    [0.001, 1, 5],
    [1, 2, 5],
    [1 / 0.7, 2.858, 5],
    [10, 20, 30],
  ] as const) {
    await t.test(`a period of ${publishSeconds} s`, async (t) => {
      const { time, wire, transport } = transportRig(t, { publishSeconds });
      const offered: EndpointData[] = [];
      const onRemoteWriter = (endpoint: EndpointData): boolean => offered.push(endpoint) > 0;
      const viewer = participantOn(wire.host({ lan: '10.0.0.3' }), time.now, { onRemoteWriter });
      t.teardown(() => viewer.stop());
      await transport.start();
      await viewer.start();
      await time.pass(3);
      const finite = offered.filter(({ qos }) => Number.isFinite(qos.deadlineSeconds) || Number.isFinite(qos.livelinessLeaseSeconds));
      t.match(finite, [{ topic: 'rt/health_status', qos: { deadlineSeconds, livelinessLeaseSeconds, liveliness: 0 } }]);
      t.equal(finite.length, 1);
      t.ok(offered.length > 1);
    });
  }
});

t.test('another machine that offers the shared name is noted while it is present, and no problem', async (t) => {
  const { time, transport, other, lines, writes } = transportRig(t, {
    listener: { onHealthStatus: () => {}, onAlert: () => {}, onSafeShutdown: async () => null },
  });
  await transport.start();
  await time.pass(3);
  t.equal(transport.details().note, null);
  writes('rr/safe_shutdownReply', SAFE_SHUTDOWN.response, { transientLocal: false });
  await other.start();
  await time.pass(3);
  t.equal(transport.details().problem, null);
  t.equal(
    transport.details().note,
    'another machine on the graph offers /safe_shutdown too, and one call may reach several; call /health_monitor/safe_shutdown instead',
  );
  t.equal(lines.filter((line) => line.includes('several machines offer the same safe shutdown')).length, 1);
  other.stop();
  await time.pass(30);
  t.equal(transport.details().note, null);
});

/** Name, readers and writers of each node, by the last message on ros_discovery_info. */
function nodesOf(infos: readonly unknown[]): unknown[] {
  const { node_entities_info_seq: nodes } = infos.at(-1) as { node_entities_info_seq: Record<string, unknown[]>[] };
  return nodes.map((node) => [node['node_name'], node['reader_gid_seq']?.length, node['writer_gid_seq']?.length]);
}

t.test('each endpoint belongs to a node, whatever the topic names', async (t) => {
  const names: GraphOptions['names'] = { ...NAMES, topics: { ...NAMES.topics, healthStatus: '/robot/state', alerts: '/robot/trouble' } };
  const onSafeShutdown = async () => ({ success: true, message: '' });
  const { time, transport, other, reads } = transportRig(t, {
    names,
    listener: { onHealthStatus: () => {}, onAlert: () => {}, onSafeShutdown },
  });
  const infos = reads('ros_discovery_info', HUMBLE_INFO);
  await transport.start();
  await other.start();
  await time.pass(3);
  t.same(nodesOf(infos), [
    ['health_monitor', 0, 3],
    ['threshold_monitor', 1, 0],
    ['alert_publisher', 1, 2],
    ['safe_shutdown', 2, 3],
  ]);
});

t.test('without the service its node is absent, and the health monitor publishes /shutdown_status', async (t) => {
  const { time, transport, other, reads } = transportRig(t);
  const infos = reads('ros_discovery_info', HUMBLE_INFO);
  await transport.start();
  await other.start();
  await time.pass(3);
  t.same(nodesOf(infos), [
    ['health_monitor', 0, 4],
    ['threshold_monitor', 1, 0],
    ['alert_publisher', 1, 2],
  ]);
});

t.test('nothing stays open, whenever the transport is stopped', async (t) => {
  const during = async (act: (rig: TransportRig) => Promise<unknown>): Promise<void> => {
    const all = transportRig(t, { observe: 'auto' });
    await act(all);
    await all.time.pass(30);
    t.notOk(all.network.isOpen);
    t.equal(all.time.pending, 0);
    all.transport.publishHealth(STATUS);
    t.match(all.transport.details(), { peers: null, subscribers: null });
  };
  await during(async ({ transport }) => {
    await transport.start();
    await transport.stop();
    await transport.stop();
  });
  await during(async ({ transport }) => {
    const starting = transport.start();
    await transport.stop();
    await starting;
  });
  await during(async ({ transport, network }) => {
    // Stopped while the start is to be repeated.
    network.open = () => Promise.reject(new Error('no free port'));
    await transport.start();
    await transport.stop();
  });
  await during(async ({ transport, network, time }) => {
    await transport.start();
    await time.pass(1);
    // Stopped during a rejoin.
    const open = network.open.bind(network);
    network.open = async (...args) => {
      await transport.stop();
      return open(...args);
    };
    network.addresses = { lan: '10.0.0.77' };
    await time.pass(8);
  });
  await during(async ({ transport, network, time }) => {
    await transport.start();
    await time.pass(1);
    network.open = () => Promise.reject(new Error('no free port'));
    network.addresses = { lan: '10.0.0.77' };
    await time.pass(8);
    await transport.stop();
  });
});
