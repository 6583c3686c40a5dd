import t, { type Test } from 'tap';
import { PROGRESS } from '../../../testkit/dds/contents.ts';
import type { DdsCaller } from '../../core/shutdown/shutdown.ts';
import { ForgedParticipant } from '../../rtps/testing/forged-participant.ts';
import { Wire } from '../../rtps/testing/memory-network.ts';
import { participantOn, writerOf } from '../../rtps/testing/participants.ts';
import { VirtualTime } from '../../rtps/testing/virtual-time.ts';
import { decode, encode } from '../../rtps/wire/cdr.ts';
import { ENTITY } from '../../rtps/wire/protocol.ts';
import type { GraphOptions } from '../graph.ts';
import { SAFE_SHUTDOWN, SHUTDOWN_STATUS } from '../interfaces.generated.ts';
import type { MessageType } from '../interfaces.ts';
import { EmbeddedShutdownServer } from './shutdown-server.ts';
import { HUMBLE_INFO, NAMES } from './testing/transport-rig.ts';

function rig(t: Test) {
  const time = new VirtualTime(t, 1000);
  const wire = new Wire();
  const network = wire.host({ lan: '10.0.0.1' });
  const callers: (DdsCaller | null)[] = [];
  const lines: string[] = [];
  const graph: GraphOptions = {
    discovery: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: [] },
    names: NAMES,
    listener: {
      onHealthStatus: () => undefined,
      onAlert: () => undefined,
      onSafeShutdown: async ({ requested_by }, { dds, mayBeForAnother }) => {
        callers.push(dds);
        return { success: true, message: `${requested_by}${mayBeForAnother() ? ', or another' : ''}` };
      },
    },
    localNode: 'health_monitor',
    observe: 'always',
    parameters: () => [],
    publishSeconds: 1,
    diagnostics: () => {
      throw new Error('it publishes none');
    },
    log: (level, message, fields) => level !== 'debug' && lines.push(`${level}: ${message} ${JSON.stringify(fields)}`),
    monotonicSeconds: time.now,
  };
  const server = new EmbeddedShutdownServer({ ...graph, wallMilliseconds: () => 1_700_000_000_000, network });
  const other = participantOn(wire.host({ lan: '10.0.0.2' }), time.now);
  t.teardown(() => {
    server.stop();
    other.stop();
  });
  const reads = (topic: string, type: MessageType, transientLocal = false): unknown[] => {
    const found: unknown[] = [];
    const onSample: Parameters<typeof other.createReader>[0]['onSample'] = ({ data }) =>
      found.push(decode(type, data.payload ?? Buffer.alloc(0)));
    other.createReader({ topic, type: type.ddsName, reliable: true, transientLocal, depth: 10, userData: '', onSample });
    return found;
  };
  return { time, network, server, other, reads, callers, lines };
}

t.test('the node of the safe shutdown alone: both names are served, the caller is known, and steps are published', async (t) => {
  const { time, server, other, reads, callers, lines } = rig(t);
  const infos = reads('ros_discovery_info', HUMBLE_INFO, true);
  const services = ['/safe_shutdown', '/health_monitor/safe_shutdown'];
  const replies = services.map((name) => reads(`rr${name}Reply`, SAFE_SHUTDOWN.response));
  const writers = services.map((name) =>
    other.createWriter({ topic: `rq${name}Request`, type: SAFE_SHUTDOWN.request.ddsName, transientLocal: false, depth: 10, userData: '' }),
  );
  await server.start();
  await other.start();
  await time.pass(3);
  for (const writer of writers) other.write(writer, encode(SAFE_SHUTDOWN.request, { reason: 'MANUAL', requested_by: 'me', timeout: 5 }));
  await time.pass(3);
  t.same(replies, Array(2).fill([{ success: true, message: 'me' }]));
  t.match(callers, Array(2).fill({ address: '10.0.0.2', port: Number, local: false, receivingPorts: null }));
  const proofs = callers.map((caller) => caller?.prove());
  await time.pass(1);
  t.same(await Promise.all(proofs), [true, true]);
  other.stop();
  const late = callers[0]?.prove();
  await time.pass(1);
  t.equal(await late, false, 'it is not there any more');
  t.same(
    (infos.at(-1) as { node_entities_info_seq: { node_name: string }[] }).node_entities_info_seq.map(({ node_name }) => node_name),
    ['safe_shutdown'],
  );
  const [node] = (infos.at(-1) as { node_entities_info_seq: { reader_gid_seq: []; writer_gid_seq: [] }[] }).node_entities_info_seq;
  t.same([node?.reader_gid_seq.length, node?.writer_gid_seq.length], [2, 3]);
  t.equal(server.problem, null);
  t.match(lines, [/^notice: safe shutdown is served by the embedded participant/]);
});

