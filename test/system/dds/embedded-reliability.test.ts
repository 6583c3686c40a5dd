import t, { type Test } from 'tap';
import { GraphNode } from '../../../testkit/dds/graph-node.ts';
import { Peer, type PeerEvent, peersUnavailable, VENDORS, type Vendor } from '../../../testkit/dds/peers.ts';
import { arrivalsAt, numberOf, range, reached, spread } from '../../../testkit/dds/streams.ts';
import { type Host, Network } from '../../../testkit/network/network.ts';
import { Traffic } from './support/traffic.ts';

/** Nothing is lost that the QoS promises: reliable, transient local, keep last 10. Judged by sequence numbers alone. */

t.jobs = 2;
t.setTimeout(900_000);
const skip = peersUnavailable();

const TIMEOUT_SECONDS = 120;
const DEPTH = 10;
const TEN_KILOBYTES = '√x'.repeat(2560);

interface Site {
  readonly network: Network;
  /** The host of the node. */
  readonly brain: Host;
  readonly others: Host;
}

/** Two hosts on a segment. */
function twoHosts(t: Test): Site {
  const network = new Network();
  t.teardown(() => network.dispose());
  const segment = network.segment();
  const [brain, others] = [network.host(), network.host()];
  segment.attach(brain);
  segment.attach(others);
  return { network, brain, others };
}

const subscribe = (host: Host, vendor: Vendor, ...topics: readonly string[]): Promise<Peer> =>
  Peer.start(
    host,
    vendor,
    'subscribe',
    (topics.length > 0 ? topics : ['/health_status']).flatMap((topic) => ['--topic', topic]),
  );

t.test('nothing is lost at 20 Hz with further subscribers that come and go, half of them killed', { skip }, async (t) => {
  const { brain, others } = twoHosts(t);
  const permanent = await Promise.all(VENDORS.map((vendor) => subscribe(others, vendor)));
  const node = await GraphNode.start(brain);
  await node.detailsUntil(({ subscribers }) => subscribers === permanent.length, TIMEOUT_SECONDS);
  node.stream({ hz: 20, count: 0 });
  await node.waitFor('published', ({ number }) => number > DEPTH, TIMEOUT_SECONDS);

  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    for (const vendor of VENDORS) {
      const before = await node.lastPublished();
      const peer = await subscribe(others, vendor);
      await peer.waitFor('sample', () => true, TIMEOUT_SECONDS);
      const joined = await node.lastPublished();
      // From here on it receives new samples.
      await reached(peer, joined + 2 * DEPTH, TIMEOUT_SECONDS);
      await peer.kill(signal);
      const numbers = arrivalsAt(peer).map(numberOf);
      const [first = 0, last = 0] = [numbers[0], numbers.at(-1)];
      t.same(numbers, range(first, last), `${vendor}, ${signal}: one after the other, each once`);
      const [earliest, latest] = [before - DEPTH + 1, joined - DEPTH + 1];
      t.ok(first >= earliest && first <= latest, `begins with the last ten: ${first} of ${earliest} to ${latest}`);
    }
  }

  const count = await node.endStreams();
  for (const [index, peer] of permanent.entries()) {
    await reached(peer, count, TIMEOUT_SECONDS);
    const arrivals = arrivalsAt(peer);
    t.same(arrivals.map(numberOf), range(1, count), `${VENDORS[index]}: everything, in order, each once`);
    t.same(peer.all('lost'), []);
    t.comment(`${VENDORS[index]}: ${arrivals.length} of ${count} arrived, ${spread(arrivals.map(({ latency_ms }) => latency_ms))}`);
  }
  t.equal((await node.details()).refused, 0);
});

