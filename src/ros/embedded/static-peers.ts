import { lookup } from 'node:dns';
import { isIPv4 } from 'node:net';
import { promisify } from 'node:util';
import type { Log } from '../../core/ports.ts';
import type { DiscoverySettings } from '../graph.ts';

export type ResolveName = (name: string) => Promise<string>;

/** Pauses between two lookups: the first while a name has no address, doubled up to the last, which also applies once all have one. */
const FIRST_PAUSE_MS = 2000;
const LAST_PAUSE_MS = 60_000;

/**
 * The addresses for discovery by unicast, with the rules of rmw_cyclonedds for each discovery range: the configured peers, and with
 * LOCALHOST this machine. Names are looked up repeatedly, because the service starts before the network and an address may change; a name
 * keeps its last address while lookups fail.
 */
export class StaticPeers {
  /** IPv4 addresses; changed in place, so that a participant which holds the array uses them with its next announcement. */
  readonly addresses: string[];
  readonly #own: readonly string[];
  readonly #peers: readonly string[];
  readonly #names: readonly string[];
  readonly #log: Log;
  readonly #resolve: ResolveName;
  /** The last address of each name; null: none yet. */
  readonly #found = new Map<string, string | null>();
  #pauseMs = FIRST_PAUSE_MS;
  #timer: NodeJS.Timeout | null = null;
  /** Incremented to drop the results of a lookup in progress. */
  #round = 0;

  constructor({ discoveryRange, staticPeers }: DiscoverySettings, log: Log, resolve: ResolveName = resolveIPv4) {
    this.#own = discoveryRange === 'LOCALHOST' ? ['127.0.0.1'] : [];
    // ROS 2 ignores static peers with SYSTEM_DEFAULT.
    this.#peers = discoveryRange === 'SYSTEM_DEFAULT' ? [] : staticPeers;
    this.#names = [...new Set(this.#peers.filter((peer) => !isIPv4(peer)))];
    this.#log = log;
    this.#resolve = resolve;
    this.addresses = this.#current();
  }

  /** Looks the names up, now and repeatedly until `stop`; called again when the network has changed. Resolves after the first lookup. */
  async start(): Promise<void> {
    this.stop();
    this.#pauseMs = FIRST_PAUSE_MS;
    if (this.#names.length > 0) await this.#lookUp();
  }

  stop(): void {
    this.#round += 1;
    if (this.#timer) clearTimeout(this.#timer);
  }

  async #lookUp(): Promise<void> {
    const round = this.#round;
    const results = await Promise.allSettled(this.#names.map((name) => this.#resolve(name)));
    if (round !== this.#round) return;
    for (const [i, peer] of this.#names.entries()) this.#record(peer, results[i] as PromiseSettledResult<string>);
    this.addresses.splice(0, this.addresses.length, ...this.#current());
    const isWhole = this.#names.every((name) => this.#found.get(name));
    this.#timer = setTimeout(() => void this.#lookUp(), isWhole ? LAST_PAUSE_MS : this.#pauseMs).unref();
    this.#pauseMs = Math.min(2 * this.#pauseMs, LAST_PAUSE_MS);
  }

  #record(peer: string, result: PromiseSettledResult<string>): void {
    const before = this.#found.get(peer);
    const address = result.status === 'fulfilled' ? result.value : (before ?? null);
    this.#found.set(peer, address);
    if (address === null && before === undefined) {
      const { code } = (result as PromiseRejectedResult).reason as NodeJS.ErrnoException;
      this.#log('warning', 'static peer not resolved, retrying', { peer, error: code });
    } else if (before !== undefined && before !== address) this.#log('notice', 'static peer resolved', { peer, address });
  }

  #current(): string[] {
    const found = this.#peers.map((peer) => (isIPv4(peer) ? peer : (this.#found.get(peer) ?? null)));
    return [...new Set([...this.#own, ...found.filter((address) => address !== null)])];
  }
}

async function resolveIPv4(name: string): Promise<string> {
  const { address, family } = await promisify(lookup)(name, { family: 4 });
  // An IPv6 address is returned as it is.
  if (family !== 4) throw Object.assign(new Error('not an IPv4 address'), { code: 'EAFNOSUPPORT' });
  return address;
}
