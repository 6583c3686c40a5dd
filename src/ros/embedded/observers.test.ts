import t, { type Test } from 'tap';
import type { ObserveMode } from '../../core/observer.ts';
import { type MemoryNetwork, Wire } from '../../rtps/testing/memory-network.ts';
import { VirtualTime } from '../../rtps/testing/virtual-time.ts';
import { graphNames } from '../names.ts';
import { STATUS } from './testing/transport-rig.ts';
import { EmbeddedTransport } from './transport.ts';

const LIMIT = { warning: 80, critical: 90 };

interface Robot {
  readonly name: string;
  readonly transport: EmbeddedTransport;
  readonly network: MemoryNetwork;
  /** Nodes whose statuses were received since it was emptied last. */
  readonly received: Set<string>;
  /** The appliances named when it began to observe. */
  expected: readonly string[];
}

/** Appliances in memory that publish once a second. */
class Fleet {
  readonly robots: Robot[] = [];
  readonly time: VirtualTime;
  readonly #wire = new Wire();

  constructor(t: Test) {
    this.time = new VirtualTime(t, 1000);
    t.teardown(() => Promise.all(this.robots.map(({ transport }) => transport.stop())));
  }

  async add(name: string, observe: ObserveMode = 'auto'): Promise<Robot> {
    const network = this.#wire.host({ lan: `10.0.0.${this.robots.length + 1}` });
    const received = new Set<string>();
    const robot: Robot = {
      name,
      network,
      received,
      expected: [],
      transport: new EmbeddedTransport({
        discovery: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: [] },
        names: graphNames({ node_name: name, namespace: null }, []),
        listener: {
          onHealthStatus: ({ node_name }) => received.add(node_name),
          onAlert: () => undefined,
          onObserving: (_isObserving, appliances) => {
            robot.expected = appliances.map(({ name }) => name);
          },
          onSafeShutdown: async () => null,
        },
        localNode: name,
        observe,
        parameters: () => [],
        publishSeconds: 1,
        diagnostics: () => ({
          hostname: name,
          openAlerts: [],
          isExpected: () => true,
          thresholds: { cpu_percent: LIMIT, memory_percent: LIMIT, disk_percent: LIMIT, temperature: LIMIT },
        }),
        log: () => undefined,
        monotonicSeconds: this.time.now,
        wallMilliseconds: () => 1_700_000_000_000,
        network,
      }),
    };
    this.robots.push(robot);
    await robot.transport.start();
    return robot;
  }

  /** All of them publish once a second for this long. */
  async run(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      const timestamp = new Date(1_700_000_000_000 + this.time.now() * 1000).toISOString();
      for (const { name, network, transport } of this.robots)
        if (!network.isFrozen) transport.publishHealth({ ...STATUS, node_name: name, timestamp });
      await this.time.pass(1);
    }
  }

  get observing(): string[] {
    return this.robots.filter(({ network, transport }) => !network.isFrozen && transport.isObserving).map(({ name }) => name);
  }
}

t.test('four appliances observe each other', async (t) => {
  const fleet = new Fleet(t);
  for (const name of ['a', 'b', 'c', 'd']) await fleet.add(name);
  await fleet.run(40);
  t.same(fleet.observing, ['a', 'b', 'c', 'd']);
  for (const { name, received, transport } of fleet.robots) {
    t.equal(received.size, 3, name);
    t.same(transport.observers(), ['a', 'b', 'c', 'd']);
  }
});

t.test('of more appliances the first by name observes; when it vanishes the next one does, and expects it', async (t) => {
  const fleet = new Fleet(t);
  for (const name of ['f', 'e', 'd', 'c', 'b', 'a']) await fleet.add(name);
  await fleet.run(40);
  t.same(fleet.observing, ['a']);
  for (const { received } of fleet.robots) received.clear();
  await fleet.run(10);
  for (const { name, received, transport } of fleet.robots) {
    t.same([...received].sort(), name === 'a' ? ['b', 'c', 'd', 'e', 'f'] : [], name);
    t.same(transport.observers(), ['a']);
  }
  const first = fleet.robots.at(-1) as Robot;
  first.network.isFrozen = true;
  await fleet.run(90);
  t.same(fleet.observing, ['b']);
  const next = fleet.robots.at(-2) as Robot;
  t.same([...next.expected].sort(), ['a', 'c', 'd', 'e', 'f'], 'the one that vanished, too');
  next.received.clear();
  await fleet.run(10);
  t.same([...next.received].sort(), ['c', 'd', 'e', 'f']);
});

t.test('nothing is a problem in a fleet of any size except two appliances of one name, which both report', async (t) => {
  for (const size of [2, 5, 30]) {
    const fleet = new Fleet(t);
    const problems = (): string[] => fleet.robots.flatMap(({ name, transport }) => (transport.details().problem === null ? [] : [name]));
    for (let i = 0; i < size; i += 1) await fleet.add(`robot_${i}`);
    await fleet.run(20);
    t.same(problems(), [], `${size} appliances`);
    t.ok(fleet.robots.every(({ transport }) => /offers? \/safe_shutdown too/.test(transport.details().note ?? '')));
    if (size === 30) continue;
    const twin = await fleet.add(`robot_${size - 1}`);
    await fleet.run(20);
    t.same(problems(), [twin.name, twin.name], `${size} appliances and a twin`);
    await twin.transport.stop();
    fleet.robots.pop();
    await fleet.run(80);
    t.same(problems(), [], 'not after one was renamed');
  }
});

t.test(
  'an appliance that always observes relieves all others; one that leaves without a successor being needed changes nothing',
  async (t) => {
    const fleet = new Fleet(t);
    for (const name of ['a', 'b', 'c', 'd', 'e']) await fleet.add(name);
    await fleet.run(40);
    t.same(fleet.observing, ['a']);
    const teacher = await fleet.add('teacher', 'always');
    await fleet.run(40);
    t.same(fleet.observing, ['teacher']);
    teacher.received.clear();
    await fleet.run(5);
    t.equal(teacher.received.size, 5);
    await teacher.transport.stop();
    fleet.robots.pop();
    await fleet.run(40);
    t.same(fleet.observing, ['a']);
    t.notOk(fleet.robots[0]?.expected.includes('teacher'), 'it left in an orderly way');
  },
);
