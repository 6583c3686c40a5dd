import t from 'tap';
import { eventParser } from '../../../src/client/event-stream.ts';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { SAFE_SHUTDOWN } from '../../../src/ros/interfaces.generated.ts';
import { ForgedParticipant } from '../../../src/rtps/testing/forged-participant.ts';
import { randomFrom } from '../../../src/rtps/testing/random.ts';
import { recorded } from '../../../src/rtps/testing/recorded.ts';
import { entityOf, type GuidPrefix } from '../../../src/rtps/wire/protocol.ts';
import { HostileHost, liesOf, META, USER } from '../../../testkit/dds/hostile-host.ts';
import { Peer, peersUnavailable, type Vendor } from '../../../testkit/dds/peers.ts';
import { spread } from '../../../testkit/dds/streams.ts';
import { SEED } from '../../../testkit/effort.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { ProcessMeter } from '../../../testkit/machine/process-meter.ts';
import { type Host, type Interface, Network } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';
import { mutated, redirected, type Target } from '../../fuzz/rtps/mutations.ts';

/**
 * Two robots of each DDS vendor and a monitor, while attackers of every kind send to the monitor: every status arrives once, a robot that
 * restarts is seen again soon, and there is no alert about a robot. EDGE_HEALTH_FUZZ_SECONDS=3600 makes it an hour, EDGE_HEALTH_SEED tries
 * other datagrams.
 */
const SECONDS = Number(process.env['EDGE_HEALTH_FUZZ_SECONDS'] ?? 40);
const REST_SECONDS = 5;
const RESTART_PERIOD_SECONDS = 12;
/** The promise: a robot that has started is seen within this time. */
const SEEN_SECONDS = 5;
const ROUND_MS = 10;
const MAX_PENDING_OCTETS = 256 * 1024;

t.setTimeout(300_000 + 2000 * SECONDS);

const random = randomFrom(SEED);
const below = (end: number): number => Math.floor(random() * end);
const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T;
const pause = (seconds: number): Promise<void> => new Promise((later) => setTimeout(later, seconds * 1000));

/** What a client of /events on the monitor's host receives; it reconnects and resumes as a browser does. */
class Events {
  /** Milliseconds of the arrivals of each status, by robot, run and number. */
  readonly arrivals = new Map<string, number[]>();
  connections = 0;
  readonly #host: Host;
  #lastId = '';

  constructor(host: Host) {
    this.#host = host;
    this.#connect();
  }

