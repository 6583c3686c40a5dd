import type { GatheredNode } from './gather-node.ts';

/** Other nodes at once: whoever sends under ever new names finds an end. */
export const MAX_NODES = 512;
/** Of these so many may be established: there is always a place for a newcomer, for as long as it takes to become one of them. */
const MAX_ESTABLISHED = 480;
/** From so many on places are short. */
export const SHORT_FROM = Math.ceil(0.9 * MAX_NODES);
/** A newcomer that was silent for so long gives its place to another node where none is left; nodes at 0.1 Hz keep theirs. */
const NEWCOMER_SILENT_SECONDS = 15;

/** Who may be on the list of other nodes, and who has to go for whom: places belong first to nodes that were heard over time. */
export class NodePlaces {
  readonly #nodes: ReadonlyMap<string, GatheredNode>;
  /** Until then no newcomer can give up its place. */
  #fullUntilSeconds = Number.NEGATIVE_INFINITY;

  /** `nodes`: the list as it is at any time. */
  constructor(nodes: ReadonlyMap<string, GatheredNode>) {
    this.#nodes = nodes;
  }

  hasRoom(isEstablished: boolean): boolean {
    return this.#nodes.size < MAX_NODES && (!isEstablished || this.#established().length < MAX_ESTABLISHED);
  }

  /** Of the newcomers that have fallen silent the one that was heard for the shortest time; null: none has to go, or none may. */
  leaver(now: number): GatheredNode | null {
    if (this.#nodes.size < MAX_NODES || now < this.#fullUntilSeconds) return null;
    const newcomers = [...this.#nodes.values()].filter(({ isEstablished }) => !isEstablished);
    const leaver = shortestHeard(newcomers.filter(({ lastHeardSeconds }) => now - lastHeardSeconds >= NEWCOMER_SILENT_SECONDS));
    if (!leaver) this.#fullUntilSeconds = Math.min(...newcomers.map(({ lastHeardSeconds }) => lastHeardSeconds)) + NEWCOMER_SILENT_SECONDS;
    return leaver;
  }

  /**
   * Establishes a newcomer that was heard over time. Where too many are, the silent one that was heard for the shortest time has to go, and is
   * returned, if that was less than half as long: names that somebody made up for a minute do not stand in the way of a robot for a week.
   * Where none has to go for it, it stays a newcomer.
   */
  establish(node: GatheredNode, now: number): GatheredNode | null {
    const established = this.#established();
    const isFull = established.length >= MAX_ESTABLISHED;
    const leaver = isFull ? shortestHeard(established.filter((one) => one.isSilent(now))) : null;
    if (isFull && (!leaver || leaver.spanSeconds * 2 > node.spanSeconds)) return null;
    node.isEstablished = true;
    return leaver;
  }

  #established(): GatheredNode[] {
    return [...this.#nodes.values()].filter(({ isEstablished }) => isEstablished);
  }
}

/** Null: there is none. */
function shortestHeard(nodes: readonly GatheredNode[]): GatheredNode | null {
  return nodes.toSorted((a, b) => a.spanSeconds - b.spanSeconds)[0] ?? null;
}
