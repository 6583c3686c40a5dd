import type { DatabaseSync } from 'node:sqlite';
import { fingerprint, type KnownNode, type Stamp } from '../../core/alerts/node-watch.ts';
import { compareCursors, type Order } from '../../core/ports.ts';
import { HOUR_MS, hourOf } from '../../core/time/time.ts';
import type { NodeTable } from '../database/node-table.ts';
import type { Columns } from './chunk.ts';
import { RawTable } from './raw-table.ts';

export interface PendingPart {
  readonly node: string;
  readonly columns: Columns;
}

/** Samples of one node in a segment. */
export interface SegmentPart extends PendingPart {
  readonly segment: number;
}

interface PendingSegment {
  readonly segment: number;
  readonly parts: readonly PendingPart[];
}

/** Number of a node's latest statuses that are loaded, to recognize repetitions by its DDS writer. */
const RECENT = 64;
/** Number of segments before a node's last one that are searched for these statuses. */
const RECENT_SEGMENTS = 5;

/** Limit of samples of newcomers in memory; beyond it the oldest are dropped. */
const MAX_HELD = 200_000;

/**
 * Raw samples: those in the database merged with the pending ones. They arrive in segments; a node's part of a segment is written as a
 * whole and at most once. Reads include written and pending samples.
 */
export class RawSamples {
  readonly #nodes: NodeTable;
  #table: RawTable;
  #pending: PendingSegment[] = [];

  constructor(db: DatabaseSync, nodes: NodeTable) {
    this.#nodes = nodes;
    this.#table = new RawTable(db);
  }

  /** Continues with another database; pending samples stay pending. */
  replace(db: DatabaseSync): void {
    this.#table = new RawTable(db);
  }

