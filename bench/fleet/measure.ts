import { loadavg } from 'node:os';
import type { Aggregate } from '../../src/core/ports.ts';
import type { Cleanup } from '../../testkit/cleanup.ts';
import { build } from '../../testkit/dds/native.ts';
import { Peer, VENDORS, type Vendor } from '../../testkit/dds/peers.ts';
import { Network, type Segment } from '../../testkit/network/network.ts';
import { pause } from '../support/statistics.ts';
import { FleetAppliance } from './fleet-appliance.ts';
import { RobotHost } from './robots.ts';
import { countReceivedNodes, DAY_SECONDS, measureAppliance, TIMEOUT_SECONDS, type Traffic, until } from './watch.ts';

export interface FleetSetup {
  readonly robots: number;
  readonly isNamespaced: boolean;
  /** Whether the robots receive what the appliance publishes. */
  readonly observe: boolean;
  /** Length of the measurement. */
  readonly seconds: number;
  readonly domainId: number;
  readonly sysRoot: string;
}

export interface FleetResult {
  /** From starting all robots at once until the appliance has discovered each participant. */
  readonly discoveredSeconds: number;
  /** From the start of publishing until the appliance has received a status of each robot. */
  readonly firstStatusSeconds: number;
  /** Traffic while no robot publishes. */
  readonly discoveryTraffic: Traffic;
  readonly idleCpuPercent: number;
  readonly traffic: Traffic;
  readonly cpuPercent: number;
  readonly highestMegabytes: number;
  readonly writtenMegabytesPerDay: number;
  readonly databaseMegabytesPerDay: number;
  readonly sent: number;
  readonly stored: number;
  readonly samples: number;
  readonly missedSamples: number;
  readonly statusMilliseconds: readonly number[];
  readonly metricsMilliseconds: readonly number[];
  readonly statusKilobytes: number;
  readonly metricsKilobytes: number;
  readonly falseAlarms: number;
  readonly alertsSent: number;
  readonly alertsStored: number;
  /** From starting a subscriber on another DDS implementation to its first status of the appliance. */
  readonly joinerSeconds: Readonly<Record<Vendor, number>>;
  readonly vanished: number;
  /** From vanishing until /status reports the first, and the last, of them as stale. */
  readonly firstStaleSeconds: number;
  readonly lastStaleSeconds: number;
  /** From restarting the appliance until it has received a status of each robot. */
  readonly restartSeconds: number;
  /** Load average of the machine in the last minute, at the end of the measurement. */
  readonly load: number;
  readonly problems: readonly string[];
}

const MAX_HOSTS = 10;
/** Excludes the traffic of discovery and its heartbeats. */
const SETTLE_SECONDS = 10;
const REST_SECONDS = 10;
/**
 * Lasts until the robots are established, which takes a minute, and until their earlier data is written with the next segment. Extrapolated
 * to a day, that data would count as 3 GB.
 */
const WARM_UP_SECONDS = 130;
/** A common scrape interval of Prometheus. */
const SCRAPE_SECONDS = 15;
/** Allows for retransmissions. */
const RETRANSMISSION_SECONDS = 3;

/** One appliance and a fleet of robots on a test network. */
class Trial {
  readonly #cleanup: Cleanup;
  readonly #setup: FleetSetup;
  readonly #network: Network;
  readonly #segment: Segment;
  readonly #hosts: RobotHost[] = [];
  readonly #appliance: FleetAppliance;

  private constructor(cleanup: Cleanup, setup: FleetSetup, network: Network, segment: Segment, appliance: FleetAppliance) {
    this.#cleanup = cleanup;
    this.#setup = setup;
    this.#network = network;
    this.#segment = segment;
    this.#appliance = appliance;
  }

  /** Starts the appliance and the processes of the robots, which do not join the graph yet. */
  static async prepare(cleanup: Cleanup, setup: FleetSetup, network: Network): Promise<Trial> {
    const segment = network.segment();
    const applianceHost = network.host();
    segment.attach(applianceHost, { number: 250 });
    const trial = new Trial(cleanup, setup, network, segment, await FleetAppliance.start(cleanup, applianceHost, setup));
    await trial.#startRobots();
    return trial;
  }

