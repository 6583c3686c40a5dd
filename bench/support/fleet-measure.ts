import { loadavg } from 'node:os';
import type { Aggregate } from '../../src/core/ports.ts';
import type { Cleanup } from '../../testkit/cleanup.ts';
import { build } from '../../testkit/dds/native.ts';
import { Peer, VENDORS, type Vendor } from '../../testkit/dds/peers.ts';
import { Network, type Segment } from '../../testkit/network/network.ts';
import { FleetAppliance } from './fleet-appliance.ts';
import { RobotHost } from './fleet-robots.ts';
import { DAY_SECONDS, heard, type Traffic, until, WAIT_SECONDS, watch } from './fleet-watch.ts';
import { pause } from './statistics.ts';

export interface FleetSetup {
  readonly robots: number;
  readonly isNamespaced: boolean;
  /** Whether the robots read what the appliance publishes. */
  readonly gather: boolean;
  /** Of the measurement itself. */
  readonly seconds: number;
  readonly domainId: number;
  readonly sysRoot: string;
}

export interface FleetResult {
  /** From the moment the robots are switched on, all at once, until the appliance knows each participant. */
  readonly discoveredSeconds: number;
  /** From the moment they begin to publish until the appliance has heard each of them. */
  readonly heardSeconds: number;
  /** While nobody publishes but the appliance. */
  readonly discoveryTraffic: Traffic;
  readonly idleCpuPercent: number;
  readonly traffic: Traffic;
  readonly cpuPercent: number;
  readonly highestMegabytes: number;
  readonly writtenMegabytesADay: number;
  readonly databaseMegabytesADay: number;
  readonly sent: number;
  readonly stored: number;
  readonly slots: number;
  readonly missedSlots: number;
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
  /** From vanishing until /status calls the first, and the last of them stale. */
  readonly silentFirstSeconds: number;
  readonly silentLastSeconds: number;
  /** From starting the appliance again until it has heard everybody. */
  readonly restartSeconds: number;
  /** Load average of the machine in the last minute, at the end of the measurement. */
  readonly load: number;
  readonly complaints: readonly string[];
}

const MAX_HOSTS = 10;
/** Until heartbeats and greetings of the beginning have died down. */
const SETTLE_SECONDS = 10;
const REST_SECONDS = 10;
const WARM_UP_SECONDS = 15;
/** As often as Prometheus asks where it is left as it comes. */
const SCRAPE_SECONDS = 15;
/** For what has to be sent again. */
const LATE_SECONDS = 3;

