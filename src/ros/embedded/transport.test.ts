import t, { type Test } from 'tap';
import type { Alert } from '../../core/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import { decode, encode } from '../../rtps/cdr.ts';
import type { LocalWriter } from '../../rtps/endpoints.ts';
import { type Flight, type MemoryNetwork, Wire } from '../../rtps/testing/memory-network.ts';
import { participantOn, type TestParticipant } from '../../rtps/testing/participants.ts';
import { VirtualTime } from '../../rtps/testing/virtual-time.ts';
import type { GraphOptions } from '../graph.ts';
import {
  ALERT,
  DIAGNOSTIC_ARRAY,
  HEALTH_STATUS,
  HUMBLE_PARTICIPANT_ENTITIES_INFO,
  PARTICIPANT_ENTITIES_INFO,
  SHUTDOWN_STATUS,
} from '../interfaces.generated.ts';
import type { MessageType } from '../interfaces.ts';
import { alertMessage, healthStatusMessage } from '../messages.ts';
import { EmbeddedTransport } from './transport.ts';

const STATUS: HealthStatus = {
  cpu_percent: 1,
  memory_percent: 2.5,
  disk_percent: null,
  temperature: 55,
  status: 'OK',
  node_name: 'other',
  timestamp: '2026-01-02T03:04:05.000Z',
};
const ALERTED: Alert = {
  alert_id: 'other/cpu_percent/01',
  severity: 'WARNING',
  metric: 'cpu_percent',
  value: 81,
  threshold: 80,
  timestamp: STATUS.timestamp,
  resolved: false,
};
const NAMES: GraphOptions['names'] = {
  namespace: '/',
  nodes: {
    healthMonitor: 'health_monitor',
    thresholdMonitor: 'threshold_monitor',
    alertPublisher: 'alert_publisher',
    safeShutdown: 'safe_shutdown',
  },
  topics: { healthStatus: '/health_status', alerts: '/alerts', shutdownStatus: '/shutdown_status', diagnostics: '/diagnostics' },
  services: { safeShutdown: '/safe_shutdown' },
};
const HUMBLE_INFO: MessageType = { ...PARTICIPANT_ENTITIES_INFO, ...HUMBLE_PARTICIPANT_ENTITIES_INFO };
const THRESHOLD = { warning: 80, critical: 90 };

interface Rig {
  readonly time: VirtualTime;
  readonly wire: Wire;
  readonly network: MemoryNetwork;
  readonly transport: EmbeddedTransport;
  readonly other: TestParticipant;
  readonly lines: string[];
  readonly statuses: HealthStatus[];
  readonly alerts: Alert[];
  /** What the other participant reads of a topic, decoded. */
  reads(topic: string, type: MessageType, transientLocal?: boolean): unknown[];
  writes(topic: string, type: MessageType, offer?: { transientLocal?: boolean }): LocalWriter;
}

function rig(t: Test, options: Partial<GraphOptions> = {}): Rig {
  const time = new VirtualTime(t, 1000);
  const wire = new Wire();
  const network = wire.host({ lan: '10.0.0.1' });
  const lines: string[] = [];
  const statuses: HealthStatus[] = [];
  const alerts: Alert[] = [];
  const transport = new EmbeddedTransport({
    place: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: [] },
    names: NAMES,
    listener: { onHealthStatus: (status) => statuses.push(status), onAlert: (alert) => alerts.push(alert), onSafeShutdown: null },
    localNode: 'here',
    gather: true,
    diagnostics: () => ({
      hostname: 'robot',
      openAlerts: [],
      thresholds: { cpu_percent: THRESHOLD, memory_percent: THRESHOLD, disk_percent: THRESHOLD, temperature: THRESHOLD },
    }),
    log: (level, message, fields) => {
      if (level !== 'debug') lines.push(`${level}: ${message} ${JSON.stringify(fields)}`);
    },
    monotonicSeconds: time.now,
    wallMilliseconds: () => 1_700_000_000_000,
    network: () => network,
    ...options,
  });
  const other = participantOn(wire.host({ lan: '10.0.0.2' }), time.now);
  t.teardown(async () => {
    await transport.stop();
    other.stop();
  });
  return {
    time,
    wire,
    network,
    transport,
    other,
    lines,
    statuses,
    alerts,
    reads: (topic, type, transientLocal = true) => {
      const found: unknown[] = [];
      const onSample: Parameters<TestParticipant['createReader']>[0]['onSample'] = ({ data }) =>
        found.push(decode(type, data.payload ?? Buffer.alloc(0)));
      other.createReader({ topic, type: type.ddsName, reliable: true, transientLocal, depth: 10, userData: '', onSample });
      return found;
    },
    writes: (topic, type, { transientLocal = true } = {}) =>
      other.createWriter({ topic, type: type.ddsName, transientLocal, depth: 10, userData: '' }),
  };
}

