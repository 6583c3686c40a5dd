import t, { type Test } from 'tap';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { HEALTH_STATUS, SAFE_SHUTDOWN } from '../../../src/ros/interfaces.generated.ts';
import { ForgedParticipant } from '../../../src/rtps/testing/forged-participant.ts';
import { encode } from '../../../src/rtps/wire/cdr.ts';
import { guidOf, type Locator } from '../../../src/rtps/wire/protocol.ts';
import { GraphNode } from '../../../testkit/dds/graph-node.ts';
import {
  announcementOf,
  disposalsOf,
  endpointDisposalsOf,
  HEALTH_WRITER,
  HostileHost,
  type Lies,
  liesOf,
  META,
  USER,
} from '../../../testkit/dds/hostile-host.ts';
import { ShutdownClient, sharedProgram } from '../../../testkit/dds/shutdown-client.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, type Interface, Network, networkUnavailable, type Segment } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';
import { statusOf } from '../../../testkit/service/remote-nodes.ts';

/** Attackers that send from the addresses of other hosts, and in the name of their participants, against whole services. */

t.jobs = 2;
t.setTimeout(900_000);
const skip = networkUnavailable();

const ROOT_USER = 0;
const MONITOR = 'monitor';
/** No alert about a metric of the machine on which the test runs; every service observes the others. */
const QUIET = { alerts: { raise_after_seconds: 3600 }, ros: { observe: 'always' } };

const pause = (seconds: number): Promise<void> => new Promise((later) => setTimeout(later, seconds * 1000));

interface Place {
  readonly network: Network;
  readonly segment: Segment;
}

function newPlace(t: Test): Place {
  const network = new Network();
  t.teardown(() => network.dispose());
  return { network, segment: network.segment() };
}

function attached({ network, segment }: Place): { readonly host: Host; readonly link: Interface; readonly address: string } {
  const host = network.host();
  const link = segment.attach(host);
  return { host, link, address: link.address };
}

function hostile(place: Place, target: string): HostileHost {
  return new HostileHost(attached(place).host, target);
}

const at = (address: string): Locator => ({ address, port: META });

// ---- Safe shutdown

/** The locators that an attacker announces: its own, and that of an allowed host. */
const ANNOUNCED: Readonly<Record<string, (own: Locator, allowed: Locator) => { meta: Locator[]; user: Locator[] }>> = {
  'for discovery, the own one first': (own, allowed) => ({ meta: [own, allowed], user: [own] }),
  'for discovery, the own one last': (own, allowed) => ({ meta: [allowed, own], user: [] }),
  'for samples': (own, allowed) => ({ meta: [own], user: [allowed, own] }),
};