/** One appliance and a fleet of robots on a network of their own. */
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

  /** Starts the appliance, and the processes of robots that are still switched off. */
  static async prepare(cleanup: Cleanup, setup: FleetSetup, network: Network): Promise<Trial> {
    const segment = network.segment();
    const place = network.host();
    segment.attach(place, { number: 250 });
    const trial = new Trial(cleanup, setup, network, segment, await FleetAppliance.start(cleanup, place, setup));
    await trial.#startRobots();
    return trial;
  }

  async #startRobots(): Promise<void> {
    const { domainId, gather, isNamespaced, robots } = this.#setup;
    const count = Math.min(MAX_HOSTS, robots);
    const fellows = Array.from({ length: count }, (_, i) => this.#segment.address(i + 1));
    for (let i = 0; i < count; i += 1) {
      const host = this.#network.host();
      this.#segment.attach(host, { number: i + 1 });
      const first = Math.floor((i * robots) / count);
      const whose = { first, count: Math.floor(((i + 1) * robots) / count) - first };
      this.#hosts.push(await RobotHost.start(this.#cleanup, host, { domainId, gather, isNamespaced, fellows, ...whose }));
    }
  }

  async discover(): Promise<Pick<FleetResult, 'discoveredSeconds' | 'discoveryTraffic' | 'idleCpuPercent'>> {
    const begun = performance.now();
    await Promise.all(this.#hosts.map((host) => host.ask({ do: 'join' }, 'joined')));
    const discoveredSeconds = await until(begun, async () => ((await this.#appliance.status()).ros.peers ?? 0) >= this.#setup.robots);
    await pause(SETTLE_SECONDS);
    const rest = await watch(this.#appliance, REST_SECONDS, () => {});
    return { discoveredSeconds, discoveryTraffic: rest.traffic, idleCpuPercent: rest.cpuPercent };
  }

  /** From the moment the robots begin to publish until the appliance has heard each of them. */
  async publish(): Promise<number> {
    const begun = performance.now();
    for (const host of this.#hosts) host.tell({ do: 'publish' });
    return this.#untilHeard(begun, this.#setup.robots);
  }

  #untilHeard(begun: number, robots: number): Promise<number> {
    return until(begun, async () => heard(await this.#appliance.status()) >= robots);
  }

  async run(): Promise<Running> {
    const appliance = this.#appliance;
    let highestMegabytes = 0;
    const answers = { status: [] as number[], metrics: [] as number[], statusBytes: 0, metricsBytes: 0 };
    const before = await appliance.status();
    const fromMs = Date.now();
    const { cpuPercent, seconds, traffic, writtenMegabytesADay } = await watch(appliance, this.#setup.seconds, async (meter, second) => {
      highestMegabytes = Math.max(highestMegabytes, meter.memory().residentMegabytes);
      if (second % SCRAPE_SECONDS !== 0) return;
      const metrics = await appliance.ask('/metrics');
      const status = await appliance.ask('/status');
      answers.metrics.push(metrics.milliseconds);
      answers.status.push(status.milliseconds);
      answers.metricsBytes = Buffer.byteLength(metrics.body);
      answers.statusBytes = Buffer.byteLength(status.body);
    });
    const toMs = Date.now();
    const load = loadavg()[0] as number;
    await pause(LATE_SECONDS);
    const after = await appliance.status();
    const databaseBytes = (after.storage.size_bytes ?? 0) - (before.storage.size_bytes ?? 0);
    return {
      ...(await this.#compare(fromMs, toMs)),
      traffic,
      cpuPercent,
      highestMegabytes,
      writtenMegabytesADay,
      databaseMegabytesADay: (databaseBytes / 1e6 / seconds) * DAY_SECONDS,
      slots: after.publish.samples - before.publish.samples,
      missedSlots: after.publish.missed - before.publish.missed,
      statusMilliseconds: answers.status,
      metricsMilliseconds: answers.metrics,
      statusKilobytes: answers.statusBytes / 1e3,
      metricsKilobytes: answers.metricsBytes / 1e3,
      load,
    };
  }

  /** What was sent in that time, and what of it the appliance has. */
  async #compare(fromMs: number, toMs: number): Promise<Pick<FleetResult, 'sent' | 'stored' | 'alertsSent' | 'alertsStored'>> {
    const range = `from=${new Date(fromMs).toISOString()}&to=${new Date(toMs - 1).toISOString()}`;
    const told = await Promise.all(this.#hosts.map((host) => host.ask({ do: 'sent', fromMs, toMs }, 'sent')));
    let [sent, stored] = [0, 0];
    for (const { name, count } of told.flatMap(({ robots }) => robots)) {
      const { body, status } = await this.#appliance.ask(`/health/aggregate?node=${encodeURIComponent(name)}&${range}`);
      // Of one that was never heard nothing is known: 404.
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
      await peer.waitFor('sample', ({ data }) => data['node_name'] === 'health_monitor', WAIT_SECONDS);
      seconds[vendor] = (performance.now() - begun) / 1000;
      await peer.kill();
    }
    return seconds as Record<Vendor, number>;
  }

  /** Alerts about silence so far. */
  async staleAlerts(): Promise<number> {
    return (await this.#appliance.json<{ readonly count: number }>('/alerts?metric=health_status&limit=10000')).count;
  }

  /** A tenth of the robots, at least one, leave without a word. */
  async vanish(): Promise<Pick<FleetResult, 'vanished' | 'silentFirstSeconds' | 'silentLastSeconds'>> {
    const perHost = Math.ceil(this.#setup.robots / 10 / this.#hosts.length);
    const where = this.#hosts.slice(0, Math.ceil(this.#setup.robots / 10 / perHost));
    const told = await Promise.all(where.map((host) => host.ask({ do: 'vanish', count: perHost }, 'vanished')));
    const begun = performance.now();
    const gone = told.flatMap(({ names }) => names);
    const stale = async (): Promise<number> =>
      (await this.#appliance.status()).nodes.filter((node) => node.stale && gone.includes(node.node_name)).length;
    const silentFirstSeconds = await until(begun, async () => (await stale()) > 0);
    const silentLastSeconds = await until(begun, async () => (await stale()) === gone.length);
    return { vanished: gone.length, silentFirstSeconds, silentLastSeconds };
  }

  /** From starting the appliance again until it has heard so many robots. */
  async restart(robots: number): Promise<number> {
    await this.#appliance.stop();
    const begun = performance.now();
    await this.#appliance.run();
    return this.#untilHeard(begun, robots);
  }

  /** What the appliance complained of that was not the robots' health. */
  get complaints(): string[] {
    return this.#appliance.complaints.filter((line) => !/alert (WARNING|CRITICAL|ERROR)/.test(line));
  }
}

type Running = Omit<
  FleetResult,
  | 'discoveredSeconds'
  | 'discoveryTraffic'
  | 'idleCpuPercent'
  | 'heardSeconds'
  | 'joinerSeconds'
  | 'falseAlarms'
  | 'vanished'
  | 'silentFirstSeconds'
  | 'silentLastSeconds'
  | 'restartSeconds'
  | 'complaints'
>;

/** One fleet from switching on to switching off. */
export async function measureFleet(cleanup: Cleanup, setup: FleetSetup, progress: (text: string) => void): Promise<FleetResult> {
  await build('peers');
  const network = new Network();
  try {
    const trial = await Trial.prepare(cleanup, setup, network);
    progress('discovery');
    const discovered = await trial.discover();
    const heardSeconds = await trial.publish();
    await pause(WARM_UP_SECONDS);
    progress(`${setup.seconds} s`);
    const running = await trial.run();
    progress('late joiners');
    const joinerSeconds = await trial.joinLate();
    const falseAlarms = await trial.staleAlerts();
    progress('some vanish');
    const vanished = await trial.vanish();
    progress('the appliance starts again');
    const { complaints } = trial;
    const restartSeconds = await trial.restart(setup.robots - vanished.vanished);
    return { ...discovered, heardSeconds, ...running, joinerSeconds, falseAlarms, ...vanished, restartSeconds, complaints };
  } finally {
    network.dispose();
  }
}
