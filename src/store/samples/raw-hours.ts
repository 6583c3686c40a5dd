import type { DatabaseSync } from 'node:sqlite';
import type { Order } from '../../core/ports.ts';
import { HOUR_MS } from '../../core/time/time.ts';

/** Segments, both ends included. */
export interface SegmentRange {
  readonly first: number;
  readonly last: number;
}

interface OpenHour {
  readonly hourMs: number;
  readonly first: number;
  last: number;
}

/** An hour is closed when a node has sent no status for this long. */
const IDLE_MS = 2 * HOUR_MS;

/**
 * Maps an hour of a node's timestamps to the segments that contain samples of it: raw samples are stored in order of arrival, but are
 * searched by time. One row per hour and node, written when the hour begins and when the next one does; the last segment of an hour in
 * progress is known in memory and, after a restart, from the samples. Clocks that are wrong or set make the ranges longer, never wrong.
 */
export class RawHours {
  readonly #db: DatabaseSync;
  /** The hour in progress of each node. */
  #open: Map<number, OpenHour> | null = null;

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Must be called for every chunk written, in its transaction. */
  record(nodeId: number, segment: number, hourMs: number): void {
    const openHours = this.#openHours();
    const open = openHours.get(nodeId);
    if (open?.hourMs === hourMs && segment >= open.first) {
      open.last = Math.max(open.last, segment);
      return;
    }
    if (open) this.#close(nodeId, open);
    const known = this.#row(nodeId, hourMs);
    const first = Math.min(known?.first ?? segment, segment);
    openHours.set(nodeId, { hourMs, first, last: Math.max(known?.last ?? segment, segment) });
    this.#db.prepare('INSERT OR REPLACE INTO raw_hour VALUES (?, ?, ?, NULL)').run(hourMs, nodeId, first);
  }

  /** Closes the hours of nodes without samples in the last two hours, so that a restart need not search for their ends. */
  closeOld(segment: number): void {
    for (const [nodeId, open] of this.#openHours()) {
      if (segment - open.last <= IDLE_MS) continue;
      this.#close(nodeId, open);
      this.#open?.delete(nodeId);
    }
  }

  /** Null: no samples of that hour. */
  range(nodeId: number, hourMs: number): SegmentRange | null {
    const open = this.#openHours().get(nodeId);
    return open?.hourMs === hourMs ? open : this.#row(nodeId, hourMs);
  }

  /** The first (or last) hour with samples that begins in the range. */
  next(nodeId: number, fromMs: number, toMs: number, order: Order): number | null {
    const row = this.#db
      .prepare(`SELECT hour_ms FROM raw_hour WHERE node_id = ? AND hour_ms >= ? AND hour_ms < ? ORDER BY hour_ms ${order} LIMIT 1`)
      .get(nodeId, fromMs, Math.min(toMs, Number.MAX_SAFE_INTEGER)) as { hour_ms: number } | undefined;
    return row?.hour_ms ?? null;
  }

  /** First and last segment of each node. */
  spans(): Map<number, SegmentRange> {
    const rows = this.#db
      .prepare('SELECT node_id, min(first_segment) AS first, max(last_segment) AS last FROM raw_hour GROUP BY node_id')
      .all() as { node_id: number; first: number; last: number | null }[];
    const openHours = this.#openHours();
    return new Map(
      rows.map(({ node_id, first, last }) => [node_id, { first, last: Math.max(last ?? 0, openHours.get(node_id)?.last ?? 0) }]),
    );
  }

  /** Discards the hours in progress, which are then read from the database. Must be called after a rollback. */
  reload(): void {
    this.#open = null;
  }

  #close(nodeId: number, { hourMs, last }: OpenHour): void {
    this.#db.prepare('UPDATE raw_hour SET last_segment = ? WHERE hour_ms = ? AND node_id = ?').run(last, hourMs, nodeId);
  }

  #row(nodeId: number, hourMs: number): SegmentRange | null {
    const row = this.#db
      .prepare('SELECT first_segment AS first, last_segment AS last FROM raw_hour WHERE hour_ms = ? AND node_id = ?')
      .get(hourMs, nodeId) as SegmentRange | undefined;
    return row ?? null;
  }

  #openHours(): Map<number, OpenHour> {
    if (this.#open) return this.#open;
    const rows = this.#db
      .prepare('SELECT node_id, hour_ms AS hourMs, first_segment AS first FROM raw_hour WHERE last_segment IS NULL')
      .all() as { node_id: number; hourMs: number; first: number }[];
    const from = rows.reduce((least, { first }) => Math.min(least, first), Number.MAX_SAFE_INTEGER);
    const found = this.#db.prepare('SELECT node_id, max(segment) AS last FROM raw WHERE segment >= ? GROUP BY node_id').all(from);
    const last = new Map((found as { node_id: number; last: number }[]).map((row) => [row.node_id, row.last]));
    this.#open = new Map(rows.map(({ node_id, hourMs, first }) => [node_id, { hourMs, first, last: last.get(node_id) ?? first }]));
    return this.#open;
  }
}
