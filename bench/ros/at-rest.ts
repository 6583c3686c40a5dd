import type { ChildProcess } from 'node:child_process';
import type { Cleanup } from '../../testkit/cleanup.ts';
import { ProcessMeter } from '../../testkit/machine/process-meter.ts';
import { type Host, Network } from '../../testkit/network/network.ts';
import type { PublisherOptions } from '../clients/ros-publisher.ts';
import { pause } from '../support/statistics.ts';
import type { RosInstallation } from './installation.ts';
import { Publisher, startServiceIn } from './processes.ts';
import { latencies } from './stream.ts';
import { type Arrival, Subscriber, type Vendor } from './subscriber.ts';

/** The processes to compare, each in a separate network: the transports alone and the whole service. */
export type Contestant =
  | { readonly kind: 'alone'; readonly transport: PublisherOptions['transport']; readonly publishes: boolean }
  | { readonly kind: 'service'; readonly transport: 'off' | 'embedded' | 'rclnodejs' };

export interface AtRest {
  readonly cpuPercent: number;
  /** Highest resident memory. */
  readonly megabytes: number;
  /** By subscriber, for a transport alone: latency from publishing to the callback of the subscriber, one value per second. */
  readonly milliseconds: Readonly<Partial<Record<Vendor, readonly number[]>>>;
}

const WARM_UP_SECONDS = 30;
const POLL_SECONDS = 5;
/** Number of statuses that may be missing at the two ends of the measurement. */
const MARGIN = 2;

/** Measures one contestant and its subscribers. */
class ContestantMeter {
  readonly #meter: ProcessMeter;
  readonly #subscribers: readonly Subscriber[];
  readonly #contestant: Contestant;
  #cpuSeconds = 0;
  #begunMs = 0;
  #megabytes = 0;

  constructor(contestant: Contestant, child: ChildProcess, subscribers: readonly Subscriber[]) {
    this.#contestant = contestant;
    this.#meter = new ProcessMeter(child.pid as number);
    this.#subscribers = subscribers;
  }

  /** Resolves once each of its subscribers has received a status. */
  async waitForFirstStatus(): Promise<void> {
    for (const subscriber of this.#subscribers) await subscriber.untilFirst();
  }

  begin(): void {
    this.#cpuSeconds = this.#meter.cpuSeconds();
    this.#begunMs = Date.now();
  }

  poll(): void {
    this.#meter.cpuSeconds(); // Records the CPU time of threads that end before the next reading.
    this.#megabytes = Math.max(this.#megabytes, this.#meter.memory().residentMegabytes);
  }

  finish(): AtRest {
    const seconds = (Date.now() - this.#begunMs) / 1000;
    const cpuPercent = (100 * (this.#meter.cpuSeconds() - this.#cpuSeconds)) / seconds;
    const milliseconds: Partial<Record<Vendor, number[]>> = {};
    for (const subscriber of this.#subscribers) {
      const arrivals = subscriber
        .arrivals()
        .filter(({ receivedMs }) => receivedMs >= this.#begunMs && receivedMs < this.#begunMs + seconds * 1000);
      this.#check(arrivals, seconds, subscriber.vendor);
      if (this.#contestant.kind === 'alone') milliseconds[subscriber.vendor] = latencies(arrivals);
    }
    return { cpuPercent, megabytes: this.#megabytes, milliseconds };
  }

  /** CPU figures are valid only if the statuses were delivered. */
  #check(arrivals: readonly Arrival[], seconds: number, vendor: Vendor): void {
    const distinct = new Set(arrivals.map(({ timestamp }) => timestamp)).size;
    if (distinct < Math.floor(seconds) - MARGIN) {
      const { kind, transport } = this.#contestant;
      throw new Error(`${kind}, ${transport}: the ${vendor} subscriber received ${distinct} statuses in ${seconds.toFixed(0)} s`);
    }
  }
}

/** Measures all contestants at the same time, each with a subscriber of each vendor if it publishes. Results are in the same order. */
export async function measureAtRest(
  cleanup: Cleanup,
  bundle: string,
  ros: RosInstallation | null,
  setup: {
    readonly contestants: readonly Contestant[];
    readonly firstDomainId: number;
    readonly seconds: number;
    readonly sysRoot: string;
  },
  progress: (text: string) => void,
): Promise<AtRest[]> {
  const network = new Network();
  try {
    const meters: ContestantMeter[] = [];
    for (const [i, contestant] of setup.contestants.entries()) {
      const host = network.host();
      const domainId = setup.firstDomainId + i;
      const child = await start(cleanup, bundle, ros, contestant, host, domainId, setup.sysRoot);
      const subscribers = hasSubscribers(contestant) ? await Subscriber.startAll(cleanup, host, domainId) : [];
      meters.push(new ContestantMeter(contestant, child, subscribers));
    }
    for (const meter of meters) await meter.waitForFirstStatus();
    await pause(Math.min(WARM_UP_SECONDS, setup.seconds));
    for (const meter of meters) meter.begin();
    const deadline = performance.now() + setup.seconds * 1000;
    let reportedMs = performance.now();
    for (let left = setup.seconds; left > 0; left = (deadline - performance.now()) / 1000) {
      await pause(Math.min(POLL_SECONDS, left));
      for (const meter of meters) meter.poll();
      if (performance.now() - reportedMs < 60_000) continue;
      reportedMs = performance.now();
      progress(`${((deadline - reportedMs) / 60_000).toFixed(0)} min left`);
    }
    return meters.map((meter) => meter.finish());
  } finally {
    network.dispose();
  }
}

function hasSubscribers(contestant: Contestant): boolean {
  if (contestant.kind === 'service') return contestant.transport !== 'off';
  return contestant.publishes && contestant.transport !== 'nothing';
}

async function start(
  cleanup: Cleanup,
  bundle: string,
  ros: RosInstallation | null,
  contestant: Contestant,
  host: Host,
  domainId: number,
  sysRoot: string,
): Promise<ChildProcess> {
  if (contestant.kind === 'service') return startServiceIn(cleanup, host, { transport: contestant.transport, domainId, sysRoot, ros });
  const { transport, publishes } = contestant;
  return (await Publisher.start(cleanup, bundle, host, ros, { transport, domainId, publishes, stream: null })).child;
}
