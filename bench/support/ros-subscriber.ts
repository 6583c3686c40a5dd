import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cleanup } from '../../testkit/cleanup.ts';
import { build } from '../../testkit/dds/native.ts';
import { type PeerEvent, VENDORS, type Vendor } from '../../testkit/dds/peers.ts';
import type { Host } from '../../testkit/network/network.ts';
import { pause } from './statistics.ts';

export { VENDORS, type Vendor };

export const VENDOR_NAMES: Readonly<Record<Vendor, string>> = { cyclone: 'Cyclone DDS', fastdds: 'Fast DDS' };

/** One health status as a subscriber got it. */
export interface Arrival {
  /** `cpu_percent`. */
  readonly number: number;
  /** `memory_percent`: wall-clock milliseconds in what ros-publisher.ts sends. */
  readonly sentMs: number;
  /** The publisher's `timestamp`. */
  readonly timestamp: string;
  /** Wall-clock milliseconds at the subscriber, once it had the status. */
  readonly receivedMs: number;
}

const FIRST_WITHIN_SECONDS = 30;

/**
 * A subscriber of /health_status on a DDS implementation that is not ours. What it tells goes into a file in memory that is read
 * afterwards: reading along would take part of a core from what is measured.
 */
export class Subscriber {
  readonly vendor: Vendor;
  readonly #file: string;

  private constructor(vendor: Vendor, file: string) {
    this.vendor = vendor;
    this.#file = file;
  }

  /** One of each vendor. */
  static async startAll(cleanup: Cleanup, host: Host, domainId: number): Promise<Subscriber[]> {
    const programs = await build('peers');
    const folder = cleanup.folderInMemory();
    return VENDORS.map((vendor) => {
      const file = join(folder, `${vendor}.jsonl`);
      const handles = [openSync(file, 'w'), openSync(`${file}.errors`, 'w')] as const;
      const addresses = host.addresses.flatMap((address) => ['--address', address]);
      const argv = ['subscribe', '--domain', String(domainId), '--topic', '/health_status', ...addresses];
      cleanup.own(host.spawn(join(programs, `peer-${vendor}`), argv, { stdio: ['ignore', ...handles] }));
      for (const handle of handles) closeSync(handle);
      return new Subscriber(vendor, file);
    });
  }

  /** Every status so far, in the order of their arrival. */
  arrivals(): Arrival[] {
    const lines = readFileSync(this.#file, 'utf8').split('\n').slice(0, -1);
    const events = lines.map((line) => JSON.parse(line) as PeerEvent);
    return events
      .filter((event) => event.event === 'sample')
      .map(({ wall_ms, data }) => ({
        number: data['cpu_percent'] as number,
        sentMs: data['memory_percent'] as number,
        timestamp: data['timestamp'] as string,
        receivedMs: wall_ms,
      }));
  }

  /** Resolves once it got a status; throws with what it complained of when it gets none in time. */
  async untilFirst(): Promise<void> {
    const deadline = performance.now() + FIRST_WITHIN_SECONDS * 1000;
    while (this.arrivals().length === 0) {
      if (performance.now() > deadline) {
        const complaints = readFileSync(`${this.#file}.errors`, 'utf8');
        throw new Error(`the ${VENDOR_NAMES[this.vendor]} subscriber got nothing in ${FIRST_WITHIN_SECONDS} s\n${complaints}`);
      }
      await pause(0.2);
    }
  }
}
