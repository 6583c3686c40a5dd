import t, { type Test } from 'tap';
import { GraphNode, type NodeOptions } from '../../../testkit/dds/graph-node.ts';
import { Peer, peersUnavailable, VENDORS, type Vendor } from '../../../testkit/dds/peers.ts';
import { arrivalsAt, numberOf, range, reached, spread } from '../../../testkit/dds/streams.ts';
import { type Host, type Interface, Network } from '../../../testkit/network/network.ts';

/** Tests which of several hosts, and of several participants on one host, discover each other. */

t.jobs = 3;
t.setTimeout(600_000);
const skip = peersUnavailable();
const TIMEOUT_SECONDS = 120;
/** The lease of nodes and peers in tests that wait for its end; otherwise each has its own (10 s, 20 s). */
const LEASE_SECONDS = 6;
const SHORT_LEASE = ['--lease', String(LEASE_SECONDS)];
const HZ = 2;

function network(t: Test): Network {
  const made = new Network();
  t.teardown(() => made.dispose());
  return made;
}

const subscribe = (host: Host, vendor: Vendor, ...options: readonly string[]): Promise<Peer> =>
  Peer.start(host, vendor, 'subscribe', ['--topic', '/health_status', ...options]);

/** A node or a peer that publishes numbered statuses under its name. */
interface Publisher {
  readonly name: string;
  /** The number of its last status so far. */
  last(): Promise<number>;
}

async function publish(host: Host, vendor: Vendor, name: string, ...options: readonly string[]): Promise<Publisher> {
  const fields = [`node_name=${name}`, 'status=OK', 'timestamp=2026-03-04T05:06:07.089Z'].flatMap((field) => ['--set', field]);
  const counted = ['--hz', String(HZ), '--sequence', 'cpu_percent'];
  const peer = await Peer.start(host, vendor, 'publish', ['--topic', '/health_status', ...counted, ...fields, ...options]);
  return { name, last: async () => peer.all('written').at(-1)?.number ?? 0 };
}

interface Monitor extends Publisher {
  readonly node: GraphNode;
}

/** A node that publishes under its name. */
async function monitor(host: Host, name: string, options: NodeOptions = {}): Promise<Monitor> {
  const node = await GraphNode.start(host, { localNode: name, ...options });
  node.stream({ hz: HZ, count: 0 });
  return { name, node, last: () => node.lastPublished() };
}

/** Resolves when a peer has received a status that is published from now on. */
async function reachesPeer({ name, last }: Publisher, peer: Peer): Promise<void> {
  const since = await last();
  await peer.waitFor('sample', (sample) => sample.data['node_name'] === name && numberOf(sample) > since, TIMEOUT_SECONDS);
}

/** The same for a node. */
async function reachesNode({ name, last }: Publisher, { node }: Monitor): Promise<void> {
  const since = await last();
  await node.waitFor('health', ({ status }) => status.node_name === name && (status.cpu_percent ?? 0) > since, TIMEOUT_SECONDS);
}

/** Resolves when a node has published for this long: time in which something else may happen, or must not. */
async function publishesFor(seconds: number, { node }: Monitor): Promise<void> {
  const since = await node.lastPublished();
  await node.waitFor('published', ({ number }) => number >= since + seconds * HZ, TIMEOUT_SECONDS);
}

t.test('four hosts discover each other, including one that was killed and came back', { skip }, async (t) => {
  const made = network(t);
  const segment = made.segment();
  const hosts = [1, 2, 3, 4].map(() => made.host());
  const interfaces = hosts.map((host): Interface => segment.attach(host));
  const start = (i: number): Promise<Monitor> => monitor(hosts[i] as Host, `host${i}`, { leaseSeconds: LEASE_SECONDS });
  const nodes = await Promise.all(hosts.map((_, i) => start(i)));
  const peers = await Promise.all(hosts.map((host, i) => subscribe(host, VENDORS[i % 2] as Vendor, ...SHORT_LEASE)));
  const all = async (): Promise<void> => {
    for (const node of nodes) {
      await Promise.all(peers.map((peer) => reachesPeer(node, peer)));
      await Promise.all(nodes.filter((other) => other !== node).map((other) => reachesNode(node, other)));
    }
    // The other three nodes, and the four peers.
    for (const { node } of nodes) await node.detailsUntil((details) => details.peers === 7 && details.subscribers === 7, TIMEOUT_SECONDS);
  };
  await all();

  await nodes[3]?.node.kill();
  for (const { node } of nodes.slice(0, 3)) await node.detailsUntil(({ peers: left }) => left === 6, TIMEOUT_SECONDS);
  nodes[3] = await start(3);
  await all();
  t.pass('it came back');

  interfaces[2]?.down();
  for (const i of [0, 1, 3]) await nodes[i]?.node.detailsUntil(({ peers: left }) => left === 5, TIMEOUT_SECONDS);
  interfaces[2]?.up();
  await all();
  t.pass('so did a host that was cut off');
});