t.test('what is published arrives, late joiners get the last ten', async (t) => {
  const { time, transport, other, reads } = rig(t);
  const [statuses, alerts, progress] = [
    reads('rt/health_status', HEALTH_STATUS),
    reads('rt/alerts', ALERT),
    reads('rt/shutdown_status', SHUTDOWN_STATUS),
  ];
  transport.publishHealth(STATUS);
  await transport.start();
  for (let i = 0; i < 12; i += 1) transport.publishHealth({ ...STATUS, cpu_percent: i });
  transport.publishAlert(ALERTED);
  transport.publishShutdown({
    request_id: '1',
    state: 'in_progress',
    step: 'announce',
    reason: 'MANUAL',
    requested_by: 'me',
    action: 'dry-run',
    seconds_left: 5,
    message: '',
    timestamp: STATUS.timestamp,
  });
  await other.start();
  await time.pass(3);
  t.same(
    statuses.map((status) => (status as { cpu_percent: number }).cpu_percent),
    [2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
  );
  t.same((statuses[0] as { disk_percent: number }).disk_percent, Number.NaN);
  t.match(alerts, [{ alert_id: 'other/cpu_percent/01', value: 81, resolved: false }]);
  t.match(progress, [{ request_id: '1', seconds_left: 5 }]);
  t.match(transport.details(), { peers: 1, subscribers: 1, refused: 0, problem: null });
});

t.test('/diagnostics once a second at most, and only when somebody reads them', async (t) => {
  const { time, transport, other, reads } = rig(t);
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

t.test('what others publish is taken in, in every namespace, whatever they promise', async (t) => {
  const { time, transport, other, writes, statuses, alerts } = rig(t);
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
    other.write(writer, encode(HEALTH_STATUS, { ...healthStatusMessage({ ...STATUS, node_name: `robot${i}` }) }));
  }
  other.write(alert, encode(ALERT, { ...alertMessage(ALERTED) }));
  await time.pass(1);
  t.same(statuses.map(({ node_name }) => node_name).sort(), ['robot0', 'robot1', 'robot2'], 'each once');
  t.same(statuses[0], { ...STATUS, node_name: statuses[0]?.node_name });
  t.same(alerts, [ALERTED]);
});

t.test('nothing is taken in when that is not wanted', async (t) => {
  const { time, transport, other, writes, statuses } = rig(t, { gather: false });
  const writer = writes('rt/health_status', HEALTH_STATUS);
  await transport.start();
  await other.start();
  await time.pass(3);
  other.write(writer, encode(HEALTH_STATUS, { ...healthStatusMessage(STATUS) }));
  await time.pass(1);
  t.same(statuses, []);
});

t.test('messages that are not what they should be are refused, and said once', async (t) => {
  const { time, transport, other, writes, statuses, lines } = rig(t);
  const writer = writes('rt/health_status', HEALTH_STATUS);
  await transport.start();
  await other.start();
  await time.pass(3);
  for (let i = 0; i < 5; i += 1) other.write(writer, encode(HEALTH_STATUS, { ...healthStatusMessage(STATUS), status: 'FINE' }));
  other.write(writer, Buffer.from('0001000000000000', 'hex'));
  other.write(writer, Buffer.from('nonsense'));
  other.write(writer, encode(HEALTH_STATUS, { ...healthStatusMessage(STATUS) }));
  await time.pass(1);
  t.equal(statuses.length, 1);
  t.equal(transport.details().refused, 7);
  t.equal(lines.filter((line) => line.includes('refused')).length, 1);
  t.match(lines.join(), /rt\/health_status.*status.*FINE.*10\.0\.0\.2/);
});

t.test('another monitor of the same name is a problem, until it is gone for a while', async (t) => {
  const { time, transport, other, writes, statuses, lines } = rig(t);
  const writer = writes('rt/health_status', HEALTH_STATUS);
  await transport.start();
  await other.start();
  await time.pass(3);
  const say = (node: string): void =>
    other.write(writer, encode(HEALTH_STATUS, { ...healthStatusMessage({ ...STATUS, node_name: node }) }));
  for (let i = 0; i < 10; i += 1) {
    say('here');
    await time.pass(1);
  }
  t.same(statuses, [], 'it is not taken for ours');
  t.match(transport.details().problem, /named here too/);
  t.equal(lines.filter((line) => line.includes('same name')).length, 1);
  await time.pass(70);
  t.equal(transport.details().problem, null);
});

t.test('an address that is gone: joins anew, with its history, and asks its static peers again', async (t) => {
  const { time, wire, network, transport, other, reads, lines } = rig(t, {
    place: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: ['10.0.0.9'] },
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
  t.match(lines.join('\n'), /joined the ROS 2 graph anew/);
  t.equal(statuses.length, 2, 'from one that it takes for another');
  const asked: Flight[] = [];
  wire.onFlight = (flight) => {
    if (flight.to === '10.0.0.9') asked.push(flight);
  };
  await time.pass(4);
  t.ok(asked.length > 0, 'static peers are asked again');
  t.ok(asked.every(({ from }) => from === '10.0.0.77'));
  t.equal(other.peerCount, 1, 'the old one took its leave');
  t.equal(transport.details().problem, null);
});

t.test('when it cannot join anew it says so, tries again, and loses nothing of its history', async (t) => {
  const { time, network, transport, other, reads, lines } = rig(t);
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
  t.match(lines.join('\n'), /trying again[\s\S]*joined the ROS 2 graph anew/);
  const statuses = reads('rt/health_status', HEALTH_STATUS);
  await other.start();
  await time.pass(3);
  t.same(
    statuses.map((status) => (status as { cpu_percent: number }).cpu_percent),
    [1, 2],
  );
});

t.test('each endpoint is of a node, whatever the topics are called', async (t) => {
  const names: GraphOptions['names'] = { ...NAMES, topics: { ...NAMES.topics, healthStatus: '/robot/state', alerts: '/robot/trouble' } };
  const onSafeShutdown = async () => ({ success: true, message: '' });
  const { time, transport, other, reads } = rig(t, { names, listener: { onHealthStatus: () => {}, onAlert: () => {}, onSafeShutdown } });
  const infos = reads('ros_discovery_info', HUMBLE_INFO);
  await transport.start();
  await other.start();
  await time.pass(3);
  const { node_entities_info_seq: nodes } = infos.at(-1) as { node_entities_info_seq: Record<string, unknown[]>[] };
  t.same(
    nodes.map((node) => [node['node_name'], node['reader_gid_seq']?.length, node['writer_gid_seq']?.length]),
    [
      ['health_monitor', 0, 2],
      ['threshold_monitor', 1, 0],
      ['alert_publisher', 1, 1],
      ['safe_shutdown', 1, 2],
    ],
  );
});

t.test('stopped at any moment, nothing stays open', async (t) => {
  const during = async (act: (rig: Rig) => Promise<unknown>): Promise<void> => {
    const all = rig(t);
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
  await during(async ({ transport, network, time }) => {
    await transport.start();
    await time.pass(1);
    // Joins anew, and is stopped before it has.
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
