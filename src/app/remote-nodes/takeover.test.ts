import t, { type Test } from 'tap';
import { runs } from '../../../testkit/effort.ts';
import { type Alert, nodeOfAlertId, raisedBy } from '../../core/alerts/alert.ts';
import type { KnownNode } from '../../core/alerts/node-watch.ts';
import type { RecordCursor } from '../../core/ports.ts';
import { EmbeddedTransport } from '../../ros/embedded/transport.ts';
import { ALERT } from '../../ros/interfaces.generated.ts';
import { alertFrom } from '../../ros/messages.ts';
import { graphNames } from '../../ros/names.ts';
import { type MemoryNetwork, Wire } from '../../rtps/testing/memory-network.ts';
import { participantOn, readerOf, type TestParticipant } from '../../rtps/testing/participants.ts';
import { VirtualTime } from '../../rtps/testing/virtual-time.ts';
import { decode } from '../../rtps/wire/cdr.ts';
import { Live } from '../live.ts';
import { RemoteNodes } from './remote-nodes.ts';

// Robots that vanish together with the observer: ten appliances on a network in memory, and subscribers of /alerts.

const START_MS = 1_700_000_000_000;
const LIMIT = { warning: 80, critical: 90 };
/** From a loss to its alert: a lease of 20 s, two elections 5 s apart, the grace of 2 s. */
const BOUND_SECONDS = 35;

/** What a robot keeps on its disk. */
class Disk {
  readonly nodes = new Map<string, KnownNode>();
  readonly addresses = new Map<string, string>();
  /** The changes of every alert, in order. */
  readonly alerts = new Map<string, Alert[]>();

  openAlerts(): Alert[] {
    return [...this.alerts.values()].flatMap((changes) => changes.at(-1) ?? []).filter(({ resolved }) => !resolved);
  }

  record(alert: Alert): boolean {
    const changes = this.alerts.get(alert.alert_id) ?? [];
    this.alerts.set(alert.alert_id, changes);
    if (changes.at(-1)?.resolved || changes.some(({ resolved, timestamp }) => resolved === alert.resolved && timestamp === alert.timestamp))
      return false;
    changes.push(alert);
    return true;
  }
}

/** One appliance; publishes alerts as the service does. */
class Robot {
  readonly name: string;
  readonly disk: Disk;
  readonly live = new Live();
  readonly remoteNodes: RemoteNodes;
  readonly transport: EmbeddedTransport;
  #isOffline = false;
  readonly #network: MemoryNetwork;
  readonly #time: VirtualTime;
  readonly #published = new Set<string>();
  readonly #unpublished = new Map<string, Alert>();

