import { staleAfterMs } from './connection.ts';
import { plural } from './format.ts';
import { type HealthStatus, type NodeState, type Readings, STATUSES, type Status } from './types.ts';

/** The last health status of a node, and when it came, on the clock of performance.now(). */
export interface ReceivedStatus {
  readonly health: HealthStatus;
  readonly atMs: number;
}

/** A node as the overview shows it. */
export interface Tile {
  readonly node: string;
  readonly isLocal: boolean;
  /** UNKNOWN when nothing has come for too long. */
  readonly status: Status;
  /** The last known; null: none since the service started. */
  readonly readings: Readings | null;
  readonly ageSeconds: number | null;
  readonly isStale: boolean;
  /** When it left the graph in an orderly way, wall clock; null: it is there, or vanished. */
  readonly leftMs: number | null;
}

const DEFAULT_PERIOD_SECONDS = 1;

export function hertzOf(node: NodeState | null): number {
  return 1 / (node?.period_seconds ?? DEFAULT_PERIOD_SECONDS);
}

/** A node's wall clock minus performance.now(), as /status told at `toldMs`; null: it has not been received. */
export function clockOffsetMs({ age_seconds, timestamp }: NodeState, toldMs: number): number | null {
  return timestamp === null || age_seconds === null ? null : Date.parse(timestamp) + age_seconds * 1000 - toldMs;
}

/** All nodes that the service hears, by what came on the event stream. */
export class Fleet {
  readonly #received = new Map<string, ReceivedStatus>();

  hear(health: HealthStatus, atMs: number): void {
    this.#received.set(health.node_name, { health, atMs });
  }

  of(node: string): ReceivedStatus | null {
    return this.#received.get(node) ?? null;
  }

  /** Forgets every other node. */
  keep(nodes: readonly NodeState[]): void {
    const names = new Set(nodes.map(({ node_name }) => node_name));
    for (const name of this.#received.keys()) if (!names.has(name)) this.#received.delete(name);
  }

  /** The overview: this machine first, then those that are not well, then the others, those that left last; by name. `toldMs`: when /status told of `nodes`. */
  tiles(nodes: readonly NodeState[], toldMs: number, nowMs: number): Tile[] {
    return nodes
      .map((node) => this.#tile(node, toldMs, nowMs))
      .sort((a, b) => rank(a) - rank(b) || a.node.localeCompare(b.node, undefined, { numeric: true }));
  }

  #tile(told: NodeState, toldMs: number, nowMs: number): Tile {
    const received = this.of(told.node_name);
    const toldAgeMs = told.age_seconds === null ? null : told.age_seconds * 1000 + nowMs - toldMs;
    const ageMs = received ? nowMs - received.atMs : toldAgeMs;
    const isStale = ageMs === null || ageMs > staleAfterMs(hertzOf(told));
    const status = received?.health.status ?? told.status;
    return {
      node: told.node_name,
      isLocal: told.local,
      status: isStale ? 'UNKNOWN' : status,
      readings: received?.health ?? null,
      ageSeconds: ageMs === null ? null : ageMs / 1000,
      isStale,
      leftMs: told.left === null || (received && received.atMs > toldMs) ? null : Date.parse(told.left),
    };
  }
}

function rank({ isLocal, leftMs, status }: Tile): number {
  if (isLocal) return 0;
  if (leftMs !== null) return 3;
  return status === 'OK' ? 2 : 1;
}

const SUMMARY = [
  ['CRITICAL', 'CRITICAL'],
  ['ERROR', 'ERROR'],
  ['WARNING', 'WARNING'],
  ['UNKNOWN', 'without data'],
  ['OK', 'OK'],
] as const;

/** The other node that is worst; null: they are all well, or there is none. */
export function worstOther(tiles: readonly Tile[]): Tile | null {
  const [worst] = tiles
    .filter(({ isLocal, leftMs, status }) => !isLocal && leftMs === null && status !== 'OK')
    .sort((a, b) => STATUSES.indexOf(b.status) - STATUSES.indexOf(a.status));
  return worst ?? null;
}

/** How many nodes there are and how they are, worst first. */
export function fleetText(tiles: readonly Tile[]): string {
  const there = tiles.filter(({ leftMs }) => leftMs === null);
  const parts = [
    ...SUMMARY.map(([status, word]) => [there.filter((tile) => tile.status === status).length, word] as const),
    [tiles.length - there.length, 'left'] as const,
  ];
  const told = parts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  return `${plural(tiles.length, 'node')}: ${told.join(', ')}`;
}
