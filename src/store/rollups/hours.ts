import type { DatabaseSync } from 'node:sqlite';
import type { Histograms, Summary } from '../../core/statistics/summary.ts';
import { HOUR_MS, MINUTE_MS } from '../../core/time/time.ts';
import { isDamage } from '../database/database.ts';
import type { NodeTable } from '../database/node-table.ts';
import type { Notes } from '../events/clock-events.ts';
import type { Columns } from '../samples/chunk.ts';
import type { RawSamples } from '../samples/raw-samples.ts';
import type { PendingPart } from '../samples/segments.ts';
import { HourTable } from './hour-table.ts';
import { Means } from './means.ts';
import { OpenHours } from './open-hours.ts';
import { addToHour, emptyHour, type HourRecord, hourOf } from './tiers.ts';

export interface HourSources {
  readonly nodes: NodeTable;
  readonly samples: RawSamples;
  readonly notes: Notes;
  readonly nowMs: () => number;
  /** Replaces the damaged database by a new one. */
  readonly onDamage: (reason: string) => void;
}

/** Hours and their minutes: those in the database merged with those in progress or waiting to be written. */
export class Hours {
  readonly #sources: HourSources;
  readonly #book: OpenHours;
  #table: HourTable;

  constructor(db: DatabaseSync, sources: HourSources) {
    this.#sources = sources;
    this.#table = new HourTable(db);
    this.#book = new OpenHours(
      sources.nowMs,
      (node, hourMs) => this.#resumeOne(node, hourMs),
      (node, hour, columns, row) => this.#addRow(node, hour, columns, row),
    );
  }

  /** Switches to another database; hours in memory stay there. */
  replace(db: DatabaseSync): void {
    this.#table = new HourTable(db);
  }

  add({ node, columns }: PendingPart): void {
    this.#book.add(node, columns);
  }

  /**
   * Rebuilds the hours that an earlier run did not write. If the database was opened late, hours begun meanwhile are continued. `waiting`
   * returns the samples that are not in the database.
   */
  resume(waiting: () => readonly PendingPart[]): void {
    const { nodes, samples } = this.#sources;
    const inMemory = this.#book.takeAll();
    for (const [node, id] of nodes.ids) {
      const missing = samples.writtenHours(id).filter((hourMs) => this.#table.starts(id, hourMs, hourMs + 1).length === 0);
      for (const hourMs of missing) this.#book.begin(node, this.#fromDatabase(node, hourMs));
    }
    for (const part of waiting()) this.add(part);
    // The samples of this hour were dropped, so the hour in memory is the only record of it.
    for (const entry of inMemory) if (!this.#book.find(entry.node, entry.hour.hourMs)) this.#book.keep(entry);
  }

  /** Writes finished and changed hours. Returns whether any is finished. The caller must call written() after the commit. */
  write(): boolean {
    const finished = this.#book.finished();
    const { nodes } = this.#sources;
    for (const { node, hour } of [...finished, ...this.#book.reopened()]) if (nodes.isKept(node)) this.#table.write(nodes.idOf(node), hour);
    return finished.length > 0;
  }

  /** Drops a node's hours in memory. */
  drop(node: string): void {
    this.#book.drop(node);
  }

  /** Must be called after write() was committed. */
  written(): void {
    this.#book.written();
  }

  /** Hours with samples that begin in the range, ascending. */
  starts(node: string, fromMs: number, toMs: number): number[] {
    const id = this.#sources.nodes.find(node);
    const starts = new Set(id === null ? [] : this.#table.starts(id, fromMs, toMs));
    for (const { hourMs } of this.#book.of(node)) if (hourMs >= fromMs && hourMs < toMs) starts.add(hourMs);
    return [...starts].sort((a, b) => a - b);
  }

  /** The whole hour. The version in memory is newer than the written one. */
  hour(node: string, hourMs: number): { readonly summary: Summary; readonly histograms: Histograms } | null {
    const id = this.#sources.nodes.find(node);
    return this.#book.find(node, hourMs) ?? (id === null ? null : this.#table.hour(id, hourMs));
  }

  /** The hour's minutes by their number; null once they are pruned. */
  minutes(node: string, hourMs: number): ReadonlyMap<number, Summary> | null {
    const id = this.#sources.nodes.find(node);
    return this.#book.find(node, hourMs)?.minutes ?? (id === null ? null : this.#table.minutes(id, hourMs));
  }

  /** Averages of the hour's minutes, or of the whole hour once minutes are pruned; null: no data. */
  minuteMeans(node: string, hourMs: number): Means | null {
    const id = this.#sources.nodes.find(node);
    const inMemory = this.#book.find(node, hourMs)?.minutes;
    const written = inMemory || id === null ? null : this.#table.minuteMeans(id, hourMs);
    if (written) return written;
    const summaries = inMemory ?? (id === null ? undefined : this.#whole(id, hourMs));
    if (!summaries) return null;
    const means = new Means(summaries.size);
    for (const [minute, summary] of summaries) {
      means.begin(hourMs + minute * MINUTE_MS);
      means.addSummary(summary);
    }
    return means;
  }

  /** Time of the node's first sample in the hour tier; null: there is none. */
  firstMs(node: string): number | null {
    const id = this.#sources.nodes.find(node);
    const inMemory = this.#book.of(node).map(({ summary }) => summary.firstMs);
    const times = [id === null ? null : this.#table.first(id), ...inMemory].filter((ms) => ms !== null);
    return times.length > 0 ? Math.min(...times) : null;
  }

  /** Start of the node's newest written hour. */
  lastWritten(node: string): number | null {
    const id = this.#sources.nodes.find(node);
    return id === null ? null : this.#table.last(id);
  }

  #whole(nodeId: number, hourMs: number): ReadonlyMap<number, Summary> | undefined {
    const hour = this.#table.hour(nodeId, hourMs);
    return hour ? new Map([[0, hour.summary]]) : undefined;
  }

  #addRow(node: string, hour: HourRecord, columns: Columns, row: number): void {
    const { notes } = this.#sources;
    const periodMs = notes.periodMsAt(node, columns.timestampMs[row] as number);
    addToHour(hour, columns, row, periodMs, notes.clockEvents);
  }

  #resumeOne(node: string, hourMs: number): HourRecord {
    try {
      return this.#fromDatabase(node, hourMs);
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.#sources.onDamage((error as Error).message);
      return emptyHour(hourMs);
    }
  }

  /** The hour from its raw samples, or as stored if the stored hour has more samples. */
  #fromDatabase(node: string, hourMs: number): HourRecord {
    const { nodes, samples } = this.#sources;
    const id = nodes.find(node);
    if (id === null) return emptyHour(hourMs);
    const written = this.#table.hour(id, hourMs);
    const hour = emptyHour(hourMs, written !== null);
    for (const columns of samples.writtenChunks(id, hourMs, hourMs + HOUR_MS)) {
      for (let row = 0; row < columns.count; row += 1) {
        if (hourOf(columns.timestampMs[row] as number) === hourMs) this.#addRow(node, hour, columns, row);
      }
    }
    if (!written || written.summary.received <= hour.summary.received) return hour;
    return { ...hour, ...written, minutes: this.#table.minutes(id, hourMs) ?? new Map() };
  }
}