  async #startRobots(): Promise<void> {
    const { domainId, observe, isNamespaced, robots } = this.#setup;
    const count = Math.min(MAX_HOSTS, robots);
    const robotAddresses = Array.from({ length: count }, (_, i) => this.#segment.address(i + 1));
    for (let i = 0; i < count; i += 1) {
      const host = this.#network.host();
      this.#segment.attach(host, { number: i + 1 });
      const first = Math.floor((i * robots) / count);
      const range = { first, count: Math.floor(((i + 1) * robots) / count) - first };
      this.#hosts.push(await RobotHost.start(this.#cleanup, host, { domainId, observe, isNamespaced, robotAddresses, ...range }));
    }
  }

  async discover(): Promise<Pick<FleetResult, 'discoveredSeconds' | 'discoveryTraffic' | 'idleCpuPercent'>> {
    const begun = performance.now();
    await Promise.all(this.#hosts.map((host) => host.ask({ do: 'join' }, 'joined')));
    const discoveredSeconds = await until(begun, async () => ((await this.#appliance.status()).ros.peers ?? 0) >= this.#setup.robots);
    await pause(SETTLE_SECONDS);
    const rest = await measureAppliance(this.#appliance, REST_SECONDS, () => {});
    return { discoveredSeconds, discoveryTraffic: rest.traffic, idleCpuPercent: rest.cpuPercent };
  }

  /** Starts publishing; returns the seconds until the appliance has received a status of each robot. */
  async publish(): Promise<number> {
    const begun = performance.now();
    for (const host of this.#hosts) host.send({ do: 'publish' });
    return this.#waitForFirstStatus(begun, this.#setup.robots);
  }

  #waitForFirstStatus(begun: number, robots: number): Promise<number> {
    return until(begun, async () => countReceivedNodes(await this.#appliance.status()) >= robots);
  }

  async run(): Promise<Running> {
    const appliance = this.#appliance;
    let highestMegabytes = 0;
    const answers = { status: [] as number[], metrics: [] as number[], statusBytes: 0, metricsBytes: 0 };
    const before = await appliance.status();
    const fromMs = Date.now();
    const { cpuPercent, seconds, traffic, writtenMegabytesPerDay } = await measureAppliance(
      appliance,
      this.#setup.seconds,
      async (meter, second) => {
        highestMegabytes = Math.max(highestMegabytes, meter.memory().residentMegabytes);
        if (second % SCRAPE_SECONDS !== 0) return;
        const metrics = await appliance.ask('/metrics');
        const status = await appliance.ask('/status');
        answers.metrics.push(metrics.milliseconds);
        answers.status.push(status.milliseconds);
        answers.metricsBytes = Buffer.byteLength(metrics.body);
        answers.statusBytes = Buffer.byteLength(status.body);
      },
    );
    const toMs = Date.now();
    const load = loadavg()[0] as number;
    await pause(RETRANSMISSION_SECONDS);
    const after = await appliance.status();
    const databaseBytes = (after.storage.size_bytes ?? 0) - (before.storage.size_bytes ?? 0);
    return {
      ...(await this.#compare(fromMs, toMs)),
      traffic,
      cpuPercent,
      highestMegabytes,
      writtenMegabytesPerDay,
      databaseMegabytesPerDay: (databaseBytes / 1e6 / seconds) * DAY_SECONDS,
      samples: after.publish.samples - before.publish.samples,
      missedSamples: after.publish.missed - before.publish.missed,
      statusMilliseconds: answers.status,
      metricsMilliseconds: answers.metrics,
      statusKilobytes: answers.statusBytes / 1e3,
      metricsKilobytes: answers.metricsBytes / 1e3,
      load,
    };
  }

  /** Counts the statuses and alerts that were sent in the given time, and those of them that the appliance stored. */
  async #compare(fromMs: number, toMs: number): Promise<Pick<FleetResult, 'sent' | 'stored' | 'alertsSent' | 'alertsStored'>> {
    const range = `from=${new Date(fromMs).toISOString()}&to=${new Date(toMs).toISOString()}`;
    const events = await Promise.all(this.#hosts.map((host) => host.ask({ do: 'sent', fromMs, toMs }, 'sent')));
    let [sent, stored] = [0, 0];
    for (const { name, count } of events.flatMap(({ robots }) => robots)) {
      const { body, status } = await this.#appliance.ask(`/health/aggregate?node=${encodeURIComponent(name)}&${range}`);
      // 404: the appliance never received a status of this robot.
      stored += status === 200 ? ((JSON.parse(body) as Aggregate).samples_received ?? 0) : 0;
      sent += count;
    }
    const alertsSent = this.#hosts.reduce((sum, host) => sum + host.all('alerted').length, 0);
    return { sent, stored, alertsSent, alertsStored: (await this.#appliance.status()).remote?.alerts ?? 0 };
  }

  /** From starting a subscriber on another DDS implementation to its first status of the appliance. */
  async joinLate(): Promise<Record<Vendor, number>> {
    const joiner = this.#network.host();
    this.#segment.attach(joiner, { number: 200 });
    const seconds: Partial<Record<Vendor, number>> = {};
    for (const vendor of VENDORS) {
      const begun = performance.now();
      const options = ['--domain', String(this.#setup.domainId), '--topic', '/health_status'];
      const peer = await Peer.start(joiner, vendor, 'subscribe', options);
      await peer.waitFor('sample', ({ data }) => data['node_name'] === 'health_monitor', TIMEOUT_SECONDS);
      seconds[vendor] = (performance.now() - begun) / 1000;
      await peer.kill();
    }
    return seconds as Record<Vendor, number>;
  }

  /** Number of alerts about stale nodes. */
  async staleAlerts(): Promise<number> {
    return (await this.#appliance.json<{ readonly count: number }>('/alerts?metric=health_status&limit=10000')).count;
  }

  /** Makes a tenth of the robots, at least one, vanish without leaving the graph. */
  async vanish(): Promise<Pick<FleetResult, 'vanished' | 'firstStaleSeconds' | 'lastStaleSeconds'>> {
    const perHost = Math.ceil(this.#setup.robots / 10 / this.#hosts.length);
    const hosts = this.#hosts.slice(0, Math.ceil(this.#setup.robots / 10 / perHost));
    const events = await Promise.all(hosts.map((host) => host.ask({ do: 'vanish', count: perHost }, 'vanished')));
    const begun = performance.now();
    const gone = events.flatMap(({ names }) => names);
    const stale = async (): Promise<number> =>
      (await this.#appliance.status()).nodes.filter((node) => node.stale && gone.includes(node.node_name)).length;
    const firstStaleSeconds = await until(begun, async () => (await stale()) > 0);
    const lastStaleSeconds = await until(begun, async () => (await stale()) === gone.length);
    return { vanished: gone.length, firstStaleSeconds, lastStaleSeconds };
  }

  /** Restarts the appliance; returns the seconds until it has received a status of this many robots. */
  async restart(robots: number): Promise<number> {
    await this.#appliance.stop();
    const begun = performance.now();
    await this.#appliance.run();
    return this.#waitForFirstStatus(begun, robots);
  }

  /** Warnings and errors of the appliance other than alerts about the robots' health. */
  get problems(): string[] {
    return this.#appliance.problems.filter((line) => !/alert (WARNING|CRITICAL|ERROR)/.test(line));
  }
}

type Running = Omit<
  FleetResult,
  | 'discoveredSeconds'
  | 'discoveryTraffic'
  | 'idleCpuPercent'
  | 'firstStatusSeconds'
  | 'joinerSeconds'
  | 'falseAlarms'
  | 'vanished'
  | 'firstStaleSeconds'
  | 'lastStaleSeconds'
  | 'restartSeconds'
  | 'problems'
>;

/** Measures one fleet from its start to its end. */
export async function measureFleet(cleanup: Cleanup, setup: FleetSetup, progress: (text: string) => void): Promise<FleetResult> {
  await build('peers');
  const network = new Network();
  try {
    const trial = await Trial.prepare(cleanup, setup, network);
    progress('discovery');
    const discovered = await trial.discover();
    const firstStatusSeconds = await trial.publish();
    await pause(WARM_UP_SECONDS);
    progress(`${setup.seconds} s`);
    const running = await trial.run();
    progress('late joiners');
    const joinerSeconds = await trial.joinLate();
    const falseAlarms = await trial.staleAlerts();
    progress('a tenth of the robots vanish');
    const vanished = await trial.vanish();
    progress('restart of the appliance');
    const { problems } = trial;
    const restartSeconds = await trial.restart(setup.robots - vanished.vanished);
    return { ...discovered, firstStatusSeconds, ...running, joinerSeconds, falseAlarms, ...vanished, restartSeconds, problems };
  } finally {
    network.dispose();
  }
}