t.test('nothing is lost with 10 % loss, duplicated and reordered frames, both ways', { skip }, async (t) => {
  const network = new Network();
  t.teardown(() => network.dispose());
  const segment = network.segment();
  const [brain, others] = [network.host(), network.host()];
  segment.attach(others);
  const { link } = await segment.attachLossy(brain, { seed: 3 });
  const subscribers = await Promise.all(VENDORS.map((vendor) => subscribe(others, vendor, '/health_status', '/big/health_status')));
  const [node, big] = await Promise.all([GraphNode.start(brain), GraphNode.start(brain, { namespace: '/big', observe: false })]);
  // The node also reads the topic of the other one.
  await node.detailsUntil(({ subscribers }) => subscribers === VENDORS.length, TIMEOUT_SECONDS);
  await big.detailsUntil(({ subscribers }) => subscribers === VENDORS.length + 1, TIMEOUT_SECONDS);

  // Everything published must arrive: what keep last drops must have had time to be repaired. The writers of the node keep ten; those of
  // the peers keep all, since Fast DDS sends heartbeats and requests only every three seconds.
  const [count, bigCount] = [100, 40];
  const SECONDS = 10;
  const fields = ['status=OK', 'timestamp=2026-03-04T05:06:07.089Z'].flatMap((field) => ['--set', field]);
  const publish = (vendor: Vendor, topic: string, hz: number, total: number, name: string): Promise<Peer> => {
    const rate = ['--hz', String(hz), '--count', String(total), '--depth', '1000', '--await-readers', '1', '--stay'];
    const what = ['--sequence', 'cpu_percent', '--set', `node_name=${name}`, '--max-message-bytes', '1472'];
    return Peer.start(others, vendor, 'publish', ['--topic', topic, ...rate, ...what, ...fields]);
  };
  await link.set({ lossPercent: 10, duplicatePercent: 5, reorderPercent: 5, holdMs: 15 });
  node.stream({ hz: count / SECONDS, count });
  big.stream({ hz: bigCount / SECONDS, count: bigCount, nodeName: TEN_KILOBYTES });
  await Promise.all(VENDORS.map((vendor) => publish(vendor, '/health_status', count / SECONDS, count, vendor)));
  // Longer names than nodes have: they arrive completely, and are counted as refused.
  await Promise.all(VENDORS.map((vendor) => publish(vendor, `/${vendor}/health_status`, bigCount / SECONDS, bigCount, TEN_KILOBYTES)));
  await Promise.all([
    node.waitFor('published', ({ number }) => number === count, 120),
    big.waitFor('published', ({ number }) => number === bigCount, 120),
  ]);

  for (const [index, vendor] of VENDORS.entries()) {
    for (const [topic, total] of [
      ['/health_status', count],
      ['/big/health_status', bigCount],
    ] as const) {
      const ours = (sample: PeerEvent<'sample'>): boolean =>
        sample.topic === topic && !VENDORS.includes(sample.data['node_name'] as Vendor);
      const arrived = await (subscribers[index] as Peer).waitForCount('sample', total, ours, TIMEOUT_SECONDS);
      t.same(arrived.map(numberOf), range(1, total), `to ${vendor}: everything, in order, each once`);
      t.comment(`to ${vendor} on ${topic}: ${spread(arrived.map(({ latency_ms }) => latency_ms))}`);
    }
    const received = await node.waitForCount('health', count, ({ status }) => status.node_name === vendor, 120);
    t.same(
      received.map(({ status }) => status.cpu_percent),
      range(1, count),
      `from ${vendor}: everything, in order, each once`,
    );
  }
  const long = (VENDORS.length + 1) * bigCount;
  await node.detailsUntil(({ refused }) => refused >= long, TIMEOUT_SECONDS);
  t.equal((await node.details()).refused, long, 'the long ones of the peers and of the other node, each once');
  for (const { lost, duplicated, reordered } of Object.values(await link.set({ lossPercent: 0 })).filter(
    (way) => typeof way === 'object',
  )) {
    t.ok(lost > 20 && duplicated > 10 && reordered > 10, `${lost} frames were lost, ${duplicated} duplicated, ${reordered} reordered`);
  }
});

for (const who of ['the node', 'the peers'] as const) {
  t.test(`${who} may be stopped until every lease has ended`, { skip }, async (t) => {
    const { brain, others } = twoHosts(t);
    const traffic = await Traffic.start(brain, others, VENDORS);
    const peers = [...traffic.subscribers, ...traffic.publishers];
    const frozen = who === 'the node' ? [traffic.node] : peers;
    for (const one of frozen) one.signal('SIGSTOP');
    if (who === 'the peers') await traffic.node.detailsUntil((details) => details.peers === 0, TIMEOUT_SECONDS);
    else await Promise.all(traffic.subscribers.map((peer) => peer.waitFor('unmatched', ({ current }) => current === 0, TIMEOUT_SECONDS)));
    for (const one of frozen) one.signal('SIGCONT');
    await traffic.judge(t);
  });
}
