import type { DatabaseSync } from 'node:sqlite';
import type { KnownNode } from '../../core/alerts/node-watch.ts';
import type { Order } from '../../core/ports.ts';
import { findRemoteNodes, type NodeTable } from '../database/node-table.ts';
import type { Columns } from './chunk.ts';
import { LagTable, type PendingPart, type PendingSegment, type SegmentSource, segmentParts } from './lag-table.ts';
import { RawTable } from './raw-table.ts';
import type { SegmentPart } from './recorded.ts';

/** Limit of samples of newcomers in memory; beyond it the oldest are dropped. */
const MAX_HELD = 200_000;

/**
 * Raw samples: those in the database merged with the pending ones. They arrive in segments; a node's part of a segment is written as a
 * whole and at most once. Reads include written and pending samples.
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

  /** Continues with another database; pending samples stay pending. */
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

  /** Drops a segment that could not be written before the backlog was full. */
  forget(segment: number): void {
    this.#pending = this.#pending.filter((candidate) => candidate.segment !== segment);
  }

  /** Pending segments up to and including this one. */
  due(segment: number): readonly PendingSegment[] {
    return this.#pending.filter(
      (candidate) => candidate.segment <= segment && candidate.parts.some(({ node }) => this.#nodes.isKept(node)),
    );
  }

  /** Runs in a transaction; the caller calls written() after its commit or reload() after its rollback. */
  write(segments: readonly PendingSegment[]): void {
    for (const { segment, parts } of segments) {
      for (const node of new Set(parts.map((part) => part.node))) {
        if (!this.#nodes.isKept(node)) continue;
        const columns = parts.filter((part) => part.node === node).map((part) => part.columns);
        const id = this.#nodes.idOf(node);
        this.#table.write(id, segment, columns, (fromMs) => this.#lags.record(id, segment, fromMs));
      }
    }
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
        parts: pending.parts.filter((part) => (this.#nodes.isKept(part.node) ? !segments.includes(pending) : isHeld(part))),
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

  /** Must be called after rows were removed or a transaction was rolled back. */
  reload(): void {
    this.#lags.reload();
  }

  /** Whether a segment found in the spool had been written before the crash. */
  hasSegment(segment: number, node: string, timestampMs: Float64Array): boolean {
    const id = this.#nodes.find(node);
    return id !== null && this.#table.hasSegment(id, segment, timestampMs);
  }

  /** Drops pending samples that were written before a crash, which only the database shows. Returns the ones still pending. */
  dropWritten(): PendingPart[] {
    this.#pending = this.#pending.map(({ segment, parts }) => ({
      segment,
      parts: parts.filter(({ node, columns }) => !this.hasSegment(segment, node, columns.timestampMs)),
    }));
    return this.#pending.flatMap(({ parts }) => parts);
  }

  /** Names of the nodes with pending samples that will be written. */
  nodesWaiting(): string[] {
    return this.#pending.flatMap(({ parts }) => parts.map(({ node }) => node)).filter((node) => this.#nodes.isKept(node));
  }

  /** Samples that may lie in the range, ordered by time, written and pending. In `desc` the last chunk comes first. */
  chunks(node: string, fromMs: number, toMs: number, order: Order): Generator<Columns> {
    return this.#table.chunks(this.#nodes.find(node), this.#pendingOf(node), fromMs, toMs, order);
  }

  /** As chunks(), in `asc` and for written samples only. */
  writtenChunks(nodeId: number, fromMs: number, toMs: number): Generator<Columns> {
    return this.#table.chunks(nodeId, [], fromMs, toMs, 'asc');
  }

  /** Hours with written samples, ascending. */
  writtenHours(nodeId: number): number[] {
    return this.#table.hours(nodeId);
  }

  /** Parts of the segments from this one on, ascending by segment. */
  segmentParts(fromSegment: number, node: string | null): Generator<SegmentPart> {
    return segmentParts(this.#source(), fromSegment, node);
  }

  /** The last segment written; 0: there is none. */
  lastSegment(): number {
    const newest = Math.max(0, ...[...this.#nodes.ids.values()].map((id) => this.#table.lastSegment(id) ?? 0));
    // The chunk with the latest time was written last, unless the clock was set back since.
    return newest <= this.#nowMs() ? newest : this.#table.searchLastSegment();
  }

  /** First and last receive times of the remote nodes; `lastHourMs` gives the last one where raw samples are pruned. */
  remoteNodes(lastHourMs: (node: string) => number | null): KnownNode[] {
    return findRemoteNodes(this.#source(), this.#nodes.remoteNodes(this.nodesWaiting()), lastHourMs);
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

  #source(): SegmentSource {
    return { nodes: this.#nodes.ids, raw: this.#table, lags: this.#lags, pending: this.#pending, nowMs: this.#nowMs() };
  }
}