  #connect(): void {
    this.connections += 1;
    const headers = JSON.stringify(this.#lastId === '' ? {} : { 'Last-Event-ID': this.#lastId });
    const code = `require('http').get('http://127.0.0.1:5000/events?events=health', { headers: ${headers} }, (r) => r.pipe(process.stdout))`;
    const child = this.#host.spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'ignore'] });
    const parse = eventParser(({ data, event, id }) => {
      this.#lastId = id ?? this.#lastId;
      if (event !== 'health') return;
      const { cpu_percent, node_name, timestamp } = JSON.parse(data) as HealthStatus;
      const key = keyOf(node_name, timestamp, cpu_percent ?? 0);
      this.arrivals.set(key, [...(this.arrivals.get(key) ?? []), Date.now()]);
    });
    child.stdout?.setEncoding('utf8').on('data', parse);
    child.once('close', () => setTimeout(() => this.#connect(), 500).unref());
  }
}

const keyOf = (name: string, timestamp: string, number: number): string => `${name} ${timestamp} ${number}`;

/** One run of a robot: its statuses have the time of its start, and are numbered. */
interface Run {
  readonly timestamp: string;
  readonly startMs: number;
  readonly peer: Peer;
  /** How long its process took to end before. */
  readonly downMs: number;
  /** When it was killed without a goodbye. */
  killedMs: number | null;
}

class Robot {
  readonly name: string;
  readonly link: Interface;
  readonly runs: Run[] = [];
  readonly #vendor: Vendor;
  readonly #host: Host;

  constructor(name: string, vendor: Vendor, host: Host, link: Interface) {
    this.name = name;
    this.link = link;
    this.#vendor = vendor;
    this.#host = host;
  }

  async start(downMs = 0): Promise<void> {
    const startMs = Date.now();
    const timestamp = new Date(startMs).toISOString();
    const fields = [`node_name=${this.name}`, 'status=OK', `timestamp=${timestamp}`].flatMap((field) => ['--set', field]);
    const options = ['--topic', '/health_status', '--hz', '1', '--sequence', 'cpu_percent', ...fields];
    const peer = await Peer.start(this.#host, this.#vendor, 'publish', options);
    this.runs.push({ timestamp, startMs, peer, downMs, killedMs: null });
  }

  async restart(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const run = this.runs.at(-1) as Run;
    if (signal === 'SIGKILL') run.killedMs = Date.now();
    const endMs = Date.now();
    await run.peer.kill(signal);
    await this.start(Date.now() - endMs);
  }
}

/** A status that was written, and the delay of its arrivals in milliseconds. */
interface Fate {
  readonly writtenMs: number;
  readonly key: string;
  readonly delaysMs: readonly number[];
}

/** A status written just before its robot was killed may never have been sent again after a loss. */
const KILL_TOLERANCE_MS = 1000;

function fatesOf(robots: readonly Robot[], { arrivals }: Events): Fate[] {
  return robots.flatMap(({ name, runs }) =>
    runs.flatMap(({ killedMs, peer, timestamp }) =>
      peer.all('written').flatMap(({ number, wall_ms }): Fate[] => {
        const key = keyOf(name, timestamp, number);
        const delaysMs = (arrivals.get(key) ?? []).map((ms) => ms - wall_ms);
        const isKilled = killedMs !== null && wall_ms > killedMs - KILL_TOLERANCE_MS;
        return delaysMs.length === 0 && isKilled ? [] : [{ writtenMs: wall_ms, key, delaysMs }];
      }),
    ),
  );
}

/** Sends one datagram or several; called at its rate. */
type Turn = () => void;

const corpus = recorded().map(({ datagram }) => datagram);
const KEYS = Array.from({ length: 24 }, (_, i) => i + 1);
const entities = (kinds: readonly number[]): number[] => KEYS.flatMap((key) => kinds.map((kind) => (key << 8) | kind));

/** A mutated datagram in the name of a participant. */
function fuzz(target: Target, prefix: GuidPrefix): Buffer {
  const original = random() < 0.9 ? redirected(pick(corpus), target, random) : Buffer.from(pick(corpus));
  const datagram = random() < 0.2 ? original : mutated(original, pick(corpus), random);
  if (datagram.length >= 20 && random() < 0.9) datagram.write(prefix, 8, 'hex');
  return datagram;
}

/** The datagrams with which a forged participant joins as a robot does. */
function joining(forged: ForgedParticipant): Buffer[] {
  const { request, response } = SAFE_SHUTDOWN;
  return [
    forged.announcement('rival'),
    forged.endpoint(true, 1),
    forged.endpoint(false, 2),
    forged.endpoint(true, 3, { topic: 'rq/safe_shutdownRequest', type: request.ddsName }),
    forged.endpoint(false, 4, { topic: 'rr/safe_shutdownReply', type: response.ddsName }),
  ];
}

/** By name: datagrams per second, and what each attacker does. */
function attacks(target: Target, robots: readonly Robot[], hostile: (name: string) => HostileHost) {
  const at = ({ address }: { address: string }) => ({ address, port: META });
  const known = (attacker: HostileHost): [Robot, GuidPrefix][] =>
    robots.flatMap((robot): [Robot, GuidPrefix][] => {
      const prefix = attacker.announced.get(robot.link.address);
      return prefix === undefined ? [] : [[robot, prefix]];
    });
  const ports = [META, USER] as const;
  const all: Record<string, readonly [hertz: number, attacker: HostileHost, turn: Turn]> = {};
  const add = (name: string, hertz: number, make: (attacker: HostileHost) => Turn): void => {
    const attacker = hostile(name);
    all[name] = [hertz, attacker, make(attacker)];
  };

  add('a proven participant', 200, (attacker) => {
    const forged = new ForgedParticipant(1 + below(2 ** 31), at(attacker));
    const first = joining(forged);
    attacker.answerAs(forged);
    let turn = 0;
    return () => {
      turn += 1;
      if (turn % 200 === 1) for (const datagram of first) attacker.send(datagram);
      else attacker.send(fuzz(target, forged.prefix), pick(ports));
    };
  });
  add('an unproven participant', 200, (attacker) => {
    const forged = new ForgedParticipant(1 + below(2 ** 31), at(attacker));
    return () => attacker.send(random() < 0.05 ? forged.announcement() : fuzz(target, forged.prefix), pick(ports));
  });
  add("a rival with the robots' GUIDs", 200, (attacker) => {
    const claims = new Map<GuidPrefix, readonly Buffer[]>();
    return () => {
      const found = known(attacker);
      if (found.length === 0) return;
      const [, prefix] = pick(found);
      let claim = claims.get(prefix);
      if (!claim) {
        const forged = ForgedParticipant.named(prefix, at(attacker));
        attacker.answerAs(forged);
        claim = joining(forged);
        claims.set(prefix, claim);
      }
      attacker.send(random() < 0.3 ? pick(claim) : fuzz(target, prefix), pick(ports));
    };
  });
  add("a sender from the robots' addresses", 100, (attacker) => () => {
    const found = known(attacker);
    if (found.length === 0) return;
    const [{ link, runs }, prefix] = pick(found);
    const [writer] = (runs.at(-1) as Run).peer.all('writer');
    const lies = liesOf(prefix, at(attacker), at(link), writer ? [entityOf(writer.guid)] : []);
    attacker.send(pick(pick(Object.values(lies).filter(({ length }) => length > 0))), pick(ports), link.address);
  });
  const stranger = (attacker: HostileHost, address: string, source: string | null): void => {
    const forged = new ForgedParticipant(below(2 ** 48), { address, port: META });
    attacker.send(random() < 0.75 ? forged.announcement() : forged.heartbeat(pick(target.writers), 1, 1 + below(99)), pick(ports), source);
  };
  add('a flood of GUIDs', 400, (attacker) => () => stranger(attacker, attacker.address, null));
  const bursts = (name: string, one: (attacker: HostileHost) => void): void =>
    add(name, 100, (attacker) => {
      let turn = 0;
      // Two seconds of 2000 each, and then forty seconds of nothing.
      return () => {
        turn += 1;
        if (turn % 4200 < 200) for (let i = 0; i < 20; i += 1) one(attacker);
      };
    });
  bursts('bursts of GUIDs', (attacker) => stranger(attacker, attacker.address, null));
  bursts('bursts from forged addresses', (attacker) => {
    const address = `10.77.1.${100 + below(150)}`;
    stranger(attacker, address, address);
  });
  return all;
}

t.test(`${SECONDS} s of attacks, seed ${SEED}`, { skip: peersUnavailable() }, async (t) => {
  const network = new Network();
  t.teardown(() => network.dispose());
  const segment = network.segment();
  const attach = (): [Host, Interface] => {
    const host = network.host();
    return [host, segment.attach(host)];
  };
  const [site, { address }] = attach();
  const config = { node_name: 'monitor', alerts: { raise_after_seconds: 3600 }, ros: { observe: 'always' } };
  const service = await HostService.start(site, temporaryFolder(t), { config });
  const events = new Events(site);
  const robots = (['cyclone', 'fastdds'] as const).flatMap((vendor) =>
    [1, 2].map((number) => new Robot(`robot-${vendor[0]}${number}`, vendor, ...attach())),
  );
  for (const robot of robots) await robot.start();
  const hostile = (): HostileHost => {
    const [host] = attach();
    return new HostileHost(host, address);
  };
  const listener = hostile();
  const prefix = await listener.prefixAt(address);
  const running = attacks({ prefix, writers: entities([2, 3]), readers: entities([4, 7]) }, robots, hostile);
  await service.untilGet<StatusDocument>('/status', ({ nodes }) =>
    robots.every(({ name }) => nodes.some(({ node_name }) => node_name === name)),
  );

  t.comment('the robots are known');
  const meter = new ProcessMeter(service.pid);
  const megabytes: number[] = [];
  /** CPU time in percent of a core while the function runs. */
  const measured = async (run: () => Promise<void>): Promise<number> => {
    const [cpu, ms] = [meter.cpuSeconds(), performance.now()];
    await run();
    return (100_000 * (meter.cpuSeconds() - cpu)) / (performance.now() - ms);
  };
  const restMs = Date.now();
  const restCpu = await measured(() => pause(REST_SECONDS));
  const restMegabytes = meter.memory().anonymousMegabytes;
  const attackMs = Date.now();

  let isOver = false;
  const restarts = async (): Promise<void> => {
    for (let turn = 0; !isOver; turn += 1) {
      for (let waited = 0; waited < RESTART_PERIOD_SECONDS && !isOver; waited += 1) await pause(1);
      if (!isOver) await robots[turn % robots.length]?.restart(turn % 8 < 4 ? 'SIGTERM' : 'SIGKILL');
    }
  };
  const restarting = restarts();
  restarting.catch(() => undefined);
  t.teardown(() => {
    isOver = true;
  });
  const begun = performance.now();
  const attackCpu = await measured(async () => {
    const done = new Map<string, number>();
    let reported = 0;
    for (let seconds = 0; seconds < SECONDS; seconds = (performance.now() - begun) / 1000) {
      for (const [name, [hertz, attacker, turn]] of Object.entries(running)) {
        // After a pause of this process, and when the attacker does not keep up, turns are skipped.
        const due = Math.floor(seconds * hertz);
        for (let i = Math.max(done.get(name) ?? 0, due - hertz); i < due && attacker.pendingOctets < MAX_PENDING_OCTETS; i += 1) turn();
        done.set(name, due);
        if (attacker.received.length > 1000) attacker.received.length = 0;
      }
      if (Math.floor(seconds / 10) > reported) {
        reported = Math.floor(seconds / 10);
        megabytes.push(meter.memory().anonymousMegabytes);
        if (reported % 6 === 0) {
          const lost = fatesOf(robots, events).filter(({ delaysMs, writtenMs }) => delaysMs.length === 0 && writtenMs < Date.now() - 5000);
          t.comment(`${reported / 6} min: ${lost.length} statuses missing, ${megabytes.at(-1)?.toFixed(1)} MB`);
        }
      }
      await pause(ROUND_MS / 1000);
    }
  });
  isOver = true;
  await restarting;
  t.comment('the attack has ended');

  // The last statuses arrive after the attack, or never.
  await Promise.all(robots.map(({ runs }) => (runs.at(-1) as Run).peer.waitForCount('written', 3)));
  await service
    .until(() => robots.every(({ name, runs }) => events.arrivals.has(keyOf(name, (runs.at(-1) as Run).timestamp, 3))), 60)
    .catch(() => undefined);
  for (const { runs } of robots) {
    const run = runs.at(-1) as Run;
    run.killedMs = Date.now();
    await run.peer.kill();
  }
  await pause(2);

  const fates = fatesOf(robots, events);
  const [before, during] = [
    fates.filter(({ writtenMs }) => writtenMs >= restMs && writtenMs < attackMs),
    fates.filter(({ writtenMs }) => writtenMs >= attackMs),
  ];
  const lost = (of: readonly Fate[]): string[] => of.filter(({ delaysMs }) => delaysMs.length === 0).map(({ key }) => key);
  const twice = (of: readonly Fate[]): string[] => of.filter(({ delaysMs }) => delaysMs.length > 1).map(({ key }) => key);
  const seen = robots.flatMap(({ name, runs }) =>
    runs.slice(1).map(({ peer, startMs, timestamp }) => {
      const first = Math.min(...peer.all('written').flatMap(({ number }) => events.arrivals.get(keyOf(name, timestamp, number)) ?? []));
      return { run: `${name} ${timestamp}`, seconds: (first - startMs) / 1000 };
    }),
  );
  const { data: alerts } = await service.get<{ data: Alert[] }>('/alerts?limit=10000');
  const about = (isWanted: (name: string) => boolean): Alert[] =>
    alerts.filter(({ alert_id }) => isWanted(alert_id.split('/')[0] as string));
  const isRobot = (name: string): boolean => robots.some((robot) => robot.name === name);
  const ofRobots = about(isRobot);
  const ofMonitor = about((name) => name === 'monitor');
  const { ros, nodes } = await service.get<StatusDocument>('/status');
  const delays = (of: readonly Fate[]): string => spread(of.flatMap(({ delaysMs }) => delaysMs.slice(0, 1)));
  const rows = [
    ['', 'at rest', 'attacked'],
    ['seconds', String(REST_SECONDS), String(SECONDS)],
    ['statuses written', String(before.length), String(during.length)],
    ['lost', String(lost(before).length), String(lost(during).length)],
    ['received twice', String(twice(before).length), String(twice(during).length)],
    ['delay', delays(before), delays(during)],
    ['CPU of the monitor, % of a core', restCpu.toFixed(2), attackCpu.toFixed(2)],
    [
      'memory of the monitor, MB',
      restMegabytes.toFixed(1),
      `max ${Math.max(...megabytes).toFixed(1)}, end ${megabytes.at(-1)?.toFixed(1)}`,
    ],
    ['connections to /events', '', String(events.connections)],
    ['seconds without the process of a robot', '', spread(robots.flatMap(({ runs }) => runs.map(({ downMs }) => downMs)))],
    ['robots restarted', '', `${seen.length}, seen after ${spread(seen.map(({ seconds }) => 1000 * seconds))}`],
    [
      'alerts about robots, the monitor, others',
      '',
      [ofRobots, ofMonitor, about((name) => !isRobot(name) && name !== 'monitor')].map(({ length }) => length).join(', '),
    ],
    ['datagrams and messages refused', '', String(ros.refused)],
    ...Object.entries(running).map(([name, [, attacker]]) => [name, '', `${attacker.sent} datagrams`]),
  ];
  for (const [what = '', rest = '', attacked = ''] of rows) t.comment(`${what.padEnd(42)} ${rest.padEnd(48)} ${attacked}`);
  t.same(lost(fates).slice(0, 50), [], 'no status is lost');
  t.same(twice(fates).slice(0, 50), [], 'and none received twice');
  t.same(
    seen.filter(({ seconds }) => !(seconds < SEEN_SECONDS)),
    [],
    `each of ${seen.length} restarted robots is seen within ${SEEN_SECONDS} s`,
  );
  t.same(ofRobots, [], 'no alert about a robot');
  t.same(
    ofMonitor.filter(({ metric }) => metric !== 'remote_nodes'),
    [],
    'nor about the monitor',
  );
  t.same(
    robots.filter(({ name }) => !nodes.some(({ node_name }) => node_name === name)),
    [],
    'every robot is listed',
  );
  t.notMatch(service.log, /message handler failed/, 'nothing unexpected in the log');
  t.ok(
    Object.values(running).every(([, attacker]) => attacker.sent > SECONDS),
    'every attacker has sent',
  );
  await service.end();
});
