import type { ChildProcess } from 'node:child_process';
import type { Cleanup } from '../../testkit/cleanup.ts';
import { ProcessMeter } from '../../testkit/machine/process-meter.ts';
import { type Host, Network } from '../../testkit/network/network.ts';
import type { PublisherOptions } from '../clients/ros-publisher.ts';
import type { RosInstallation } from './ros-installation.ts';
import { Publisher, startServiceIn } from './ros-processes.ts';
import { latencies } from './ros-stream.ts';
import { type Arrival, Subscriber, type Vendor } from './ros-subscriber.ts';
import { pause } from './statistics.ts';

/** Processes that are compared, each in a network of its own: the transports alone and the whole service. */
export type Contestant =
  | { readonly kind: 'alone'; readonly transport: PublisherOptions['transport']; readonly publishes: boolean }
  | { readonly kind: 'service'; readonly transport: 'off' | 'embedded' | 'rclnodejs' };

export interface AtRest {
  readonly cpuPercent: number;
  /** Highest resident memory. */
  readonly megabytes: number;
  /** By subscriber, from a transport alone: from publishing to when the subscriber had it, one a second. */
  readonly milliseconds: Readonly<Partial<Record<Vendor, readonly number[]>>>;
}

const WARM_UP_SECONDS = 30;
const LOOK_EVERY_SECONDS = 5;
/** Statuses that may lack at both ends of the measurement. */
const MARGIN = 2;

/** One contestant, its subscribers and its figures. */
class Entrant {
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

  /** Resolves once each of its subscribers has got something. */
  async untilHeard(): Promise<void> {
    for (const subscriber of this.#subscribers) await subscriber.untilFirst();
  }

  begin(): void {
    this.#cpuSeconds = this.#meter.cpuSeconds();
    this.#begunMs = Date.now();
  }

  look(): void {
    this.#meter.cpuSeconds(); // So that a thread that ends later is not forgotten.
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

  /** What nobody received cost nothing. */
  #check(arrivals: readonly Arrival[], seconds: number, vendor: Vendor): void {
    const distinct = new Set(arrivals.map(({ timestamp }) => timestamp)).size;
    if (distinct < Math.floor(seconds) - MARGIN) {
      const { kind, transport } = this.#contestant;
      throw new Error(`${kind}, ${transport}: the ${vendor} subscriber got ${distinct} statuses in ${seconds.toFixed(0)} s`);
    }
  }
}

/** All contestants at the same time, publishing once a second to a subscriber of each vendor, if they publish. In their order. */
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
    const entrants: Entrant[] = [];
    for (const [i, contestant] of setup.contestants.entries()) {
      const host = network.host();
      const domainId = setup.firstDomainId + i;
      const child = await start(cleanup, bundle, ros, contestant, host, domainId, setup.sysRoot);
      const subscribers = isHeard(contestant) ? await Subscriber.startAll(cleanup, host, domainId) : [];
      entrants.push(new Entrant(contestant, child, subscribers));
    }
    for (const entrant of entrants) await entrant.untilHeard();
    await pause(Math.min(WARM_UP_SECONDS, setup.seconds));
    for (const entrant of entrants) entrant.begin();
    const deadline = performance.now() + setup.seconds * 1000;
    let toldMs = performance.now();
    for (let left = setup.seconds; left > 0; left = (deadline - performance.now()) / 1000) {
      await pause(Math.min(LOOK_EVERY_SECONDS, left));
      for (const entrant of entrants) entrant.look();
      if (performance.now() - toldMs < 60_000) continue;
      toldMs = performance.now();
      progress(`${((deadline - toldMs) / 60_000).toFixed(0)} min left`);
    }
    return entrants.map((entrant) => entrant.finish());
  } finally {
    network.dispose();
  }
}

function isHeard(contestant: Contestant): boolean {
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