t.test('an address that a participant announces is not its own: allow_from', { skip }, async (t) => {
  const place = newPlace(t);
  const [robot, friend] = [attached(place), attached(place)];
  const nobody = place.segment.address(200);
  const config = {
    ...QUIET,
    safe_shutdown: { action: 'dry-run', max_requests_per_minute: 600, allow_from: [friend.address, nobody] },
  };
  const service = await HostService.start(robot.host, temporaryFolder(t), { config });
  const client = await ShutdownClient.start(friend.host, ROOT_USER, await sharedProgram(t), '/safe_shutdown', robot.address);
  const accepts = async (requested_by: string): Promise<void> => {
    t.match(await client.call({ requested_by }), { success: true }, `the allowed host, ${requested_by}`);
    await service.untilGet<StatusDocument>('/status', ({ shutdown }) => shutdown.state === 'completed');
  };
  await accepts('before');

  let number = 0;
  for (const allowed of [friend.address, nobody]) {
    for (const [how, locators] of Object.entries(ANNOUNCED)) {
      number += 1;
      const attacker = hostile(place, robot.address);
      const forged = new ForgedParticipant(number, at(attacker.address));
      const requested_by = `attack ${number}`;
      const before = await service.get<StatusDocument>('/status');
      attacker.answerAs(forged);
      const announcement = announcementOf(forged.prefix, { ...locators(at(attacker.address), at(allowed)), name: requested_by });
      attacker.send(announcement);
      // Endpoints follow the challenge, and only then.
      await service.until(() => attacker.received.some((datagram) => datagram.includes('HealthStatus_')), 60);
      attacker.send(forged.endpoint(true, 1, { topic: 'rq/safe_shutdownRequest', type: SAFE_SHUTDOWN.request.ddsName }));
      const body = encode(SAFE_SHUTDOWN.request, { reason: 'EMERGENCY', requested_by, timeout: 5 });
      const request = (by: string): Buffer => {
        const header = Buffer.alloc(16, 1);
        const own = by === requested_by ? body : encode(SAFE_SHUTDOWN.request, { reason: 'EMERGENCY', requested_by: by, timeout: 5 });
        return Buffer.concat([own.subarray(0, 4), header, own.subarray(4)]);
      };
      for (let round = 0; round < 3; round += 1) {
        for (const port of [USER, META]) attacker.send(forged.data(0x103, request(requested_by)), port, allowed);
        attacker.send(announcement, META, allowed);
      }
      // What it sends from its own address afterwards is read, and refused.
      await service.until(async () => {
        attacker.send(forged.data(0x103, request(`own ${number}`)), USER);
        const { shutdown } = await service.get<StatusDocument>('/status');
        return shutdown.requests.some((one) => one.requested_by === `own ${number}`);
      }, 60);
      const { ros, shutdown } = await service.get<StatusDocument>('/status');
      const [own] = shutdown.requests.filter((one) => one.requested_by === `own ${number}`);
      t.match(own, { outcome: 'refused', address: attacker.address });
      const accepted = shutdown.accepted - before.shutdown.accepted;
      t.equal(accepted, 0, `${allowed === nobody ? 'nobody' : 'a host'}'s address announced ${how}: accepted ${accepted} times`);
      const forgedRequests = shutdown.requests.filter((one) => one.requested_by === requested_by);
      t.same(
        forgedRequests.filter(({ outcome }) => outcome !== 'refused'),
        [],
      );
      t.ok(forgedRequests.length > 0 || ros.refused > before.ros.refused, 'recorded as refused, or counted');
      if (accepted > 0) await service.untilGet<StatusDocument>('/status', (status) => status.shutdown.state === 'completed');
      attacker.end();
    }
  }
  await accepts('afterwards');
});

t.test('an address that a participant announces is not its own: static peers', { skip }, async (t) => {
  const place = newPlace(t);
  const [robot, friend] = [attached(place), attached(place)];
  const nobody = place.segment.address(200);
  const ros = { ...QUIET.ros, discovery_range: 'LOCALHOST', static_peers: [friend.address, nobody] };
  const service = await HostService.start(robot.host, temporaryFolder(t), { config: { ...QUIET, ros } });
  const node = await GraphNode.start(friend.host, { localNode: 'friend' });
  node.stream({ hz: 1, count: 0, nodeName: 'friend' });
  await service.untilGet<StatusDocument>('/status', ({ nodes }) => nodes.some(({ node_name }) => node_name === 'friend'));
  const strangers: HostileHost[] = [];
  for (const source of [friend.address, nobody]) {
    for (const locators of Object.values(ANNOUNCED)) {
      // Each at an address of its own: few datagrams are sent to one that has not been proved.
      const attacker = hostile(place, robot.address);
      strangers.push(attacker);
      const stranger = new ForgedParticipant(strangers.length, at(attacker.address));
      attacker.answerAs(stranger, source);
      const joining = [
        announcementOf(stranger.prefix, locators(at(attacker.address), at(source))),
        stranger.endpoint(true, 1),
        stranger.endpoint(false, 2),
        stranger.data(0x103, encode(HEALTH_STATUS, { ...statusOf(`stranger_${strangers.length}`, Date.now()) })),
      ];
      // Again and again: a challenge may be on its way.
      for (let round = 0; round < 20; round += 1) {
        for (const datagram of joining) for (const port of [META, USER]) attacker.send(datagram, port, source);
        await pause(0.1);
      }
    }
  }
  // What the friend publishes now arrives after all of it.
  const last = await node.lastPublished();
  await service.untilGet<HealthStatus>('/health?node=friend', ({ cpu_percent }) => (cpu_percent ?? 0) > last);
  const { nodes } = await service.get<StatusDocument>('/status');
  t.same(nodes.map(({ node_name }) => node_name).toSorted(), ['friend', 'health_monitor']);
  t.same(
    strangers.map(({ received }) => received.length),
    strangers.map(() => 0),
    'no datagram has reached a stranger',
  );
});

