import type { Test } from 'tap';
import { GraphNode } from '../../../../testkit/dds/graph-node.ts';
import { Peer, type Vendor } from '../../../../testkit/dds/peers.ts';
import { arrivalsAt, type Counted, numberOf, outageOf, publishedUntil, reached, wait } from '../../../../testkit/dds/streams.ts';
import type { Host } from '../../../../testkit/network/network.ts';

const PATIENCE_SECONDS = 60;
/** After a disturbance: leases of 20 s may have to end first, and some announce themselves every eight seconds. */
export const BACK_SECONDS = 30;

/** The node with its stream, and of each vendor a subscriber to it and a publisher, all at 10 Hz. */
export class Traffic {
  readonly node: GraphNode;
  readonly vendors: readonly Vendor[];
  readonly subscribers: readonly Peer[];
  readonly publishers: readonly Peer[];

  private constructor(node: GraphNode, vendors: readonly Vendor[], subscribers: readonly Peer[], publishers: readonly Peer[]) {
    this.node = node;
    this.vendors = vendors;
    this.subscribers = subscribers;
    this.publishers = publishers;
  }

  /** Resolves when both directions of every vendor flow. `addresses`: those that the peers are bound to; none: any. */
  static async start(brain: Host, others: Host, vendors: readonly Vendor[], addresses = others.addresses): Promise<Traffic> {
    const node = await GraphNode.start(brain);
    node.stream({ hz: 10, count: 0 });
    const fields = ['status=OK', 'timestamp=2026-03-04T05:06:07.089Z'].flatMap((field) => ['--set', field]);
    const rate = ['--hz', '10', '--sequence', 'cpu_percent'];
    const subscribers = vendors.map((vendor) => Peer.start(others, vendor, 'subscribe', ['--topic', '/health_status'], addresses));
    const publishers = vendors.map((vendor) => {
      const options = ['--topic', `/${vendor}/health_status`, '--set', `node_name=${vendor}`, ...rate, ...fields];
      return Peer.start(others, vendor, 'publish', options, addresses);
    });
    const traffic = new Traffic(node, vendors, await Promise.all(subscribers), await Promise.all(publishers));
    for (const [index, vendor] of vendors.entries()) {
      await traffic.subscribers[index]?.waitForCount('sample', 5, () => true, PATIENCE_SECONDS);
      await node.waitForCount('health', 5, ({ status }) => status.node_name === vendor, PATIENCE_SECONDS);
    }
    return traffic;
  }

  /**
   * Judges both directions of every vendor after a disturbance, `seconds` from now on: nothing of the last ten is lost, and they flow
   * again in bounded time after it ended.
   */
  async judge(t: Test, disturbedMs: number, endedMs: number, seconds: number): Promise<void> {
    const disturbance = [disturbedMs, endedMs] as const;
    await wait(seconds);
    for (const [index, vendor] of this.vendors.entries()) {
      const [subscriber, publisher] = [this.subscribers[index] as Peer, this.publishers[index] as Peer];
      const forth = publishedUntil(this.node, Date.now());
      await reached(subscriber, forth, PATIENCE_SECONDS);
      const heard = arrivalsAt(subscriber).map((arrival): Counted => ({ number: numberOf(arrival), ms: arrival.wall_ms }));
      const published = this.node.all('published').map(({ number, wall_ms: ms }): Counted => ({ number, ms }));
      this.#report(t, `to ${vendor}`, published, heard, disturbance, forth);

      const written = publisher.all('written').map(({ number, wall_ms: ms }): Counted => ({ number, ms }));
      const back = written.at(-1)?.number ?? 0;
      const isOf = (name: string, number: unknown): boolean => name === vendor && Number(number) >= back;
      await this.node.waitFor('health', ({ status }) => isOf(status.node_name, status.cpu_percent), PATIENCE_SECONDS);
      const own = this.node.all('health').filter(({ status }) => status.node_name === vendor);
      const told = own.map(({ status, wall_ms: ms }): Counted => ({ number: status.cpu_percent ?? 0, ms }));
      this.#report(t, `from ${vendor}`, written, told, disturbance, back);
    }
  }

  #report(t: Test, what: string, published: Counted[], arrived: Counted[], [fromMs, toMs]: readonly [number, number], last: number): void {
    const { gone, backSeconds, isWithinPromise } = outageOf(published, arrived, fromMs, last);
    const span =
      gone.length > 0 ? `${gone.length} gone, ${gone[0]} to ${gone.at(-1)}, back after ${backSeconds.toFixed(1)} s` : 'nothing gone';
    t.ok(isWithinPromise, `${what}: nothing of the last ten is lost (${span})`);
    t.ok(backSeconds < (toMs - fromMs) / 1000 + BACK_SECONDS, `${what}: it goes on in bounded time`);
  }
}
