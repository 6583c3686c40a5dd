import t, { type Test } from 'tap';
import { GraphNode } from '../../../testkit/dds/graph-node.ts';
import { Peer, peersUnavailable, VENDORS } from '../../../testkit/dds/peers.ts';
import { arrivalsAt, type Counted, numberOf, outageOf, publishedUntil, reached, wait } from '../../../testkit/dds/streams.ts';
import { type Host, Network, type Segment } from '../../../testkit/network/network.ts';
import { BACK_SECONDS, Traffic } from './support/traffic.ts';

/**
 * Addresses change, links go down and up, interfaces come and go: the streams of the node and of its peers go on, and of what they
 * promise (the last ten) nothing is lost.
 */

t.jobs = 6;
t.setTimeout(240_000);
const skip = peersUnavailable();
const PATIENCE_SECONDS = 60;

function site(t: Test): { segment: Segment; brain: Host; others: Host } {
  const network = new Network();
  t.teardown(() => network.dispose());
  return { segment: network.segment(), brain: network.host(), others: network.host() };
}

t.test('the address of the node’s host changes', { skip }, async (t) => {
  const { segment, brain, others } = site(t);
  const own = segment.attach(brain);
  segment.attach(others);
  const traffic = await Traffic.start(brain, others, VENDORS);
  const changed = Date.now();
  own.setAddress('10.77.1.99');
  await traffic.judge(t, changed, changed, 12);
  const told = traffic.node.all('log').filter(({ message }) => /joined the ROS 2 graph anew/.test(message));
  t.equal(told.length, 1, 'it joined anew, once');
  t.equal((await traffic.node.details()).problem, null);
});

t.test('the address of the peers’ host changes', { skip }, async (t) => {
  const { segment, brain, others } = site(t);
  segment.attach(brain);
  const theirs = segment.attach(others);
  // Cyclone DDS itself goes on sending from the address that is gone, and has to be started anew.
  const traffic = await Traffic.start(brain, others, ['fastdds'], []);
  const cyclone = await Peer.start(others, 'cyclone', 'subscribe', ['--topic', '/health_status']);
  await cyclone.waitFor('sample', () => true, PATIENCE_SECONDS);
  const changed = Date.now();
  theirs.setAddress('10.77.1.99');
  await cyclone.kill('SIGKILL');
  const again = await Peer.start(others, 'cyclone', 'subscribe', ['--topic', '/health_status']);
  await traffic.judge(t, changed, changed, 20);
  const numbers = (await again.waitForCount('sample', 100, () => true, PATIENCE_SECONDS)).map(numberOf);
  t.same(
    numbers,
    Array.from({ length: 100 }, (_, i) => (numbers[0] ?? 0) + i),
    'one that begins at the new address misses nothing',
  );
});

for (const [what, whose] of [
  ['the node’s', 'brain'],
  ['the peers’', 'others'],
] as const) {
  t.test(`${what} link is down for 3 s`, { skip }, async (t) => {
    const { segment, ...hosts } = site(t);
    const interfaces = { brain: segment.attach(hosts.brain), others: segment.attach(hosts.others) };
    const traffic = await Traffic.start(hosts.brain, hosts.others, VENDORS);
    const down = Date.now();
    interfaces[whose].down();
    await wait(3);
    interfaces[whose].up();
    await traffic.judge(t, down, Date.now(), 10);
    t.same(
      traffic.node.all('log').filter(({ message }) => /anew|is gone/.test(message)),
      [],
      'no reason to begin anew',
    );
  });
}

t.test('two interfaces at once, with peers on both; one vanishes, and another one comes', { skip }, async (t) => {
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
  await node.detailsUntil(({ subscribers }) => subscribers === 4, PATIENCE_SECONDS);
  node.stream({ hz: 10, count: 0 });
  await wait(4);

  const removed = Date.now();
  second.remove();
  await wait(12);
  const came = Date.now();
  factory.attach(brain);
  for (const peer of robots) await reached(peer, publishedUntil(node, came) + 20, PATIENCE_SECONDS);
  const last = publishedUntil(node, Date.now());
  const published = node.all('published').map(({ number, wall_ms: ms }): Counted => ({ number, ms }));
  for (const [index, vendor] of VENDORS.entries()) {
    await reached(clerks[index] as Peer, last, PATIENCE_SECONDS);
    await reached(robots[index] as Peer, last, PATIENCE_SECONDS);
    const counted = (peer: Peer | undefined): Counted[] =>
      arrivalsAt(peer as Peer).map((arrival) => ({ number: numberOf(arrival), ms: arrival.wall_ms }));
    const here = outageOf(published, counted(clerks[index]), removed, last);
    t.same(here.gone, [], `${vendor}, at the interface that stayed: nothing is lost`);
    const there = outageOf(published, counted(robots[index]), removed, last);
    t.ok(there.isWithinPromise, `${vendor}, at the other one: nothing of the last ten`);
    t.ok(there.gone.length > 0 && there.backSeconds < 12 + BACK_SECONDS, `it was away for ${there.backSeconds.toFixed(1)} s`);
  }
  for (const pattern of [/interface came/, /address is gone/, /anew/]) {
    t.equal(node.all('log').filter(({ message }) => pattern.test(message)).length, 1, `the log says ${pattern}`);
  }
});
