import type { DatabaseSync } from 'node:sqlite';
import { fingerprint, type KnownNode, type Stamp } from '../../core/alerts/node-watch.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time.ts';
import { type SegmentSource, segmentParts } from '../samples/lag-table.ts';
import { compareMarks } from '../samples/recorded.ts';

/** Ids of the nodes with samples in the database, and whether each node is remote. */
export class NodeTable {
  readonly #localNode: string | null;
  #db: DatabaseSync;
  #ids = new Map<string, number>();
  readonly #remote = new Set<string>();
  /** Nodes without a row yet whose samples are to be written. */
  readonly #kept = new Set<string>();

  /** Nodes other than `localNode` are remote; null: the distinction is not needed. */
  constructor(db: DatabaseSync, localNode: string | null) {
    this.#db = db;
    this.#localNode = localNode;
  }

  /** Switches to another database, which counts as empty until load(). */
  replace(db: DatabaseSync): void {
    this.#db = db;
    this.#ids = new Map();
  }

  /** Loads the rows; also after a rollback, which removes the ids assigned in that transaction. */
  load(): void {
    const rows = this.#db.prepare('SELECT id, name, remote FROM node').all() as { id: number; name: string; remote: number }[];
    this.#ids = new Map(rows.map(({ id, name }) => [name, id]));
    this.#remote.clear();
    for (const { name, remote } of rows) if (remote !== 0) this.#remote.add(name);
  }

  get ids(): ReadonlyMap<string, number> {
    return this.#ids;
  }

  /** Null: the node has no samples in the database. */
  find(node: string): number | null {
    return this.#ids.get(node) ?? null;
  }

  /** Enables writing of the node's samples. */
  keep(node: string): void {
    this.#kept.add(node);
  }

  /** Whether the node's samples are written: false for a newcomer without stored samples. */
  isKept(node: string): boolean {
    return !this.#isRemote(node) || this.#ids.has(node) || this.#kept.has(node);
  }

  /** Inserts the node if it has no row yet. */
  idOf(node: string): number {
    const known = this.#ids.get(node);
    const isRemote = this.#isRemote(node);
    // A machine may take over the name of another one.
    if (known !== undefined && this.#remote.has(node) === isRemote) return known;
    this.#db
      .prepare('INSERT INTO node (name, remote) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET remote = excluded.remote')
      .run(node, isRemote ? 1 : 0);
    if (isRemote) this.#remote.add(node);
    else this.#remote.delete(node);
    const { id } = this.#db.prepare('SELECT id FROM node WHERE name = ?').get(node) as { id: number };
    this.#ids.set(node, id);
    return id;
  }

  /** The remote ones of the nodes in the database and of `others`. */
  remoteNodes(others: readonly string[]): Set<string> {
    return new Set([...this.#remote, ...others].filter((node) => this.#isRemote(node)));
  }

  #isRemote(node: string): boolean {
    return this.#localNode !== null && node !== this.#localNode;
  }
}

/** Number of a node's latest statuses that are loaded, to recognize repetitions by its DDS writer. */
const RECENT = 64;
/** How far before the last segment these statuses are searched. */
const RECENT_MS = 5 * MINUTE_MS;

/** First and last receive times of the remote nodes. `lastHourMs` returns a node's newest hour; null: there is none. */
export function findRemoteNodes(
  source: SegmentSource,
  remoteNodes: Iterable<string>,
  lastHourMs: (node: string) => number | null,
): KnownNode[] {
  return [...remoteNodes].map((name) => {
    const segment = lastSegment(source, name);
    const hourMs = lastHourMs(name);
    const lastSeenMs = segment ?? (hourMs === null ? null : hourMs + HOUR_MS);
    // This is the earliest sample by the node's own clock. If that clock was set, an earlier-received sample may exist, and the span
    // comes out shorter.
    const id = source.nodes.get(name);
    const firstSeenMs = (id === undefined ? null : source.raw.firstSegment(id)) ?? lastSeenMs;
    return { name, firstSeenMs, lastSeenMs, recent: segment === null ? [] : recentStamps(source, name, segment) };
  });
}

function lastSegment({ nodes, raw, lags, pending, nowMs }: SegmentSource, name: string): number | null {
  const waiting = pending.filter(({ parts }) => parts.some(({ node }) => node === name)).map(({ segment }) => segment);
  const id = nodes.get(name);
  if (id === undefined) return waiting.length === 0 ? null : Math.max(...waiting);
  // After a clock was set back, the latest sample in time is not the last one received.
  const lately = lags.ranges(id, nowMs - DAY_MS, Number.POSITIVE_INFINITY).map(({ toMs }) => raw.lastSegment(id, toMs));
  const segments = [...waiting, ...lately, raw.lastSegment(id)].filter((segment) => segment !== null);
  return segments.length === 0 ? null : Math.max(...segments);
}

function recentStamps(source: SegmentSource, name: string, segment: number): Stamp[] {
  const rows: { segment: number; sequence: number; stamp: Stamp }[] = [];
  for (const { segment: at, columns } of segmentParts(source, segment - RECENT_MS, name)) {
    for (let row = 0; row < columns.count; row += 1) {
      const values = columns.metrics.map((column) => column[row] as number);
      const stamp = { ms: columns.timestampMs[row] as number, print: fingerprint(values, columns.status[row] as number) };
      rows.push({ segment: at, sequence: columns.sequence[row] as number, stamp });
    }
  }
  return rows
    .sort(compareMarks)
    .slice(-RECENT)
    .map(({ stamp }) => stamp);
}