t.test('steps of a shutdown reach late subscribers, also after the participant has joined again', async (t) => {
  const { time, network, server, other, reads, lines } = rig(t);
  const steps = reads('rt/shutdown_status', SHUTDOWN_STATUS, true);
  const publish = (message: string): void => server.publish(encode(SHUTDOWN_STATUS, { ...PROGRESS, message }));
  await server.start();
  publish('first');
  network.addresses = { lan: '10.0.0.5' };
  await time.pass(30);
  t.match(lines.join(), /joined the ROS 2 graph again/);
  await other.start();
  await time.pass(5);
  publish('second');
  await time.pass(3);
  t.same(
    steps.map((step) => (step as { message: string }).message),
    ['first', 'second'],
  );
});

t.test('a call by the shared name may be for another machine while one offers it', async (t) => {
  const { time, server, other, reads } = rig(t);
  const replies = reads('rr/safe_shutdownReply', SAFE_SHUTDOWN.response);
  const endpoint = { transientLocal: false, depth: 10, userData: '' };
  other.createWriter({ topic: 'rr/safe_shutdownReply', type: SAFE_SHUTDOWN.response.ddsName, ...endpoint });
  const client = other.createWriter({ topic: 'rq/safe_shutdownRequest', type: SAFE_SHUTDOWN.request.ddsName, ...endpoint });
  await server.start();
  await other.start();
  await time.pass(3);
  other.write(client, encode(SAFE_SHUTDOWN.request, { reason: 'MANUAL', requested_by: 'me', timeout: 5 }));
  await time.pass(3);
  t.same(replies, [{ success: true, message: 'me, or another' }]);
});

t.test('a forged request in the name of a genuine participant without a client is not proved', async (t) => {
  const { time, network, server, other, callers } = rig(t);
  writerOf(other);
  await server.start();
  await other.start();
  await time.pass(3);
  const forged = ForgedParticipant.named(other.prefix);
  const [request, reply] = (['request', 'response'] as const).map((part) => ({ userData: '', type: SAFE_SHUTDOWN[part].ddsName }));
  // Since its numbers contradict those of the participant, samples of both are delivered.
  for (let i = 0; i < 6; i += 1) {
    for (const datagram of [
      forged.heartbeat(ENTITY.PUBLICATIONS_WRITER, 1, 1),
      forged.heartbeat(ENTITY.SUBSCRIPTIONS_WRITER, 1, 1),
      forged.endpoint(true, 77, { topic: 'rq/safe_shutdownRequest', ...request }),
      ...(i < 3 ? [] : [forged.endpoint(false, 78, { topic: 'rr/safe_shutdownReply', ...reply })]),
      forged.data(0x4d03, encode(SAFE_SHUTDOWN.request, { reason: 'MANUAL', requested_by: 'me', timeout: 5 })),
    ])
      network.inject(datagram, '10.0.0.2', false);
    await time.pass(0.6);
  }
  t.ok(callers.length > 1);
  for (const caller of callers) {
    const proof = caller?.prove();
    await time.pass(4);
    t.equal(await proof, false);
  }
});

t.test('a failed start is reported as a problem, does not reject, and is repeated', async (t) => {
  const { time, network, server, lines } = rig(t);
  const open = network.open.bind(network);
  network.open = () => Promise.reject(new Error('no free port'));
  await server.start();
  t.equal(server.problem, '/safe_shutdown is not offered: cannot join the ROS 2 graph: no free port');
  t.match(lines, [/^error: cannot join the ROS 2 graph; will retry .*no free port/]);
  network.open = open;
  await time.pass(2);
  t.equal(server.problem, null);
});