  add(segment: number, part: PendingPart): void {
    const index = this.#pending.findIndex((candidate) => candidate.segment === segment);
    const parts = [...(this.#pending[index]?.parts ?? []), part];
    if (index < 0) this.#pending.push({ segment, parts });
    else this.#pending[index] = { segment, parts };
  }

  /** Drops a segment that could not be written before the backlog was full. */
  forget(segment: number): void {
    this.#pending = this.#pending.filter((candidate) => candidate.segment !== segment);
  }

  /** Pending segments up to and including this one. */
  due(segment: number): readonly PendingSegment[] {
    return this.#pending.filter(
      (candidate) => candidate.segment <= segment && candidate.parts.some(({ node }) => this.#nodes.isStored(node)),
    );
  }

  /** Runs in a transaction; the caller calls written() after its commit or reload() after its rollback. */
  write(segments: readonly PendingSegment[]): void {
    for (const { segment, parts } of segments) {
      for (const node of new Set(parts.map((part) => part.node))) {
        if (!this.#nodes.isStored(node)) continue;
        const columns = parts.filter((part) => part.node === node).map((part) => part.columns);
        this.#table.write(this.#nodes.idOf(node), segment, columns);
      }
    }
    const last = segments.at(-1);
    if (last) this.#table.endCommit(last.segment);
  }

  /** Removes written samples from memory; samples of newcomers stay. */
  written(segments: readonly PendingSegment[]): void {
    let held = 0;
    const isHeld = ({ columns }: PendingPart): boolean => {
      held += columns.count;
      return held <= MAX_HELD;
    };
    this.#pending = this.#pending
      .toReversed()
      .map((pending) => ({
        segment: pending.segment,
        parts: pending.parts.filter((part) => (this.#nodes.isStored(part.node) ? !segments.includes(pending) : isHeld(part))),
      }))
      .filter(({ parts }) => parts.length > 0)
      .reverse();
  }

  /** Drops the pending samples of a node. */
  drop(node: string): void {
    this.#pending = this.#pending
      .map(({ segment, parts }) => ({ segment, parts: parts.filter((part) => part.node !== node) }))
      .filter(({ parts }) => parts.length > 0);
  }

  /** Must be called after a transaction was rolled back. */
  reload(): void {
    this.#table.reload();
  }

  /** Whether a segment found in the spool had been written before the crash. */
  hasSegment(segment: number, node: string): boolean {
    const id = this.#nodes.find(node);
    return id !== null && this.#table.hasSegment(id, segment);
  }

  /** Drops pending samples that were written before a crash, which only the database shows. Returns the ones still pending. */
  dropWritten(): PendingPart[] {
    this.#pending = this.#pending.map(({ segment, parts }) => ({
      segment,
      parts: parts.filter(({ node }) => !this.hasSegment(segment, node)),
    }));
    return this.#pending.flatMap(({ parts }) => parts);
  }

  /** Names of the nodes with pending samples that will be written. */
  nodesWaiting(): string[] {
    return this.#pending.flatMap(({ parts }) => parts.map(({ node }) => node)).filter((node) => this.#nodes.isStored(node));
  }

  /** Samples that may be in the range, ordered by time, written and pending. In `desc` the last chunk comes first. */
  chunks(node: string, fromMs: number, toMs: number, order: Order): Generator<Columns> {
    return this.#table.chunks(this.#nodes.find(node), this.#pendingOf(node), fromMs, toMs, order);
  }

  /** As chunks(), in `asc` and for written samples only. */
  writtenChunks(nodeId: number, fromMs: number, toMs: number): Generator<Columns> {
    return this.#table.chunks(nodeId, [], fromMs, toMs, 'asc');
  }

  /** Parts of the segments in the range (both ends included), written and pending, ascending by segment. `node` null: of every node. */
  *segmentParts(fromSegment: number, node: string | null, toSegment = Number.POSITIVE_INFINITY): Generator<SegmentPart> {
    const id = node === null ? null : this.#nodes.find(node);
    const names = new Map([...this.#nodes.ids].map(([name, nodeId]) => [nodeId, name]));
    const hasWritten = node === null || id !== null;
    const pending = this.#pending.filter(({ segment }) => segment >= fromSegment).toSorted((a, b) => a.segment - b.segment);
    for (let from = fromSegment; ; ) {
      const written = hasWritten ? this.#table.nextSegment(from) : null;
      const waiting = pending.filter(({ segment }) => segment >= from);
      const segment = Math.min(written ?? Number.POSITIVE_INFINITY, waiting[0]?.segment ?? Number.POSITIVE_INFINITY);
      if (segment > toSegment || segment === Number.POSITIVE_INFINITY) return;
      if (segment === written) {
        for (const { nodeId, columns } of this.#table.ofSegment(segment, id)) yield { segment, node: names.get(nodeId) as string, columns };
      }
      for (const one of waiting) {
        if (one.segment !== segment) break;
        for (const part of one.parts) if (node === null || part.node === node) yield { segment, ...part };
      }
      from = segment + 1;
    }
  }

  /** The last segment written; 0: there is none. */
  lastSegment(): number {
    return this.#table.lastSegment();
  }

  /** First and last receive times of the remote nodes; `lastHourMs` gives the last one where raw samples are pruned. */
  remoteNodes(lastHourMs: (node: string) => number | null): KnownNode[] {
    const spans = this.#table.spans();
    return [...this.#nodes.remoteNodes(this.nodesWaiting())].map((name) => {
      const span = spans.get(this.#nodes.find(name) ?? -1);
      const waiting = this.#pending.filter(({ parts }) => parts.some((part) => part.node === name)).map(({ segment }) => segment);
      const segments = span ? [...waiting, span.last] : waiting;
      const segment = segments.length === 0 ? null : Math.max(...segments);
      const hourMs = lastHourMs(name);
      const lastSeenMs = segment ?? (hourMs === null ? null : hourMs + HOUR_MS);
      const recent = segment === null ? [] : this.#recentStamps(name, segment);
      return { name, firstSeenMs: span?.first ?? lastSeenMs, lastSeenMs, recent };
    });
  }

  #recentStamps(name: string, segment: number): Stamp[] {
    const rows: { segment: number; sequence: number; stamp: Stamp }[] = [];
    const from = this.#table.segmentBefore(segment, RECENT_SEGMENTS);
    for (const { segment: at, columns } of this.segmentParts(from, name, segment)) {
      for (let row = 0; row < columns.count; row += 1) {
        const values = columns.metrics.map((column) => column[row] as number);
        const stamp = { ms: columns.timestampMs[row] as number, print: fingerprint(values, columns.status[row] as number) };
        rows.push({ segment: at, sequence: columns.sequence[row] as number, stamp });
      }
    }
    return rows
      .sort(compareCursors)
      .slice(-RECENT)
      .map(({ stamp }) => stamp);
  }

  /** Whether the node's raw samples of an hour are there and none were removed to save space. */
  hasWholeHour(node: string, hourMs: number): boolean {
    const id = this.#nodes.find(node);
    if (id !== null && this.#table.isWhole(id, hourMs)) return true;
    return this.#pendingOf(node).some(({ timestampMs }) => timestampMs.some((ms) => hourOf(ms) === hourMs));
  }

  /** Time of the node's first raw sample. */
  firstMs(node: string): number | null {
    const id = this.#nodes.find(node);
    let first = (id === null ? null : this.#table.firstMs(id)) ?? Number.POSITIVE_INFINITY;
    for (const { timestampMs } of this.#pendingOf(node)) for (const ms of timestampMs) first = Math.min(first, ms);
    return Number.isFinite(first) ? first : null;
  }

  /** The node's newest samples; null: there are none. */
  newestChunk(node: string): Columns | null {
    for (const columns of this.chunks(node, 0, Number.MAX_SAFE_INTEGER, 'desc')) return columns;
    return null;
  }

  #pendingOf(node: string): Columns[] {
    const parts = this.#pending.flatMap((pending) => pending.parts.filter((part) => part.node === node));
    return parts.map(({ columns }) => columns).filter(({ count }) => count > 0);
  }
}