t.test('peers notice by the lease that a node without a goodbye is gone', { skip }, async (t) => {
  const made = network(t);
  const segment = made.segment();
  const [brain, others] = [made.host(), made.host()];
  segment.attach(brain);
  segment.attach(others);
  const { node } = await monitor(brain, 'brain', { leaseSeconds: LEASE_SECONDS });
  const observers = await Promise.all(VENDORS.map((vendor) => Peer.start(others, vendor, 'discovery')));
  const isOurs = ({ topic }: { readonly topic: string }): boolean => topic === 'rt/diagnostics';
  const [found] = await Promise.all(observers.map((observer) => observer.waitFor('endpoint', isOurs, TIMEOUT_SECONDS)));
  for (const observer of observers) t.same(observer.all('participant_gone'), []);
  await node.kill();
  for (const [index, observer] of observers.entries()) {
    const gone = await observer.waitFor('participant_gone', ({ guid }) => guid === found?.participant, TIMEOUT_SECONDS);
    if (VENDORS[index] === 'fastdds') t.equal(gone.how, 'lease');
  }
});

t.test('hosts that are gone do not delay the traffic to others', { skip }, async (t) => {
  const made = network(t);
  const segment = made.segment();
  const [brain, arm, ...legs] = [made.host(), made.host(), made.host(), made.host()];
  segment.attach(brain);
  segment.attach(arm);
  const cut = legs.map((leg) => segment.attach(leg));
  const stay = await Promise.all(VENDORS.map((vendor) => subscribe(arm, vendor)));
  const go = await Promise.all(legs.flatMap((leg) => VENDORS.map((vendor) => subscribe(leg, vendor, ...SHORT_LEASE))));
  const node = await GraphNode.start(brain);
  await node.detailsUntil(({ subscribers }) => subscribers === stay.length + go.length, TIMEOUT_SECONDS);
  // The kernel keeps what it cannot deliver, for seconds and until a socket is full. Here it notices sooner that it cannot.
  const neighbours = '/proc/sys/net/ipv4/neigh/eth0';
  brain.exec('sh', '-c', `echo 1000 > ${neighbours}/base_reachable_time_ms; echo 1 > ${neighbours}/delay_first_probe_time`);
  node.stream({ hz: 50, count: 0 });
  await node.waitFor('published', ({ number }) => number === 50, TIMEOUT_SECONDS);
  for (const one of cut) one.down();
  await node.detailsUntil(({ peers }) => peers === stay.length, TIMEOUT_SECONDS);
  const count = await node.endStreams();
  for (const [index, peer] of stay.entries()) {
    await reached(peer, count, TIMEOUT_SECONDS);
    const arrivals = arrivalsAt(peer);
    t.same(arrivals.map(numberOf), range(1, count), `${VENDORS[index]}: all ${count}, in order, until the others were given up`);
    t.comment(`${VENDORS[index]}: ${spread(arrivals.map(({ latency_ms }) => latency_ms))}`);
  }
});

t.test('static peers work on a network without multicast', { skip }, async (t) => {
  const made = network(t);
  const segment = made.segment({ multicast: false });
  const [brain, arm, stranger] = [made.host(), made.host(), made.host()];
  const here = segment.attach(brain);
  const there = segment.attach(arm);
  segment.attach(stranger);
  const leaseSeconds = LEASE_SECONDS;
  // Those that name the host of the node, and those that it finds because it names their host.
  const node = await monitor(brain, 'brain', { leaseSeconds, staticPeers: [there.address, 'no-such-host.invalid'] });
  const other = await monitor(arm, 'arm', { leaseSeconds });
  const lost = await monitor(stranger, 'stranger', { leaseSeconds });
  const alone = await subscribe(stranger, 'cyclone');
  const unicast = ['--no-multicast', '--peer', here.address, ...SHORT_LEASE];
  const peers = await Promise.all([
    ...VENDORS.map((vendor) => subscribe(arm, vendor, ...unicast)),
    subscribe(arm, 'fastdds', ...SHORT_LEASE),
    subscribe(arm, 'cyclone', '--peer', there.address, ...SHORT_LEASE),
  ]);
  const publishers = await Promise.all(VENDORS.map((vendor) => publish(arm, vendor, `from-${vendor}`, ...unicast)));
  const all = async (): Promise<void> => {
    await Promise.all([reachesNode(other, node), reachesNode(node, other), ...peers.map((peer) => reachesPeer(node, peer))]);
    await Promise.all(publishers.map((publisher) => reachesNode(publisher, node)));
  };
  await all();
  // This remains so, beyond every lease.
  await publishesFor(LEASE_SECONDS + 2, node);
  await all();
  await node.node.detailsUntil(({ peers: found }) => found === 1 + peers.length + publishers.length, TIMEOUT_SECONDS);
  t.equal((await lost.node.details()).peers, 1, 'a host that nobody names sees its own participants alone');
  t.same(new Set(alone.all('sample').map(({ data }) => data['node_name'])), new Set(['stranger']));
  t.match(
    node.node.all('log').find(({ level }) => level === 'warning'),
    { message: 'static peer not resolved', fields: { peer: 'no-such-host.invalid' } },
  );
});