// ---- A robot beside a rival, and in whose name is forged

/** A monitor and robots, all of them whole services. */
class Scene {
  readonly place: Place;
  readonly folder: string;
  readonly site: ReturnType<typeof attached>;
  monitor!: HostService;

  constructor(t: Test) {
    this.place = newPlace(t);
    this.site = attached(this.place);
    this.folder = temporaryFolder(t);
  }

  async startMonitor(): Promise<void> {
    this.monitor = await HostService.start(this.site.host, this.folder, { config: { ...QUIET, node_name: MONITOR } });
  }

  async robot(t: Test, name: string): Promise<Robot> {
    const site = attached(this.place);
    return { name, ...site, service: await HostService.start(site.host, temporaryFolder(t), { config: { ...QUIET, node_name: name } }) };
  }

  /** Resolves when the monitor shows a status of the robot from after `sinceMs`, with the seconds until then. */
  async seen({ name }: Robot, sinceMs: number): Promise<number> {
    type Found = Partial<HealthStatus>;
    await this.monitor.untilGet<Found>(`/health?node=${name}`, ({ timestamp }) => Date.parse(timestamp ?? '') > sinceMs, 60);
    return (Date.now() - sinceMs) / 1000;
  }

  async staleAlerts({ name }: Robot): Promise<readonly Alert[]> {
    const { data } = await this.monitor.get<{ data: Alert[] }>(`/alerts?node=${name}&metric=health_status`);
    return data;
  }

  /** The stamps of statuses that the robot has stored since `from` and the monitor has not, and the number of those that it has. */
  async compare(robot: Robot, from: string): Promise<{ readonly lost: readonly string[]; readonly received: number }> {
    type History = { readonly data: readonly HealthStatus[] };
    const range = `from=${from}&limit=10000`;
    const own = await robot.service.get<History>(`/health/history?${range}`);
    const newest = own.data.at(-1)?.timestamp as string;
    const stamps = ({ data }: History): string[] => data.map(({ timestamp }) => timestamp);
    const there = await this.monitor
      .untilGet<History>(`/health/history?node=${robot.name}&${range}`, (body) => stamps(body).includes(newest), 15)
      .catch(() => this.monitor.get<History>(`/health/history?node=${robot.name}&${range}`));
    const known = new Set(stamps(there));
    return { lost: stamps(own).filter((stamp) => !known.has(stamp)), received: known.size };
  }
}

interface Robot extends ReturnType<typeof attached> {
  readonly name: string;
  readonly service: HostService;
}

const CLAIM_SECONDS = 45;
/** The promise: a robot is seen within this time, in addition to what it takes without an attack. */
const SEEN_SECONDS = 5;

