import t, { type Test } from 'tap';
import { healthQos } from '../../../src/ros/graph.ts';
import { GraphNode } from '../../../testkit/dds/graph-node.ts';
import { Peer, type PeerEvent, peersUnavailable, VENDORS } from '../../../testkit/dds/peers.ts';
import { reached } from '../../../testkit/dds/streams.ts';
import { Network } from '../../../testkit/network/network.ts';

/** The deadline and the liveliness lease of /health_status, as subscribers on Cyclone DDS and Fast DDS experience them. */

t.setTimeout(600_000);
const skip = peersUnavailable();
const TIMEOUT_SECONDS = 120;
/** Policy ids of DDS 1.4, 2.2.3. */
const POLICY = { deadline: 4, liveliness: 8 };
const { deadlineSeconds, livelinessLeaseSeconds } = healthQos(1);

/** A node that publishes twice in a period, so that a busy machine does not make a status late. */
async function publishing(
  t: Test,
): Promise<{ node: GraphNode; subscribe: (vendor: (typeof VENDORS)[number], ...options: string[]) => Promise<Peer> }> {
  const network = new Network();
  t.teardown(() => network.dispose());
  const segment = network.segment();
  const [brain, viewers] = [network.host(), network.host()];
  segment.attach(brain);
  segment.attach(viewers);
  const node = await GraphNode.start(brain, { publishSeconds: 1 });
  node.stream({ hz: 10, count: 100_000 });
  return {
    node,
    subscribe: (vendor, ...options) => Peer.start(viewers, vendor, 'subscribe', ['--topic', '/health_status', ...options]),
  };
}

const lost = ({ alive, not_alive }: PeerEvent<'liveliness'>): boolean => alive === 0 && not_alive === 1;
const alive = (event: PeerEvent<'liveliness'>): boolean => event.alive === 1 && event.not_alive === 0;

t.test(
  'a subscriber that requests the offered deadline and lease is told of a robot that stalls, and of nothing else',
  { skip },
  async (t) => {
    const { node, subscribe } = await publishing(t);
    const request = ['--deadline', String(deadlineSeconds), '--liveliness-lease', String(livelinessLeaseSeconds)];
    const watchers = await Promise.all(VENDORS.map((vendor) => subscribe(vendor, ...request)));
    const others = await Promise.all(VENDORS.map((vendor) => subscribe(vendor)));
    for (const watcher of watchers) await watcher.waitFor('liveliness', alive, TIMEOUT_SECONDS);
    const before = await node.lastPublished();
    // Longer than two leases: without assertions, the liveliness would be lost.
    for (const peer of [...watchers, ...others]) await reached(peer, before + 20 * livelinessLeaseSeconds, TIMEOUT_SECONDS);
    for (const peer of [...watchers, ...others]) {
      t.same(peer.all('incompatible'), []);
      t.same(peer.all('deadline_missed'), [], 'statuses arrive in time');
      t.notOk(peer.all('liveliness').some(lost), 'it is alive');
    }
    node.signal('SIGSTOP');
    for (const watcher of watchers) {
      await watcher.waitFor('deadline_missed', () => true, TIMEOUT_SECONDS);
      await watcher.waitFor('liveliness', lost, TIMEOUT_SECONDS);
    }
    const counts = watchers.map((watcher) => watcher.all('liveliness').length);
    node.signal('SIGCONT');
    for (const [i, watcher] of watchers.entries()) {
      await watcher.waitForCount('liveliness', (counts[i] as number) + 1, () => true, TIMEOUT_SECONDS);
      t.ok(alive(watcher.all('liveliness').at(-1) as PeerEvent<'liveliness'>), 'it is alive again');
    }
    await node.kill();
    const stalls = watchers.map((watcher) => watcher.all('deadline_missed').length);
    for (const [i, watcher] of watchers.entries()) {
      await watcher.waitForCount('deadline_missed', (stalls[i] as number) + 1, () => true, TIMEOUT_SECONDS);
    }
    for (const peer of others) t.same(peer.all('deadline_missed'), [], 'a subscriber without a deadline is told of none');
  },
);

t.test('a tighter deadline or lease is incompatible on both sides', { skip }, async (t) => {
  const { node, subscribe } = await publishing(t);
  for (const vendor of VENDORS) {
    for (const [option, seconds, policy] of [
      ['--deadline', deadlineSeconds / 2, POLICY.deadline],
      ['--liveliness-lease', livelinessLeaseSeconds / 2, POLICY.liveliness],
    ] as const) {
      const peer = await subscribe(vendor, option, String(seconds));
      t.equal((await peer.waitFor('incompatible', () => true, TIMEOUT_SECONDS)).policy, policy, `${vendor} ${option}`);
      t.same([...peer.all('matched'), ...peer.all('sample')], []);
    }
  }
  await node.waitFor('log', ({ fields, message }) => message === 'incompatible QoS: not matched' && fields['policy'] !== undefined);
  t.equal((await node.details()).subscribers, 0);
});
