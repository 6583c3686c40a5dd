import { STATUSES, worstFirst } from '../../../src/core/alerts/alert.ts';
import { duration, minuteOfDay } from '../format.ts';
import { messages } from '../messages/messages.ts';
import type { HealthStatus, NodeState, Readings, Status } from '../types.ts';
import { staleAfterMs } from './connection.ts';

/** The last health status of a node and when it was received, in performance.now() time. */
export interface ReceivedStatus {
  readonly health: HealthStatus;
  readonly atMs: number;
}

/** A node as the overview shows it. */
export interface Tile {
  readonly node: string;
  readonly isLocal: boolean;
  /** UNKNOWN if the node is stale. */
  readonly status: Status;
  /** Last known values; null: no status received yet. */
  readonly readings: Readings | null;
  readonly ageSeconds: number | null;
  readonly isStale: boolean;
  /** Wall-clock time at which the node left the graph in an orderly way; null: it is present, or disappeared without notice. */
  readonly leftMs: number | null;
}

/** `robot-2` before `robot-10`. One collator for all: localeCompare with options creates one for each comparison. */
export const compareNames = new Intl.Collator(undefined, { numeric: true }).compare;

const DEFAULT_PERIOD_SECONDS = 1;

export function hertzOf(node: NodeState | null): number {
  return 1 / (node?.period_seconds ?? DEFAULT_PERIOD_SECONDS);
}

/** A node's wall clock minus performance.now(), from a /status received at `statusMs`; null: no data from the node. */
export function clockOffsetMs({ age_seconds, timestamp }: NodeState, statusMs: number): number | null {
  return timestamp === null || age_seconds === null ? null : Date.parse(timestamp) + age_seconds * 1000 - statusMs;
}

/** The last health status of each node, from the event stream. */
export class Fleet {
  readonly #received = new Map<string, ReceivedStatus>();

  recordStatus(health: HealthStatus, atMs: number): void {
    this.#received.set(health.node_name, { health, atMs });
  }

  get(node: string): ReceivedStatus | null {
    return this.#received.get(node) ?? null;
  }

  /** Removes the nodes that /status no longer lists. */
  removeAllExcept(nodes: readonly NodeState[]): void {
    const names = new Set(nodes.map(({ node_name }) => node_name));
    for (const name of this.#received.keys()) if (!names.has(name)) this.#received.delete(name);
  }

  /** Sorted: local node, nodes that are not OK, other nodes, nodes that left; then by name. `statusMs`: when `nodes` was received. */
  tiles(nodes: readonly NodeState[], statusMs: number, nowMs: number): Tile[] {
    return nodes.map((node) => this.#tile(node, statusMs, nowMs)).sort((a, b) => rank(a) - rank(b) || compareNames(a.node, b.node));
  }

  #tile(state: NodeState, statusMs: number, nowMs: number): Tile {
    const received = this.get(state.node_name);
    const statusAgeMs = state.age_seconds === null ? null : state.age_seconds * 1000 + nowMs - statusMs;
    const ageMs = received ? nowMs - received.atMs : statusAgeMs;
    const isStale = ageMs === null || ageMs > staleAfterMs(hertzOf(state));
    const status = received?.health.status ?? state.status;
    return {
      node: state.node_name,
      isLocal: state.local,
      status: isStale ? 'UNKNOWN' : status,
      readings: received?.health ?? null,
      ageSeconds: ageMs === null ? null : ageMs / 1000,
      isStale,
      leftMs: state.left === null || (received && received.atMs > statusMs) ? null : Date.parse(state.left),
    };
  }
}

function rank({ isLocal, leftMs, status }: Tile): number {
  if (isLocal) return 0;
  if (leftMs !== null) return 3;
  return status === 'OK' ? 2 : 1;
}

/** The remote node with the worst status; null: all remote nodes are OK or have left. */
export function worstOther(tiles: readonly Tile[]): Tile | null {
  const [worst] = tiles
    .filter(({ isLocal, leftMs, status }) => !isLocal && leftMs === null && status !== 'OK')
    .sort((a, b) => worstFirst(a.status, b.status));
  return worst ?? null;
}

/** The number of nodes in each status, worst first. */
export function fleetText(tiles: readonly Tile[]): string {
  const { nodes, status: statuses } = messages;
  const present = tiles.filter(({ leftMs }) => leftMs === null);
  const parts = [
    ...STATUSES.toReversed().map((status) => {
      const word = status === 'UNKNOWN' ? nodes.withoutData : statuses[status].word;
      return [present.filter((tile) => tile.status === status).length, word] as const;
    }),
    [tiles.length - present.length, nodes.left] as const,
  ];
  const counts = parts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  return nodes.summary(tiles.length, counts);
}

/** How old the data of a node is. The age in seconds is shown only for stale nodes; for the others a running count would distract. */
export function ageText({ ageSeconds, isLocal, isStale, leftMs }: Tile, nowMs: number): string {
  const { nodes } = messages;
  if (isLocal && !isStale) return nodes.here;
  if (leftMs !== null) return nodes.leftAt(minuteOfDay(leftMs, nowMs));
  if (ageSeconds === null) return nodes.noDataYet;
  return isStale ? nodes.ago(duration(ageSeconds)) : nodes.live;
}
