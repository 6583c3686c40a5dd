import t, { type Test } from 'tap';
import { GraphNode, type NodeOptions } from '../../../testkit/dds/graph-node.ts';
import { Peer, peersUnavailable, VENDORS, type Vendor } from '../../../testkit/dds/peers.ts';
import { arrivalsAt, numberOf, range, reached, spread, wait } from '../../../testkit/dds/streams.ts';
import { type Host, type Interface, Network } from '../../../testkit/network/network.ts';

/** Several hosts, and several participants on one: who finds whom, and who does not. */

t.jobs = 7;
t.setTimeout(240_000);
const skip = peersUnavailable();
const PATIENCE_SECONDS = 60;
/** Of our own participants. Cyclone DDS announces 10 s, Fast DDS 20 s. */
const LEASE_SECONDS = 20;

function network(t: Test): Network {
  const made = new Network();
  t.teardown(() => made.dispose());
  return made;
}

const subscribe = (host: Host, vendor: Vendor, ...options: readonly string[]): Promise<Peer> =>
  Peer.start(host, vendor, 'subscribe', ['--topic', '/health_status', ...options]);

const publish = (host: Host, vendor: Vendor, name: string, ...options: readonly string[]): Promise<Peer> => {
  const fields = [`node_name=${name}`, 'status=OK', 'timestamp=2026-03-04T05:06:07.089Z'].flatMap((field) => ['--set', field]);
  return Peer.start(host, vendor, 'publish', ['--topic', '/health_status', '--hz', '2', ...fields, ...options]);
};

/** A node that publishes under its name. */
async function monitor(host: Host, localNode: string, options: NodeOptions = {}): Promise<GraphNode> {
  const node = await GraphNode.start(host, { localNode, ...options });
  node.stream({ hz: 2, count: 0 });
  return node;
}

/** Resolves when a peer has a new status of this node. */
async function hears(peer: Peer, name: string, seconds = PATIENCE_SECONDS): Promise<void> {
  const since = Date.now();
  await peer.waitFor('sample', ({ data, source_ms }) => data['node_name'] === name && source_ms > since, seconds);
}

/** The same for one of our own; what it hears is new because nothing is delivered twice. */
async function gathers(node: GraphNode, name: string, seconds = PATIENCE_SECONDS): Promise<void> {
  const since = Date.now();
  await node.waitFor('health', ({ status, wall_ms }) => status.node_name === name && wall_ms > since, seconds);
}

t.test('four hosts: everybody sees everybody, also one that went without a word and came back', { skip }, async (t) => {
  const made = network(t);
  const segment = made.segment();
  const hosts = [1, 2, 3, 4].map(() => made.host());
  const interfaces = hosts.map((host): Interface => segment.attach(host));
  const nodes = await Promise.all(hosts.map((host, i) => monitor(host, `host${i}`)));
  const peers = await Promise.all(hosts.map((host, i) => subscribe(host, VENDORS[i % 2] as Vendor)));
  const everybody = async (): Promise<void> => {
    for (const [i, node] of nodes.entries()) {
      await Promise.all(peers.map((peer) => hears(peer, `host${i}`)));
      await Promise.all(nodes.filter((other) => other !== node).map((other) => gathers(other, `host${i}`)));
    }
    // The other three nodes, and the four peers.
    for (const node of nodes) await node.detailsUntil((details) => details.peers === 7 && details.subscribers === 7, PATIENCE_SECONDS);
  };
  await everybody();

  const killed = Date.now();
  await nodes[3]?.kill();
  for (const node of nodes.slice(0, 3)) {
    const { wall_ms } = await node.detailsUntil(({ peers: left }) => left === 6, PATIENCE_SECONDS);
    t.comment(`a node that was killed is missed after ${((wall_ms - killed) / 1000).toFixed(1)} s`);
    t.ok(wall_ms - killed < (LEASE_SECONDS + 10) * 1000);
  }
  nodes[3] = await monitor(hosts[3] as Host, 'host3');
  await everybody();
  t.pass('it came back');

  // Its peer says 10 s or 20 s, the node 20 s.
  const cut = Date.now();
  interfaces[2]?.down();
  for (const node of [nodes[0], nodes[1], nodes[3]]) {
    const { wall_ms } = await (node as GraphNode).detailsUntil(({ peers: left }) => left === 5, PATIENCE_SECONDS);
    t.comment(`a host that was cut off is missed after ${((wall_ms - cut) / 1000).toFixed(1)} s`);
    t.ok(wall_ms - cut < (LEASE_SECONDS + 10) * 1000);
  }
  interfaces[2]?.up();
  const up = Date.now();
  await everybody();
  t.comment(`everybody sees it again after ${((Date.now() - up) / 1000).toFixed(1)} s`);
});

