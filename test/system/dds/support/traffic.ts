import type { Test } from 'tap';
import { GraphNode } from '../../../../testkit/dds/graph-node.ts';
import { Peer, type Vendor } from '../../../../testkit/dds/peers.ts';
import { arrivalsAt, missing, numberOf, range, reached } from '../../../../testkit/dds/streams.ts';
import type { Host } from '../../../../testkit/network/network.ts';

const TIMEOUT_SECONDS = 120;
const DEPTH = 10;
/** Samples of every stream: at 10 Hz long enough that a disturbance begins and ends within it. */
const COUNT = 100;
const BEFORE = 15;
/** The leases of all participants: one that is stopped for longer is removed. */
const LEASE_SECONDS = 6;

/**
 * The node with its stream, and of each vendor a subscriber to it and a publisher: numbered statuses in both directions, at 10 Hz, that
 * are kept by keep last 10. A disturbance may cost those that the history had dropped when it ended, and no others.
 */
export class Traffic {
  readonly node: GraphNode;
  readonly subscribers: readonly Peer[];
  readonly publishers: readonly Peer[];
  readonly #vendors: readonly Vendor[];
  /** The numbers that had arrived when the disturbance began, by direction and vendor. */
  readonly #before = new Map<string, number>();

  private constructor(node: GraphNode, vendors: readonly Vendor[], subscribers: readonly Peer[], publishers: readonly Peer[]) {
    this.node = node;
    this.#vendors = vendors;
    this.subscribers = subscribers;
    this.publishers = publishers;
  }

  /** Resolves when both directions of every vendor flow. `addresses`: the addresses that the peers bind; none: any. */
  static async start(brain: Host, others: Host, vendors: readonly Vendor[], addresses = others.addresses): Promise<Traffic> {
    const node = await GraphNode.start(brain, { leaseSeconds: LEASE_SECONDS });
    const lease = ['--lease', String(LEASE_SECONDS)];
    const fields = ['status=OK', 'timestamp=2026-03-04T05:06:07.089Z'].flatMap((field) => ['--set', field]);
    const rate = ['--hz', '10', '--count', String(COUNT), '--await-readers', '1', '--stay', '--sequence', 'cpu_percent'];
    const subscribers = await Promise.all(
      vendors.map((vendor) => Peer.start(others, vendor, 'subscribe', ['--topic', '/health_status', ...lease], addresses)),
    );
    await node.detailsUntil(({ subscribers: found }) => found === vendors.length, TIMEOUT_SECONDS);
    const publishers = await Promise.all(
      vendors.map((vendor) => {
        const options = ['--topic', `/${vendor}/health_status`, '--set', `node_name=${vendor}`, ...rate, ...fields, ...lease];
        return Peer.start(others, vendor, 'publish', options, addresses);
      }),
    );
    const traffic = new Traffic(node, vendors, subscribers, publishers);
    for (const vendor of vendors) await traffic.#fromPeer(vendor, 1);
    node.stream({ hz: 10, count: COUNT });
    for (const [index, vendor] of vendors.entries()) {
      await reached(subscribers[index] as Peer, BEFORE, TIMEOUT_SECONDS);
      await traffic.#fromPeer(vendor, BEFORE);
    }
    for (const vendor of vendors) {
      for (const direction of ['to', 'from'] as const) {
        traffic.#before.set(`${direction} ${vendor}`, Math.max(...traffic.#arrived(direction, vendor)));
      }
    }
    return traffic;
  }

  /** Resolves when the node has published `count` more statuses: the disturbance lasts that long. */
  async publishes(count: number): Promise<void> {
    const since = await this.node.lastPublished();
    await this.node.waitFor('published', ({ number }) => number >= Math.min(COUNT, since + count), TIMEOUT_SECONDS);
  }

  /** Waits for the end of all streams, and judges what arrived of them. */
  async judge(t: Test): Promise<void> {
    for (const [index, vendor] of this.#vendors.entries()) {
      await reached(this.subscribers[index] as Peer, COUNT, TIMEOUT_SECONDS);
      await this.#fromPeer(vendor, COUNT);
    }
    for (const vendor of this.#vendors) {
      for (const direction of ['to', 'from'] as const) {
        const what = `${direction} ${vendor}`;
        const arrived = this.#arrived(direction, vendor);
        // A peer whose lease had ended is discovered again, and may receive the history once more.
        const fresh = [...new Set(arrived)];
        t.same(
          fresh,
          fresh.toSorted((a, b) => a - b),
          `${what}: in order`,
        );
        const gone = missing(arrived, 1, COUNT);
        const [first, last] = [gone[0] ?? COUNT + 1, gone.at(-1) ?? 0];
        t.ok(first > (this.#before.get(what) ?? 0), `${what}: what had arrived before is not gone`);
        t.same(gone, gone.length === 0 ? [] : range(first, last), `${what}: at most one gap (${gone.length} gone)`);
        t.ok(last <= COUNT - DEPTH, `${what}: nothing of the last ten is lost`);
      }
    }
  }

  #arrived(direction: 'to' | 'from', vendor: Vendor): number[] {
    if (direction === 'to') return arrivalsAt(this.subscribers[this.#vendors.indexOf(vendor)] as Peer).map(numberOf);
    const own = this.node.all('health').filter(({ status }) => status.node_name === vendor);
    return own.map(({ status }) => status.cpu_percent ?? 0);
  }

  async #fromPeer(vendor: Vendor, number: number): Promise<void> {
    const isReached = (name: string, cpu: number | null): boolean => name === vendor && (cpu ?? 0) >= number;
    await this.node.waitFor('health', ({ status }) => isReached(status.node_name, status.cpu_percent), TIMEOUT_SECONDS);
  }
}
