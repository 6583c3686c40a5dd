import { type Cleanup, endProcess } from '../../testkit/cleanup.ts';
import { Network } from '../../testkit/network/network.ts';
import type { PublisherOptions } from '../clients/ros-publisher.ts';
import { pause } from '../support/statistics.ts';
import type { RosInstallation } from './installation.ts';
import { Publisher } from './processes.ts';
import { type Arrival, Subscriber, type Vendor } from './subscriber.ts';

/** The part of a stream that one subscriber received. */
export interface Received {
  readonly vendor: Vendor;
  /** Number of sent statuses that were not received. */
  readonly lost: number;
  /** Latency from right before publishing to the callback of the subscriber, in order of arrival. */
  readonly milliseconds: readonly number[];
}

export interface StreamResult {
  readonly received: readonly Received[];
  readonly cpuPercent: number;
  /** Time from the first to the last counted status. */
  readonly secondsTaken: number;
}

const WARM_UP_SECONDS = 2;
/** Allows for retransmissions. */
const SETTLE_SECONDS = 3;
/** Time stamps are monotonic time plus an offset to the wall clock, so a change of the wall clock would falsify the latencies. */
const MAX_CLOCK_ERROR_MS = 0.2;

/** Latencies in milliseconds from publishing to reception. Throws for an implausible value. */
export function latencies(arrivals: readonly Arrival[]): number[] {
  const milliseconds = arrivals.map(({ sentMs, receivedMs }) => receivedMs - sentMs);
  if (milliseconds.some((value) => !(value > -MAX_CLOCK_ERROR_MS))) throw new Error('a status was received before it was sent');
  return milliseconds;
}

/** Measures statuses at a constant rate from one transport to a subscriber of each vendor, in a test network. */
export async function measureStream(
  cleanup: Cleanup,
  bundle: string,
  ros: RosInstallation | null,
  setup: { readonly transport: PublisherOptions['transport']; readonly domainId: number; readonly hertz: number; readonly seconds: number },
): Promise<StreamResult> {
  const { transport, domainId, hertz } = setup;
  const count = Math.round(hertz * setup.seconds);
  const network = new Network();
  try {
    const host = network.host();
    const subscribers = await Subscriber.startAll(cleanup, host, domainId);
    const publisher = await Publisher.start(cleanup, bundle, host, ros, {
      transport,
      domainId,
      publishes: true,
      stream: { hertz, warmUp: hertz * WARM_UP_SECONDS, count },
    });
    for (const subscriber of subscribers) await subscriber.untilFirst();
    const { seconds, cpuSeconds, clockError } = await publisher.stream(setup.seconds + 60);
    if (Math.abs(clockError) > MAX_CLOCK_ERROR_MS)
      throw new Error(`the wall clock moved by ${clockError.toFixed(3)} ms during the measurement`);
    await pause(SETTLE_SECONDS);
    const received = subscribers.map((subscriber): Received => {
      const counted = subscriber.arrivals().filter(({ number }) => number >= 1 && number <= count);
      const distinct = new Set(counted.map(({ number }) => number)).size;
      if (distinct < counted.length) throw new Error(`${subscriber.vendor} received ${counted.length - distinct} statuses twice`);
      return { vendor: subscriber.vendor, lost: count - distinct, milliseconds: latencies(counted) };
    });
    await endProcess(publisher.child);
    return { received, cpuPercent: (100 * cpuSeconds) / seconds, secondsTaken: seconds };
  } finally {
    network.dispose();
  }
}