t.test('peers notice by the lease that a node went without a word', { skip }, async (t) => {
  const made = network(t);
  const segment = made.segment();
  const [brain, others] = [made.host(), made.host()];
  segment.attach(brain);
  segment.attach(others);
  const node = await monitor(brain, 'brain');
  const watchers = await Promise.all(VENDORS.map((vendor) => Peer.start(others, vendor, 'discovery')));
  const isOurs = ({ topic }: { readonly topic: string }): boolean => topic === 'rt/diagnostics';
  const [found] = await Promise.all(watchers.map((watcher) => watcher.waitFor('endpoint', isOurs, PATIENCE_SECONDS)));
  const killed = Date.now();
  await node.kill();
  for (const [index, watcher] of watchers.entries()) {
    const gone = await watcher.waitFor('participant_gone', ({ guid }) => guid === found?.participant, LEASE_SECONDS + 30);
    const after = (gone.wall_ms - killed) / 1000;
    t.comment(`${VENDORS[index]}: missed after ${after.toFixed(1)} s`);
    t.ok(after > LEASE_SECONDS - 5 && after < LEASE_SECONDS + 15);
    if (VENDORS[index] === 'fastdds') t.equal(gone.how, 'lease');
  }
});

t.test('hosts that are gone do not hold up what goes to the others', { skip }, async (t) => {
  const made = network(t);
  const segment = made.segment();
  const [brain, arm, ...legs] = [made.host(), made.host(), made.host(), made.host()];
  segment.attach(brain);
  segment.attach(arm);
  const cut = legs.map((leg) => segment.attach(leg));
  const stay = await Promise.all(VENDORS.map((vendor) => subscribe(arm, vendor)));
  const go = await Promise.all(legs.flatMap((leg) => VENDORS.map((vendor) => subscribe(leg, vendor))));
  const node = await GraphNode.start(brain);
  await node.detailsUntil(({ subscribers }) => subscribers === stay.length + go.length, PATIENCE_SECONDS);
  // The kernel keeps what it cannot deliver, for seconds and until a socket is full. Here it notices soon that it cannot.
  const neighbours = '/proc/sys/net/ipv4/neigh/eth0';
  brain.exec('sh', '-c', `echo 1000 > ${neighbours}/base_reachable_time_ms; echo 1 > ${neighbours}/delay_first_probe_time`);
  const count = 100 * (LEASE_SECONDS + 5);
  node.stream({ hz: 100, count });
  await wait(2);
  for (const one of cut) one.down();
  await node.waitFor('published', ({ number }) => number === count, PATIENCE_SECONDS + LEASE_SECONDS);
  for (const [index, peer] of stay.entries()) {
    await reached(peer, count, PATIENCE_SECONDS);
    const arrivals = arrivalsAt(peer);
    t.same(arrivals.map(numberOf), range(1, count), `${VENDORS[index]}: everything, in order`);
    t.comment(`${VENDORS[index]}: ${spread(arrivals.map(({ latency_ms }) => latency_ms))}`);
  }
  t.equal((await node.details()).peers, stay.length, 'and the others are given up');
});

t.test('static peers on a network that passes no multicast', { skip }, async (t) => {
  const made = network(t);
  const segment = made.segment({ multicast: false });
  const [brain, arm, stranger] = [made.host(), made.host(), made.host()];
  const here = segment.attach(brain);
  const there = segment.attach(arm);
  segment.attach(stranger);
  // Those who name the node's host, and those whom it finds because it names theirs.
  const node = await monitor(brain, 'brain', { staticPeers: [there.address, 'no-such-host.invalid'] });
  const other = await monitor(arm, 'arm');
  const lost = await monitor(stranger, 'stranger');
  const alone = await subscribe(stranger, 'cyclone');
  const unicast = ['--no-multicast', '--peer', here.address];
  const peers = await Promise.all([
    ...VENDORS.map((vendor) => subscribe(arm, vendor, ...unicast)),
    subscribe(arm, 'fastdds'),
    subscribe(arm, 'cyclone', '--peer', there.address),
  ]);
  const publishers = await Promise.all(VENDORS.map((vendor) => publish(arm, vendor, `from-${vendor}`, ...unicast)));
  await Promise.all([gathers(node, 'arm'), gathers(other, 'brain'), ...peers.map((peer) => hears(peer, 'brain'))]);
  await Promise.all(VENDORS.map((vendor) => gathers(node, `from-${vendor}`)));
  // It stays so, beyond every lease.
  await wait(LEASE_SECONDS + 5);
  await Promise.all([gathers(node, 'arm'), gathers(other, 'brain'), ...peers.map((peer) => hears(peer, 'brain'))]);
  await Promise.all(VENDORS.map((vendor) => gathers(node, `from-${vendor}`)));
  t.equal((await node.details()).peers, 1 + peers.length + publishers.length);
  const heardByStranger = (await lost.details()).peers;
  t.equal(heardByStranger, 1, 'a host that nobody names sees its own participants alone');
  t.same(new Set(alone.all('sample').map(({ data }) => data['node_name'])), new Set(['stranger']));
  t.match(
    node.all('log').find(({ level }) => level === 'warning'),
    { message: 'a static peer cannot be resolved', fields: { peer: 'no-such-host.invalid' } },
  );
});