for (const isAnswering of [false, true]) {
  t.test(`a rival claims the GUID of a robot${isAnswering ? ' and answers challenges' : ''}`, { skip }, async (t) => {
    const scene = new Scene(t);
    const rival = hostile(scene.place, scene.site.address);
    const robot = await scene.robot(t, 'robot');
    let startMs = Date.now();
    await scene.startMonitor();
    const usualSeconds = await scene.seen(robot, startMs);
    const forged = ForgedParticipant.named(await rival.prefixAt(robot.address), at(rival.address));
    if (isAnswering) rival.answerAs(forged);
    const claim = (): void => {
      rival.send(forged.announcement('rival'));
      if (!isAnswering) return;
      rival.send(forged.endpoint(true, HEALTH_WRITER >> 8));
      rival.send(forged.endpoint(false, 1));
      rival.send(forged.heartbeat(HEALTH_WRITER, 1, 50), USER);
    };
    // More often than the robot announces itself, so that the monitor receives the rival first.
    const claiming = setInterval(claim, 5);
    t.teardown(() => clearInterval(claiming));

    await t.test('while the robot is known', async (t) => {
      const from = new Date().toISOString();
      await pause(CLAIM_SECONDS);
      const { lost, received } = await scene.compare(robot, from);
      t.same(lost, [], `${received} statuses received`);
      t.same(await scene.staleAlerts(robot), []);
    });
    await t.test('before the monitor starts', async (t) => {
      await scene.monitor.end();
      // The robot is stopped meanwhile, so that the rival comes first.
      process.kill(robot.service.pid, 'SIGSTOP');
      await scene.startMonitor();
      await pause(CLAIM_SECONDS);
      process.kill(robot.service.pid, 'SIGCONT');
      startMs = Date.now();
      const seconds = await scene.seen(robot, startMs);
      t.ok(seconds < usualSeconds + SEEN_SECONDS, `seen after ${seconds.toFixed(1)} s, without a rival after ${usualSeconds.toFixed(1)} s`);
      const ids = async (): Promise<string[]> => (await scene.staleAlerts(robot)).map(({ alert_id }) => alert_id);
      const alerts = await ids();
      const from = new Date().toISOString();
      await pause(CLAIM_SECONDS);
      const { lost, received } = await scene.compare(robot, from);
      t.same(lost, [], `${received} statuses received`);
      t.same(await ids(), alerts, 'no alert after it was seen');
    });
    clearInterval(claiming);
  });
}

/** How a robot is lost, and when its disposal is forged; null: never. */
const LOSSES = {
  lost_untouched: { disposalAfterSeconds: null, isUnplugged: false },
  killed_before: { disposalAfterSeconds: 0.1, isUnplugged: false },
  killed_after: { disposalAfterSeconds: -0.02, isUnplugged: false },
  killed_2s_before: { disposalAfterSeconds: 2, isUnplugged: false },
  unplugged_before: { disposalAfterSeconds: 0.1, isUnplugged: true },
  unplugged_after: { disposalAfterSeconds: -0.02, isUnplugged: true },
  unplugged_2s_before: { disposalAfterSeconds: 2, isUnplugged: true },
} as const;

const ROUNDS = 5;
const LIES = Object.keys(liesOf('0'.repeat(24), at('10.0.0.1'), at('10.0.0.2')));

