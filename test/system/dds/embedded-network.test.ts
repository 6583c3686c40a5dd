import t, { type Test } from 'tap';
import { GraphNode } from '../../../testkit/dds/graph-node.ts';
import { Peer, peersUnavailable, VENDORS } from '../../../testkit/dds/peers.ts';
import { arrivalsAt, missing, numberOf, range, reached } from '../../../testkit/dds/streams.ts';
import { type Host, Network, type Segment } from '../../../testkit/network/network.ts';
import { Traffic } from './support/traffic.ts';

/**
 * Addresses change, links go down and up, interfaces come and go: the streams of the node and of its peers continue, and nothing that they
 * promise (the last ten) is lost.
 */

t.jobs = 3;
t.setTimeout(600_000);
const skip = peersUnavailable();
const TIMEOUT_SECONDS = 120;
const DEPTH = 10;

function site(t: Test): { segment: Segment; brain: Host; others: Host } {
  const network = new Network();
  t.teardown(() => network.dispose());
  return { segment: network.segment(), brain: network.host(), others: network.host() };
}

t.test('streams continue when the address of the node’s host changes', { skip }, async (t) => {
  const { segment, brain, others } = site(t);
  const own = segment.attach(brain);
  segment.attach(others);
  const traffic = await Traffic.start(brain, others, VENDORS);
  own.setAddress('10.77.1.99');
  await traffic.judge(t);
  const reported = traffic.node.all('log').filter(({ message }) => /joined the ROS 2 graph again/.test(message));
  t.equal(reported.length, 1, 'it joined again, once');
  t.equal((await traffic.node.details()).problem, null);
});

t.test('streams continue when the address of the peers’ host changes', { skip }, async (t) => {
  const { segment, brain, others } = site(t);
  segment.attach(brain);
  const theirs = segment.attach(others);
  // Cyclone DDS continues to send from the removed address, and has to be restarted.
  const traffic = await Traffic.start(brain, others, ['fastdds'], []);
  const cyclone = await Peer.start(others, 'cyclone', 'subscribe', ['--topic', '/health_status']);
  await cyclone.waitFor('sample', () => true, TIMEOUT_SECONDS);
  theirs.setAddress('10.77.1.99');
  await cyclone.kill('SIGKILL');
  const again = await Peer.start(others, 'cyclone', 'subscribe', ['--topic', '/health_status']);
  await traffic.judge(t);
  await reached(again, 100, TIMEOUT_SECONDS);
  const numbers = arrivalsAt(again).map(numberOf);
  t.same(numbers, range(numbers[0] ?? 0, 100), 'one that begins at the new address misses nothing');
});

for (const [what, whose] of [
  ['the node’s', 'brain'],
  ['the peers’', 'others'],
] as const) {
  t.test(`${what} link may be down for thirty samples`, { skip }, async (t) => {
    const { segment, ...hosts } = site(t);
    const interfaces = { brain: segment.attach(hosts.brain), others: segment.attach(hosts.others) };
    const traffic = await Traffic.start(hosts.brain, hosts.others, VENDORS);
    interfaces[whose].down();
    await traffic.publishes(30);
    interfaces[whose].up();
    await traffic.judge(t);
    t.same(
      traffic.node.all('log').filter(({ message }) => /graph again|address removed/.test(message)),
      [],
      'no reason to begin again',
    );
  });
}

t.test('of two interfaces with peers on both one vanishes, and another one comes', { skip }, async (t) => {
  const network = new Network();
  t.teardown(() => network.dispose());
  const [office, factory] = [network.segment(), network.segment()];
  const [brain, clerk, robot] = [network.host(), network.host(), network.host()];
  office.attach(brain);
  const second = factory.attach(brain);
  office.attach(clerk);
  factory.attach(robot);
  const subscribe = (host: Host): Promise<Peer>[] =>
    VENDORS.map((vendor) => Peer.start(host, vendor, 'subscribe', ['--topic', '/health_status']));
  const [clerks, robots] = await Promise.all([Promise.all(subscribe(clerk)), Promise.all(subscribe(robot))]);
  const node = await GraphNode.start(brain);
  await node.detailsUntil(({ subscribers }) => subscribers === 4, TIMEOUT_SECONDS);
  node.stream({ hz: 10, count: 0 });
  for (const peer of [...clerks, ...robots]) await reached(peer, 15, TIMEOUT_SECONDS);

  second.remove();
  const removed = await node.lastPublished();
  await node.waitFor('log', ({ message }) => /graph again/.test(message), TIMEOUT_SECONDS);
  // Longer than the history reaches back: these are lost on that interface.
  const away = await node.lastPublished();
  await node.waitFor('published', ({ number }) => number >= Math.max(away, removed) + 20, TIMEOUT_SECONDS);
  factory.attach(brain);
  const came = await node.lastPublished();
  for (const peer of robots) await reached(peer, came + 20, TIMEOUT_SECONDS);
  const last = await node.endStreams();
  for (const [index, vendor] of VENDORS.entries()) {
    const [clerkPeer, robotPeer] = [clerks[index] as Peer, robots[index] as Peer];
    await reached(clerkPeer, last, TIMEOUT_SECONDS);
    await reached(robotPeer, last, TIMEOUT_SECONDS);
    const here = arrivalsAt(clerkPeer).map(numberOf);
    t.same(missing(here, here[0] ?? 0, last), [], `${vendor}, at the interface that stayed: nothing is lost`);
    const there = arrivalsAt(robotPeer).map(numberOf);
    const gone = missing(there, there[0] ?? 0, last);
    t.same(gone, range(gone[0] ?? 0, gone.at(-1) ?? 0), `${vendor}, at the other one: one gap`);
    t.ok((gone[0] ?? 0) > 15 && (gone.at(-1) ?? last) <= last - DEPTH, `and nothing of the last ten: ${gone.length} gone`);
  }
  for (const pattern of [/interface added/, /address removed/, /graph again/]) {
    t.equal(node.all('log').filter(({ message }) => pattern.test(message)).length, 1, `the log says ${pattern}`);
  }
});