t.test('LOCALHOST: all participants on this host are found, none on another', { skip }, async (t) => {
  const made = network(t);
  const segment = made.segment();
  const [brain, others] = [made.host(), made.host()];
  segment.attach(brain);
  segment.attach(others);
  // By itself it would sometimes look for a router.
  brain.exec('sh', '-c', 'echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6 || true');
  const sent = (): number => Number(brain.exec('cat', '/sys/class/net/eth0/statistics/tx_packets'));
  // With this lease they announce themselves every second.
  const options = { discoveryRange: 'LOCALHOST', leaseSeconds: LEASE_SECONDS } as const;
  const node = await monitor(brain, 'brain', options);
  const second = await monitor(brain, 'second', options);
  const local = ['--address', '127.0.0.1', '--peer', '127.0.0.1', '--no-multicast'];
  const peers = await Promise.all(VENDORS.map((vendor) => subscribe(brain, vendor, ...local)));
  const publishers = await Promise.all(VENDORS.map((vendor) => publish(brain, vendor, `from-${vendor}`, ...local)));
  await Promise.all([reachesNode(second, node), reachesNode(node, second)]);
  await Promise.all(publishers.flatMap((publisher) => [reachesNode(publisher, node), reachesNode(publisher, second)]));
  await Promise.all(peers.flatMap((peer) => [reachesPeer(node, peer), reachesPeer(second, peer)]));
  const before = sent();
  await publishesFor(4, node);
  t.equal(sent(), before, 'nothing leaves the host');

  const observers = await Promise.all(VENDORS.map((vendor) => Peer.start(others, vendor, 'discovery')));
  const strangers = await Promise.all(VENDORS.map((vendor) => publish(others, vendor, `stranger-${vendor}`)));
  const far = await monitor(others, 'far', { leaseSeconds: LEASE_SECONDS });
  for (const observer of observers) await observer.waitForCount('participant', 4, () => true, TIMEOUT_SECONDS);
  await Promise.all(strangers.map((publisher) => reachesNode(publisher, far)));
  await publishesFor(4, far);
  for (const one of [node, second]) {
    t.equal((await one.node.details()).peers, 5, 'the other node and four peers');
    t.same(
      one.node.all('health').filter(({ status }) => /stranger|far/.test(status.node_name)),
      [],
    );
  }
  for (const observer of observers) {
    const found = new Set(observer.all('participant').map(({ guid }) => guid));
    t.equal(found.size, 4, 'over there: the other observer, two publishers and a node');
  }
});

t.test('participants of different domains do not discover each other', { skip }, async (t) => {
  const host = network(t).host();
  const domains = [0, 5] as const;
  const nodes = await Promise.all(domains.map((domainId) => monitor(host, `domain${domainId}`, { domainId })));
  for (const [index, domainId] of domains.entries()) {
    const domain = ['--domain', String(domainId)];
    const node = nodes[index] as Monitor;
    const peers = await Promise.all(VENDORS.map((vendor) => subscribe(host, vendor, ...domain)));
    const publishers = await Promise.all(VENDORS.map((vendor) => publish(host, vendor, `${vendor}${domainId}`, ...domain)));
    await Promise.all([...peers.map((peer) => reachesPeer(node, peer)), ...publishers.map((publisher) => reachesNode(publisher, node))]);
  }
  for (const [index, monitored] of nodes.entries()) {
    await publishesFor(2, monitored);
    t.equal((await monitored.node.details()).peers, 4);
    const names = new Set(monitored.node.all('health').map(({ status }) => status.node_name));
    t.same(names, new Set(VENDORS.map((vendor) => `${vendor}${domains[index]}`)));
  }
});

t.test('five participants run on one host, and a call from there is local', { skip }, async (t) => {
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
    const monitored = nodes[index] as Monitor;
    await Promise.all([
      ...peers.map((peer) => reachesPeer(monitored, peer)),
      ...nodes.filter((other) => other !== monitored).map((other) => reachesNode(monitored, other)),
    ]);
    const service = [
      '--service',
      `/${name}/safe_shutdown`,
      '--set',
      'timeout=1',
      '--set',
      `requested_by=${name}`,
      '--match-seconds',
      '120',
      '--reply-seconds',
      '120',
    ];
    const clients = await Promise.all(VENDORS.map((vendor) => Peer.start(host, vendor, 'call', service)));
    for (const client of clients) t.equal(await client.ended, 0);
    await monitored.node.details();
    const calls = monitored.node.all('call');
    t.same(
      calls.map(({ call, caller }) => ({ by: call.requested_by, ...caller })),
      VENDORS.map(() => ({ by: name, address: '127.0.0.1', local: true })),
    );
  }
});
