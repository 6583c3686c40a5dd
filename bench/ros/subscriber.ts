import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cleanup } from '../../testkit/cleanup.ts';
import { build } from '../../testkit/dds/native.ts';
import { type PeerEvent, VENDORS, type Vendor } from '../../testkit/dds/peers.ts';
import type { Host } from '../../testkit/network/network.ts';
import { pause } from '../support/statistics.ts';

export { VENDORS, type Vendor };

export const VENDOR_NAMES: Readonly<Record<Vendor, string>> = { cyclone: 'Cyclone DDS', fastdds: 'Fast DDS' };

/** One health status as a subscriber received it. */
export interface Arrival {
  /** Sent as `cpu_percent`. */
  readonly number: number;
  /** `memory_percent`, in which ros-publisher.ts sends wall-clock milliseconds. */
  readonly sentMs: number;
  /** The publisher's `timestamp`. */
  readonly timestamp: string;
  /** Wall-clock milliseconds in the callback of the subscriber. */
  readonly receivedMs: number;
}

const FIRST_TIMEOUT_SECONDS = 30;

/**
 * A subscriber of /health_status on another DDS implementation. Its events go to a file in memory that is read afterwards: reading them
 * during the measurement would take CPU from the measured process.
 */
export class Subscriber {
  readonly vendor: Vendor;
  readonly #file: string;

  private constructor(vendor: Vendor, file: string) {
    this.vendor = vendor;
    this.#file = file;
  }

  /** Starts one subscriber of each vendor. */
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

  /** Every received status, in order of arrival. */
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

  /** Resolves once a status was received; throws with the subscriber's standard error after a timeout. */
  async untilFirst(): Promise<void> {
    const deadline = performance.now() + FIRST_TIMEOUT_SECONDS * 1000;
    while (this.arrivals().length === 0) {
      if (performance.now() > deadline) {
        const errors = readFileSync(`${this.#file}.errors`, 'utf8');
        throw new Error(`the ${VENDOR_NAMES[this.vendor]} subscriber received nothing in ${FIRST_TIMEOUT_SECONDS} s\n${errors}`);
      }
      await pause(0.2);
    }
  }
}