  constructor(name: string, network: MemoryNetwork, time: VirtualTime, disk: Disk) {
    this.name = name;
    this.disk = disk;
    this.#network = network;
    this.#time = time;
    const clocks = {
      monotonicSeconds: time.now,
      wallMilliseconds: () => START_MS + time.now() * 1000,
      bootSeconds: () => null,
    };
    this.remoteNodes = new RemoteNodes({
      localNode: name,
      rules: { graceSeconds: 2, forgetAfterHours: 24, expectedNodes: [] },
      clocks,
      log: () => undefined,
      live: this.live,
      store: {
        alertsNotStored: 0,
        recordHealth: (status, _line, timestampMs, isNewcomer): RecordCursor | null => {
          const { node_name } = status;
          const firstSeenMs = disk.nodes.get(node_name)?.firstSeenMs ?? timestampMs;
          if (!isNewcomer) disk.nodes.set(node_name, { name: node_name, firstSeenMs, lastSeenMs: timestampMs, recent: [] });
          return null;
        },
        dropNewcomer: () => undefined,
        recordAlert: async (alert) => ({ isNew: disk.record(alert), cursor: null }),
        recordRate: () => undefined,
      },
      left: { read: () => new Map(), write: () => undefined },
      addresses: {
        read: () => disk.addresses,
        write: (homes) => {
          disk.addresses.clear();
          for (const [node, address] of homes) disk.addresses.set(node, address);
        },
      },
      events: { publishHealth: () => undefined, publishAlert: () => undefined },
      isOffline: () => this.#isOffline,
      firstObserver: () => this.#firstObserver(),
      publishAlerts: (changes) => {
        for (const alert of changes) this.#publish(alert);
      },
    });
    this.transport = new EmbeddedTransport({
      discovery: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: [] },
      names: graphNames({ node_name: name, namespace: null }, []),
      listener: {
        onHealthStatus: (...received) => this.remoteNodes.onHealthStatus(...received),
        onAlert: (...received) => this.remoteNodes.onAlert(...received),
        onObserving: (...observing) => this.remoteNodes.setObserving(...observing),
        onPublisherGone: (...gone) => this.remoteNodes.onPublisherGone(...gone),
        onApplianceGone: (...gone) => this.remoteNodes.onApplianceGone(...gone),
        onSafeShutdown: null,
      },
      localNode: name,
      observe: 'auto',
      parameters: () => [],
      publishSeconds: 1,
      diagnostics: () => ({
        hostname: name,
        openAlerts: [],
        isExpected: () => true,
        thresholds: { cpu_percent: LIMIT, memory_percent: LIMIT, disk_percent: LIMIT, temperature: LIMIT },
      }),
      log: () => undefined,
      monotonicSeconds: time.now,
      wallMilliseconds: clocks.wallMilliseconds,
      network,
    });
  }

  async start(): Promise<void> {
    for (const alert of this.disk.openAlerts()) this.live.setAlert(alert);
    this.remoteNodes.start({ openAlerts: this.disk.openAlerts(), remoteNodes: [...this.disk.nodes.values()] });
    await this.transport.start();
    // As the service does after a start.
    for (const alert of this.disk.openAlerts()) this.#publish(alert);
  }

  sample(): void {
    const timestamp = new Date(START_MS + this.#time.now() * 1000).toISOString();
    const metrics = { cpu_percent: 1, memory_percent: 2, disk_percent: 3, temperature: null };
    this.transport.publishHealth({ ...metrics, status: 'OK', node_name: this.name, timestamp });
    if (this.#unpublished.size > 0 && this.#firstObserver() === this.name)
      for (const alert of this.#unpublished.values()) this.#publish(alert);
  }

  /** Cuts it off, or connects it again; `isLinkDown`: it can detect this itself. */
  cut(isCut: boolean, isLinkDown: boolean): void {
    this.#network.isFrozen = isCut;
    this.#isOffline = isCut && isLinkDown;
  }

  /** Without a farewell, as on SIGKILL. */
  kill(): Promise<void> {
    this.#network.isFrozen = true;
    return this.leave();
  }

  async leave(): Promise<void> {
    this.remoteNodes.stop();
    await this.transport.stop();
  }

  #firstObserver(): string | null {
    return this.transport.observers().find((name) => !this.live.node(name, this.#time.now()).stale) ?? null;
  }

  #publish(alert: Alert): void {
    this.live.setAlert(alert);
    this.disk.record(alert);
    const { alert_id, resolved } = alert;
    if (!this.#published.has(alert_id) && this.#firstObserver() !== this.name) {
      if (resolved) this.#unpublished.delete(alert_id);
      else this.#unpublished.set(alert_id, alert);
      return;
    }
    this.#unpublished.delete(alert_id);
    if (!resolved) this.#published.add(alert_id);
    this.transport.publishAlert(alert);
  }
}

class Fleet {
  readonly time: VirtualTime;
  readonly robots = new Map<string, Robot>();
  readonly #wire = new Wire();
  readonly #disks = new Map<string, Disk>();
  readonly #hosts = new Map<string, string>();
  /** What a subscriber of /alerts has received. */
  readonly received: Alert[] = [];
  #subscribers = 0;

  constructor(t: Test) {
    this.time = new VirtualTime(t, 1000);
    t.teardown(() => Promise.all([...this.robots.values()].map((robot) => robot.kill())));
  }

  /** A subscriber of /alerts with a depth that suffices for all robots. */
  async subscribe(received: Alert[]): Promise<TestParticipant> {
    const participant = participantOn(this.host(), this.time.now);
    participant.createReader({
      topic: 'rt/alerts',
      type: ALERT.ddsName,
      reliable: true,
      transientLocal: true,
      depth: 100,
      userData: '',
      onSample: ({ data }) => {
        const alert = alertFrom(decode(ALERT, data.payload as Buffer));
        if (alert.ok) received.push(alert.value);
      },
    });
    await participant.start();
    return participant;
  }

  async start(...names: readonly string[]): Promise<void> {
    for (const name of names) {
      const host = this.#hosts.get(name) ?? `10.0.0.${this.#hosts.size + 1}`;
      const disk = this.#disks.get(name) ?? new Disk();
      this.#hosts.set(name, host);
      this.#disks.set(name, disk);
      const robot = new Robot(name, this.#wire.host({ lan: host }), this.time, disk);
      this.robots.set(name, robot);
      await robot.start();
    }
  }

  async kill(name: string): Promise<void> {
    await this.#take(name).kill();
  }

  async leave(name: string): Promise<void> {
    await this.#take(name).leave();
  }

  #take(name: string): Robot {
    const robot = this.robots.get(name) as Robot;
    this.robots.delete(name);
    return robot;
  }

  /** A host for a participant that is not a robot. */
  host(): MemoryNetwork {
    this.#subscribers += 1;
    return this.#wire.host({ lan: `10.0.0.${this.#subscribers + 100}` });
  }

  async run(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      for (const robot of this.robots.values()) robot.sample();
      await this.time.pass(1);
    }
  }

  get observer(): Robot {
    const [observer, ...others] = [...this.robots.values()].filter(({ transport }) => transport.isObserving);
    if (!observer || others.length > 0) throw new Error(`observers: ${[observer, ...others].map((one) => one?.name)}`);
    return observer;
  }
}

/** The changes of alerts about stale nodes, without repetitions: `NODE raised` and `NODE resolved`, by alert id. */
function episodes(alerts: readonly Alert[]): Map<string, string[]> {
  const changes = new Map<string, string[]>();
  for (const alert of alerts) {
    if (raisedBy(alert, '') !== 'observer') continue;
    const list = changes.get(alert.alert_id) ?? [];
    const change = `${nodeOfAlertId(alert.alert_id)} ${alert.resolved ? 'resolved' : 'raised'}`;
    if (list.at(-1) !== change) list.push(change);
    changes.set(alert.alert_id, list);
  }
  return changes;
}

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'];

/** Every subset of `size` robots that contains the observer. */
function subsets(size: number, from: readonly string[] = NAMES.slice(1)): string[][] {
  if (size === 1) return [['a']];
  return from.flatMap((name, i) => subsets(size - 1, from.slice(i + 1)).map((rest) => [...rest, name]));
}

async function settledFleet(t: Test): Promise<Fleet> {
  const fleet = new Fleet(t);
  await fleet.start(...NAMES);
  await fleet.subscribe(fleet.received);
  await fleet.run(70);
  return fleet;
}

/** Kills robots `apartSeconds` apart; each is one alert on the topic and at the new observer, and resolved there after its return. */
async function killAndReturn(t: Test, fleet: Fleet, gone: readonly string[], apartSeconds: number): Promise<void> {
  const what = `${gone.join(', ')}, ${apartSeconds} s apart`;
  fleet.received.length = 0;
  for (const name of gone) {
    await fleet.kill(name);
    await fleet.run(apartSeconds);
  }
  await fleet.run(BOUND_SECONDS);
  const raised = [...episodes(fleet.received).values()].flat().sort();
  t.same(raised, gone.map((name) => `${name} raised`).sort(), `${what}: raised once each`);
  const open = fleet.observer.live.openAlerts().map(({ alert_id }) => alert_id);
  t.same(open.sort(), [...episodes(fleet.received).keys()].sort(), `${what}: the same at the new observer`);
  await fleet.start(...gone);
  await fleet.run(40);
  const ended = [...episodes(fleet.received).values()].map((changes) => changes.join()).sort();
  t.same(ended, gone.map((name) => `${name} raised,${name} resolved`).sort(), `${what}: resolved under the same ids`);
  const late: Alert[] = [];
  const subscriber = await fleet.subscribe(late);
  await fleet.run(5);
  subscriber.stop();
  for (const [id, changes] of episodes(late)) t.match(changes.at(-1), /resolved$/, `${what}: a late subscriber holds ${id} as open`);
  for (const { disk, name } of fleet.robots.values()) t.same(disk.openAlerts(), [], `${what}: open at ${name}`);
}

t.test('robots that vanish with the observer are reported once each, and resolved after their return', async (t) => {
  const all = [...subsets(2), ...subsets(3)];
  const count = runs(5, all.length);
  let fleet: Fleet | null = null;
  for (let i = 0; i < count; i += 1) {
    const gone = all[Math.floor((i * all.length) / count)] as string[];
    // Alerts about robots seen for less than an hour are limited, so a fleet does not last for all cases.
    if (fleet === null || i % 5 === 0) fleet = await settledFleet(t);
    await killAndReturn(t, fleet, gone, 0);
    await killAndReturn(t, fleet, i % 2 === 0 ? gone : gone.toReversed(), 5);
  }
});

t.test('what the former observer reported continues under its id, also when it returns before the robots do', async (t) => {
  const fleet = await settledFleet(t);
  const ofRobot = (name: string): [string, string[]][] => [...episodes(fleet.received)].filter(([id]) => nodeOfAlertId(id) === name);
  const open = (): string[] => fleet.observer.live.openAlerts().map(({ alert_id }) => nodeOfAlertId(alert_id));
  await fleet.kill('j');
  await fleet.run(20);
  t.match(ofRobot('j'), [[/^j\//, ['j raised']]]);
  // The next observer vanishes, too, before it has taken over.
  await fleet.kill('a');
  await fleet.run(15);
  await fleet.kill('b');
  await fleet.run(BOUND_SECONDS);
  t.same([fleet.observer.name, open().sort()], ['c', ['a', 'b', 'j']]);
  t.match(ofRobot('j'), [[/^j\//, ['j raised']]], 'not once more');
  // The new observer restarts, then the former one takes over again.
  await fleet.kill('c');
  await fleet.start('c');
  await fleet.run(20);
  t.same([fleet.observer.name, open().sort()], ['c', ['a', 'b', 'j']], 'after a restart');
  await fleet.start('a');
  await fleet.run(40);
  t.same([fleet.observer.name, open().sort()], ['a', ['b', 'j']]);
  await fleet.kill('a');
  await fleet.run(BOUND_SECONDS);
  t.same([fleet.observer.name, open().sort()], ['c', ['a', 'b', 'j']], 'it continues what it had handed over');
  await fleet.start('b', 'j', 'a');
  await fleet.run(40);
  t.same([...episodes(fleet.received).values()].map((changes) => changes.join()).sort(), [
    'a raised,a resolved',
    'a raised,a resolved',
    'b raised,b resolved',
    'j raised,j resolved',
  ]);
  for (const { disk, name } of fleet.robots.values()) t.same(disk.openAlerts(), [], name);
});

t.test('a robot that leaves in an orderly way is not reported by the next observer', async (t) => {
  const fleet = await settledFleet(t);
  await fleet.leave('j');
  await fleet.kill('a');
  await fleet.run(22);
  await fleet.leave('i');
  await fleet.run(4);
  await fleet.leave('h');
  await fleet.run(60);
  t.same([...episodes(fleet.received).values()], [['a raised']]);
});

t.test('a robot that is cut off is one alert, and reports none of the others when it returns', async (t) => {
  for (const [name, isLinkDown] of [
    ['f', true],
    ['f', false],
    ['a', true],
  ] as const) {
    const fleet = await settledFleet(t);
    const robot = fleet.robots.get(name) as Robot;
    robot.cut(true, isLinkDown);
    await fleet.run(60);
    t.same(robot.live.openAlerts(), [], `${name}: itself`);
    robot.cut(false, isLinkDown);
    await fleet.run(40);
    t.same([...episodes(fleet.received).values()], [[`${name} raised`, `${name} resolved`]], `${name}, link down: ${isLinkDown}`);
    await Promise.all([...fleet.robots.values()].map((one) => one.kill()));
  }
});

t.test('a takeover changes no participant and repeats no status', async (t) => {
  const fleet = await settledFleet(t);
  const statuses: string[] = [];
  const participants = new Set<string>();
  const subscriber = participantOn(fleet.host(), fleet.time.now, { onParticipantGone: (key) => void participants.add(key) });
  readerOf(subscriber, { onSample: ({ data, writer }) => statuses.push(`${writer.guid} ${data.sequenceNumber}`) });
  await subscriber.start();
  await fleet.run(5);
  await fleet.kill('a');
  await fleet.run(60);
  t.equal(fleet.observer.name, 'b');
  t.equal(participants.size, 1, 'that of the robot that vanished');
  t.equal(new Set(statuses).size, statuses.length);
  t.equal(statuses.length, 10 * 9 + 10 * 5 + 9 * 60, 'those of the first second are among the last ten');
});

t.test('among appliances that all observe, one that vanishes with the first is one alert, under one id at all of them', async (t) => {
  const fleet = new Fleet(t);
  await fleet.start('a', 'b', 'c', 'd');
  await fleet.subscribe(fleet.received);
  await fleet.run(70);
  const ids = (name: string): string[] => [...(fleet.robots.get(name)?.live.openAlerts() ?? [])].map(({ alert_id }) => alert_id).sort();
  await fleet.kill('d');
  await fleet.run(20);
  const [[reported = ''] = []] = [...episodes(fleet.received)];
  t.match(reported, /^d\//);
  for (const name of ['a', 'b', 'c']) t.same(ids(name), [reported], name);
  await fleet.kill('a');
  await fleet.run(BOUND_SECONDS);
  t.same([...episodes(fleet.received).values()].flat().sort(), ['a raised', 'd raised']);
  for (const name of ['b', 'c']) t.same(ids(name), [...episodes(fleet.received).keys()].sort(), name);
  await fleet.start('a', 'd');
  await fleet.run(40);
  const ended = [...episodes(fleet.received).values()].map((changes) => changes.join()).sort();
  t.same(ended, ['a raised,a resolved', 'd raised,d resolved']);
});
