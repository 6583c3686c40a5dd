import type { RemoteNode } from './remote-node.ts';

/** Limit of remote nodes, which bounds memory when a sender invents names. */
export const MAX_NODES = 512;
/** Limit of established nodes; the remainder is reserved for newcomers. */
const MAX_ESTABLISHED = 480;
/** Number of nodes at which the capacity alert is raised. */
export const SHORT_FROM = Math.ceil(0.9 * MAX_NODES);
/** A newcomer may be evicted after this long without data; nodes at 0.1 Hz are not. */
const NEWCOMER_STALE_SECONDS = 15;

/** Decides which remote nodes are listed and which are evicted; nodes seen over a longer time take precedence. */
export class NodeLimit {
  readonly #nodes: ReadonlyMap<string, RemoteNode>;
  /** Monotonic time until which no newcomer can be evicted. */
  #fullUntilSeconds = Number.NEGATIVE_INFINITY;

  /** `nodes`: the live list. */
  constructor(nodes: ReadonlyMap<string, RemoteNode>) {
    this.#nodes = nodes;
  }

  hasCapacity(isEstablished: boolean): boolean {
    return this.#nodes.size < MAX_NODES && (!isEstablished || this.#established().length < MAX_ESTABLISHED);
  }

  /** The newcomer to evict when the list is full: of those without recent data the one with the shortest span; null: none. */
  nodeToEvict(now: number): RemoteNode | null {
    if (this.#nodes.size < MAX_NODES || now < this.#fullUntilSeconds) return null;
    const newcomers = [...this.#nodes.values()].filter(({ isEstablished }) => !isEstablished);
    const evicted = shortestSpan(newcomers.filter(({ lastSeenSeconds }) => now - lastSeenSeconds >= NEWCOMER_STALE_SECONDS));
    if (!evicted) this.#fullUntilSeconds = Math.min(...newcomers.map(({ lastSeenSeconds }) => lastSeenSeconds)) + NEWCOMER_STALE_SECONDS;
    return evicted;
  }

  /**
   * Establishes a newcomer. If the limit is reached, the stale established node with the shortest span is evicted and returned, provided
   * that span is at most half of the newcomer's: names invented for a minute cannot block a robot for a week. Otherwise the node stays
   * a newcomer.
   */
  establish(node: RemoteNode, now: number): RemoteNode | null {
    const established = this.#established();
    const isFull = established.length >= MAX_ESTABLISHED;
    const evicted = isFull ? shortestSpan(established.filter((one) => one.isStale(now))) : null;
    if (isFull && (!evicted || evicted.spanSeconds * 2 > node.spanSeconds)) return null;
    node.isEstablished = true;
    return evicted;
  }

  #established(): RemoteNode[] {
    return [...this.#nodes.values()].filter(({ isEstablished }) => isEstablished);
  }
}

/** Null for an empty list. */
function shortestSpan(nodes: readonly RemoteNode[]): RemoteNode | null {
  return nodes.toSorted((a, b) => a.spanSeconds - b.spanSeconds)[0] ?? null;
}