t.test('LOCALHOST: everybody on this host, nobody on another', { skip }, async (t) => {
  const made = network(t);
  const segment = made.segment();
  const [brain, others] = [made.host(), made.host()];
  segment.attach(brain);
  segment.attach(others);
  // Of its own accord it would now and then look for a router.
  brain.exec('sh', '-c', 'echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6 || true');
  const sent = (): number => Number(brain.exec('cat', '/sys/class/net/eth0/statistics/tx_packets'));
  const node = await monitor(brain, 'brain', { discoveryRange: 'LOCALHOST' });
  const second = await monitor(brain, 'second', { discoveryRange: 'LOCALHOST' });
  const local = ['--address', '127.0.0.1', '--peer', '127.0.0.1', '--no-multicast'];
  const peers = await Promise.all(VENDORS.map((vendor) => subscribe(brain, vendor, ...local)));
  await Promise.all(VENDORS.map((vendor) => publish(brain, vendor, `from-${vendor}`, ...local)));
  await Promise.all([gathers(node, 'second'), gathers(second, 'brain')]);
  await Promise.all(VENDORS.flatMap((vendor) => [gathers(node, `from-${vendor}`), gathers(second, `from-${vendor}`)]));
  await Promise.all(peers.flatMap((peer) => [hears(peer, 'brain'), hears(peer, 'second')]));
  const before = sent();
  await wait(7);
  t.equal(sent(), before, 'nothing leaves the host');

  const watchers = await Promise.all(VENDORS.map((vendor) => Peer.start(others, vendor, 'discovery')));
  await Promise.all(VENDORS.map((vendor) => publish(others, vendor, 'stranger')));
  const far = await monitor(others, 'far');
  for (const watcher of watchers) await watcher.waitForCount('participant', 4, () => true, PATIENCE_SECONDS);
  await gathers(far, 'stranger');
  await wait(5);
  for (const one of [node, second]) {
    t.equal((await one.details()).peers, 5, 'the other node and four peers');
    t.same(
      one.all('health').filter(({ status }) => ['stranger', 'far'].includes(status.node_name)),
      [],
    );
  }
  for (const watcher of watchers) {
    const found = new Set(watcher.all('participant').map(({ guid }) => guid));
    t.equal(found.size, 4, 'over there: the other watcher, two publishers and a node');
  }
});

t.test('domains are worlds apart', { skip }, async (t) => {
  const host = network(t).host();
  const domains = [0, 5] as const;
  const nodes = await Promise.all(domains.map((domainId) => monitor(host, `domain${domainId}`, { domainId })));
  for (const [index, domainId] of domains.entries()) {
    const domain = ['--domain', String(domainId)];
    const peers = await Promise.all(VENDORS.map((vendor) => subscribe(host, vendor, ...domain)));
    await Promise.all(VENDORS.map((vendor) => publish(host, vendor, `${vendor}${domainId}`, ...domain)));
    await Promise.all(peers.map((peer) => hears(peer, `domain${domainId}`)));
    await Promise.all(VENDORS.map((vendor) => gathers(nodes[index] as GraphNode, `${vendor}${domainId}`)));
  }
  await wait(4);
  for (const [index, node] of nodes.entries()) {
    t.equal((await node.details()).peers, 4);
    const names = new Set(node.all('health').map(({ status }) => status.node_name));
    t.same(names, new Set(VENDORS.map((vendor) => `${vendor}${domains[index]}`)));
  }
});

t.test('five participants on one host; who calls from here is local', { skip }, async (t) => {
  const host = network(t).host();
  const names = ['a', 'b', 'c', 'd', 'e'];
  const nodes = await Promise.all(names.map((name) => monitor(host, name, { namespace: `/${name}` })));
  const peers = await Promise.all(
    VENDORS.map((vendor) =>
      Peer.start(
        host,
        vendor,
        'subscribe',
        names.flatMap((name) => ['--topic', `/${name}/health_status`]),
      ),
    ),
  );
  for (const [index, name] of names.entries()) {
    await Promise.all([
      ...peers.map((peer) => hears(peer, name)),
      ...nodes.filter((_, i) => i !== index).map((node) => gathers(node, name)),
    ]);
    const service = ['--service', `/${name}/safe_shutdown`, '--set', 'timeout=1', '--set', `requested_by=${name}`];
    const clients = await Promise.all(VENDORS.map((vendor) => Peer.start(host, vendor, 'call', service)));
    for (const client of clients) t.equal(await client.ended, 0);
    const calls = (nodes[index] as GraphNode).all('call');
    t.same(
      calls.map(({ call, caller }) => ({ by: call.requested_by, ...caller })),
      VENDORS.map(() => ({ by: name, address: '127.0.0.1', local: true })),
    );
  }
});
