import type { DatabaseSync } from 'node:sqlite';
import type { HeardNode } from '../core/node-watch.ts';
import type { Order } from '../core/ports.ts';
import type { Columns } from './chunk.ts';
import { heardNodes } from './heard.ts';
import { LagTable } from './lag-table.ts';
import type { NodeTable } from './node-table.ts';
import { RawTable } from './raw-table.ts';
import type { SegmentPart } from './recorded.ts';
import { type PendingPart, type PendingSegment, type SegmentSource, segmentParts } from './segments.ts';

/** Samples of nodes that are not kept, which wait for that; beyond it the oldest are dropped. */
const MAX_HELD = 200_000;

/**
 * Raw samples, and over those in the database the ones that wait to be written there. They come in segments; of each node a segment is
 * written whole and at most once. Reads see everything added, written or not.
 */
export class RawSamples {
  readonly #nodes: NodeTable;
  readonly #nowMs: () => number;
  #table: RawTable;
  #lags: LagTable;
  #pending: PendingSegment[] = [];

  constructor(db: DatabaseSync, nodes: NodeTable, nowMs: () => number) {
    this.#nodes = nodes;
    this.#nowMs = nowMs;
    this.#table = new RawTable(db);
    this.#lags = new LagTable(db);
  }

  /** Goes on with another database; what waits stays waiting. */
  replace(db: DatabaseSync): void {
    this.#table = new RawTable(db);
    this.#lags = new LagTable(db);
  }

  add(segment: number, part: PendingPart): void {
    const index = this.#pending.findIndex((candidate) => candidate.segment === segment);
    const parts = [...(this.#pending[index]?.parts ?? []), part];
    if (index < 0) this.#pending.push({ segment, parts });
    else this.#pending[index] = { segment, parts };
  }

  /** Gives up a segment that could not be written for too long. */
  forget(segment: number): void {
    this.#pending = this.#pending.filter((candidate) => candidate.segment !== segment);
  }

  /** The segments up to and with this one that wait. */
  due(segment: number): readonly PendingSegment[] {
    return this.#pending.filter(
      (candidate) => candidate.segment <= segment && candidate.parts.some(({ node }) => this.#nodes.isKept(node)),
    );
  }

  /** To be called in a transaction, after which written() or reload() tells how it ended. */
  write(segments: readonly PendingSegment[]): void {
    for (const { segment, parts } of segments) {
      for (const node of new Set(parts.map((part) => part.node))) {
        if (!this.#nodes.isKept(node)) continue;
        const columns = parts.filter((part) => part.node === node).map((part) => part.columns);
        const id = this.#nodes.idOf(node);
        this.#table.write(id, segment, columns, (fromMs) => this.#lags.note(id, segment, fromMs));
      }
    }
  }

  /** These no longer wait, but for what is of nodes that are not kept. */
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
        parts: pending.parts.filter((part) => (this.#nodes.isKept(part.node) ? !segments.includes(pending) : isHeld(part))),
      }))
      .filter(({ parts }) => parts.length > 0)
      .reverse();
  }

  /** Forgets what waits of a node. */
  drop(node: string): void {
    this.#pending = this.#pending
      .map(({ segment, parts }) => ({ segment, parts: parts.filter((part) => part.node !== node) }))
      .filter(({ parts }) => parts.length > 0);
  }

  /** Rows were removed, or a transaction was undone. */
  reload(): void {
    this.#lags.reload();
  }

  /** Whether a segment found after a crash had been written before it. */
  hasSegment(segment: number, node: string, timestampMs: Float64Array): boolean {
    const id = this.#nodes.find(node);
    return id !== null && this.#table.hasSegment(id, segment, timestampMs);
  }

  /** What waited may have been written before a crash: whether it was can be seen only in the database. Returns what still waits. */
  dropWritten(): PendingPart[] {
    this.#pending = this.#pending.map(({ segment, parts }) => ({
      segment,
      parts: parts.filter(({ node, columns }) => !this.hasSegment(segment, node, columns.timestampMs)),
    }));
    return this.#pending.flatMap(({ parts }) => parts);
  }

  /** Names of the nodes with samples that wait to be written. */
  nodesWaiting(): string[] {
    return this.#pending.flatMap(({ parts }) => parts.map(({ node }) => node)).filter((node) => this.#nodes.isKept(node));
  }

  /** Samples that may lie in the range, in order of time, written ones and pending ones. In `desc` the last chunk comes first. */
  chunks(node: string, fromMs: number, toMs: number, order: Order): Generator<Columns> {
    return this.#table.chunks(this.#nodes.find(node), this.#pendingOf(node), fromMs, toMs, order);
  }

  /** The same of those that are written, in `asc`. */
  writtenChunks(nodeId: number, fromMs: number, toMs: number): Generator<Columns> {
    return this.#table.chunks(nodeId, [], fromMs, toMs, 'asc');
  }

  /** Hours with samples that are written, ascending. */
  writtenHours(nodeId: number): number[] {
    return this.#table.hours(nodeId);
  }

  /** Parts of the segments from this one on, by segment ascending. */
  segmentParts(fromSegment: number, node: string | null): Generator<SegmentPart> {
    return segmentParts(this.#source(), fromSegment, node);
  }

  /** The last segment that is written; 0: there is none. */
  lastSegment(): number {
    const newest = Math.max(0, ...[...this.#nodes.ids.values()].map((id) => this.#table.lastSegment(id) ?? 0));
    // What is last in time was written last, unless the clock was set back since.
    return newest <= this.#nowMs() ? newest : this.#table.searchLastSegment();
  }

  /** When the nodes were last heard whose samples came from elsewhere; by `lastHourMs` where no raw sample of one is kept any longer. */
  heard(lastHourMs: (node: string) => number | null): HeardNode[] {
    return heardNodes(this.#source(), this.#nodes.gathered(this.nodesWaiting()), lastHourMs);
  }

  /** Time of the node's first sample that is still kept as such. */
  firstMs(node: string): number | null {
    const id = this.#nodes.find(node);
    let first = (id === null ? null : this.#table.firstMs(id)) ?? Number.POSITIVE_INFINITY;
    for (const { timestampMs } of this.#pendingOf(node)) for (const ms of timestampMs) first = Math.min(first, ms);
    return Number.isFinite(first) ? first : null;
  }

  /** The node's newest samples, for what was known before this start. */
  newestChunk(node: string): Columns | null {
    for (const columns of this.chunks(node, 0, Number.MAX_SAFE_INTEGER, 'desc')) return columns;
    return null;
  }

  #pendingOf(node: string): Columns[] {
    const parts = this.#pending.flatMap((pending) => pending.parts.filter((part) => part.node === node));
    return parts.map(({ columns }) => columns).filter(({ count }) => count > 0);
  }

  #source(): SegmentSource {
    return { nodes: this.#nodes.ids, raw: this.#table, lags: this.#lags, pending: this.#pending, nowMs: this.#nowMs() };
  }
}