t.test('datagrams from the address of a robot', { skip }, async (t) => {
  const scene = new Scene(t);
  await scene.startMonitor();
  const attacker = hostile(scene.place, scene.site.address);
  const startMs = Date.now();
  // One for each kind of datagram, and one for all of them.
  const kinds = [...LIES, 'all of it'];
  const robots = await Promise.all(kinds.map((_, i) => scene.robot(t, `robot${i}`)));
  const stopped = await scene.robot(t, 'stopped');
  for (const robot of [...robots, stopped]) await scene.seen(robot, startMs);

  await t.test('statuses keep arriving, without an alert', async (t) => {
    const lies = await Promise.all(
      robots.map(async ({ address }) => liesOf(await attacker.prefixAt(address), at(attacker.address), at(address))),
    );
    const from = new Date().toISOString();
    const { refused } = (await scene.monitor.get<StatusDocument>('/status')).ros;
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [i, { address }] of robots.entries()) {
        const all = lies[i] as Lies;
        const kind = kinds[i] as string;
        for (const datagram of all[kind] ?? Object.values(all).flat())
          for (const port of [META, USER]) attacker.send(datagram, port, address);
      }
      await pause(2);
    }
    // Longer than a robot may be without a status.
    await pause(10);
    const { nodes, ros } = await scene.monitor.get<StatusDocument>('/status');
    t.comment(`${attacker.sent} datagrams sent, ${ros.refused - refused} of them refused`);
    for (const [i, robot] of robots.entries()) {
      const kind = kinds[i] as string;
      const { lost, received } = await scene.compare(robot, from);
      t.same(lost, [], `${kind}: ${received} statuses received, ${lost.length} lost`);
      t.same(await scene.staleAlerts(robot), [], `${kind}: no alert`);
      t.match(
        nodes.find(({ node_name }) => node_name === robot.name),
        { left: null, stale: false },
        kind,
      );
      const { data } = await robot.service.get<{ data: Alert[] }>('/alerts?metric=health_status');
      t.same(data, [], `${kind}: nor does the robot lose the monitor`);
    }
  });

  await t.test('a robot that stops has left, without an alert', async () => {
    await stopped.service.end();
    await scene.monitor.untilGet<StatusDocument>('/status', ({ nodes }) =>
      nodes.some(({ left, node_name }) => node_name === 'stopped' && left !== null),
    );
  });

  await t.test('a robot that is lost is an ERROR, whatever is forged', async (t) => {
    const doomed = await Promise.all(Object.keys(LOSSES).map((name) => scene.robot(t, name)));
    const readyMs = Date.now();
    for (const robot of doomed) await scene.seen(robot, readyMs);
    // Several statuses, so that their period is known.
    for (const { name } of doomed)
      await scene.monitor.untilGet<{ count: number }>(`/health/history?node=${name}`, ({ count }) => count >= 10);
    await Promise.all(
      doomed.map(async ({ address, link, name, service }) => {
        const { disposalAfterSeconds, isUnplugged } = LOSSES[name as keyof typeof LOSSES];
        const own = await attacker.prefixAt(address);
        const forge = (): void => {
          const end = [...disposalsOf(own), ...endpointDisposalsOf(guidOf(own, HEALTH_WRITER), true)];
          for (const datagram of end) for (const port of [META, USER]) attacker.send(datagram, port, address);
        };
        if (disposalAfterSeconds !== null && disposalAfterSeconds < 0) {
          forge();
          await pause(-disposalAfterSeconds);
        }
        if (isUnplugged) link.down();
        else await service.end('SIGKILL');
        if (disposalAfterSeconds !== null && disposalAfterSeconds > 0) {
          await pause(disposalAfterSeconds);
          forge();
        }
      }),
    );
    const alerts = new Map<string, Alert | undefined>();
    await scene.monitor
      .until(async () => {
        for (const robot of doomed) alerts.set(robot.name, (await scene.staleAlerts(robot))[0]);
        return [...alerts.values()].every((alert) => alert !== undefined);
      }, 30)
      .catch(() => undefined);
    const usual = alerts.get('lost_untouched')?.value ?? 0;
    t.ok(usual > 0, `without a forgery after ${usual} s`);
    for (const [name, alert] of alerts) {
      t.match(alert, { severity: 'ERROR', resolved: false }, name);
      t.ok((alert?.value ?? Number.POSITIVE_INFINITY) < usual + 2, `${name}: after ${alert?.value} s`);
    }
    t.same(await scene.staleAlerts(stopped), [], 'the one that was stopped still has left');
    for (const { isUnplugged, link, service } of doomed.map((robot) => ({ ...robot, ...LOSSES[robot.name as keyof typeof LOSSES] })))
      if (isUnplugged) {
        link.up();
        await service.end();
      }
  });
});
