import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { StepValue } from '../../core/ports.ts';
import { HOUR_MS, hourOf, MINUTE_MS } from '../../core/time/time.ts';
import { isDamage } from '../database/database.ts';
import type { NodeTable } from '../database/node-table.ts';
import type { SamplingHistory } from '../events/clock-events.ts';
import { type Columns, tryDecode } from '../samples/chunk.ts';
import type { PendingPart, RawSamples } from '../samples/raw-samples.ts';
import { StepTable } from './step-table.ts';
import { addToHour, emptyHour, type Histograms, type HourRecord, type Summary } from './summary.ts';
import { decodeHour, decodeMinutes, decodeMinuteTable, encodeHour, encodeMinutes } from './summary-codec.ts';

interface HourSources {
  readonly nodes: NodeTable;
  readonly samples: RawSamples;
  readonly sampling: SamplingHistory;
  readonly nowMs: () => number;
  /** Replaces the damaged database with a new one. */
  readonly onDamage: (reason: string) => void;
}

/** Limit of finished hours kept in memory while they cannot be written: over a week of one node, plus the last hour of each node. */
const MAX_UNWRITTEN_HOURS = 200;

interface HourEntry {
  readonly node: string;
  readonly hour: HourRecord;
}

/**
 * Hours and their minutes: those in the database merged with those in memory, which are each node's hour in progress, and finished hours
 * until they are written.
 */
export class Hours {
  readonly #sources: HourSources;
  /** The hour in progress of each node. */
  readonly #open = new Map<string, { readonly hour: HourRecord; grewMs: number; grew: boolean }>();
  #finished: HourEntry[] = [];
  #table: HourTable;

  constructor(db: DatabaseSync, sources: HourSources) {
    this.#sources = sources;
    this.#table = new HourTable(db);
  }

  /** Switches to another database; hours in memory stay there. */
  replace(db: DatabaseSync): void {
    this.#table = new HourTable(db);
  }

  add({ node, columns }: PendingPart): void {
    for (let i = 0; i < columns.count; i += 1) {
      const hourMs = hourOf(columns.timestampMs[i] as number);
      let hour = this.#open.get(node)?.hour;
      if (hour?.hourMs !== hourMs) {
        hour = this.#takeFinished(node, hourMs) ?? this.#resumeOne(node, hourMs);
        this.#begin(node, hour);
      }
      this.#addRow(node, hour, columns, i);
    }
    const open = this.#open.get(node);
    if (!open) return;
    open.grewMs = this.#sources.nowMs();
    open.grew = true;
  }

  /**
   * Rebuilds the hours that an earlier run did not write. If the database was opened late, hours begun meanwhile are continued. `waiting`
   * returns the samples that are not in the database.
   */
  resume(waiting: () => readonly PendingPart[]): void {
    const { nodes } = this.#sources;
    const inMemory = [...this.#finished, ...[...this.#open].map(([node, { hour }]) => ({ node, hour }))];
    this.#finished = [];
    this.#open.clear();
    const names = new Map([...nodes.ids].map(([name, id]) => [id, name]));
    for (const { nodeId, hourMs } of this.#table.missing()) {
      const node = names.get(nodeId);
      const hour = node === undefined ? null : this.#fromDatabase(node, hourMs);
      if (node !== undefined && hour && hour.summary.received > 0) this.#begin(node, hour);
    }
    for (const part of waiting()) this.add(part);
    // The samples of this hour were dropped, so the hour in memory is the only record of it.
    for (const entry of inMemory) if (!this.#inMemory(entry.node, entry.hour.hourMs)) this.#finish(entry);
  }

  /** The rate of a node became known after its first samples. */
  rebuild(node: string): void {
    for (const hour of this.#hoursInMemory(node)) hour.needsRebuild = true;
  }

  /** Writes finished and changed hours, from samples of which none is both pending and in the database. Returns whether any is finished. The caller must call written() after the commit. */
  write(): boolean {
    const { nodes, nowMs } = this.#sources;
    for (const [node, { hour, grewMs }] of this.#open) {
      if (Math.abs(nowMs() - grewMs) <= HOUR_MS) continue;
      this.#finish({ node, hour });
      this.#open.delete(node);
    }
    // Open hours that the database already has, from before the clock was set back.
    const reopened = [...this.#open].filter(([, { hour, grew }]) => hour.wasWritten && grew).map(([node, { hour }]) => ({ node, hour }));
    for (const { node, hour } of [...this.#finished, ...reopened]) {
      if (nodes.isStored(node)) this.#table.write(nodes.idOf(node), this.#inOrder(node, hour));
    }
    return this.#finished.length > 0;
  }

  /** Must be called after write() was committed. */
  written(): void {
    this.#finished = [];
    for (const open of this.#open.values()) open.grew = false;
  }

  drop(node: string): void {
    this.#open.delete(node);
    this.#finished = this.#finished.filter((entry) => entry.node !== node);
  }

  /** Hours with samples that begin in the range, ascending. */
  starts(node: string, fromMs: number, toMs: number): number[] {
    const starts = new Set(this.#table.starts(this.#idOf(node), fromMs, toMs));
    for (const { hourMs } of this.#hoursInMemory(node)) if (hourMs >= fromMs && hourMs < toMs) starts.add(hourMs);
    return [...starts].sort((a, b) => a - b);
  }

  /** The whole hour. The version in memory is newer than the written one. */
  hour(node: string, hourMs: number): { readonly summary: Summary; readonly histograms: Histograms } | null {
    return this.#inMemory(node, hourMs) ?? this.#table.hour(this.#idOf(node), hourMs);
  }

  /** The hour's minutes by their number; once they are pruned, the whole hour as the first. */
  minutes(node: string, hourMs: number): ReadonlyMap<number, Summary> {
    return this.#inMemory(node, hourMs)?.minutes ?? this.#table.minutes(this.#idOf(node), hourMs) ?? this.#whole(node, hourMs);
  }

  /** A row for each of the hour's minutes, or for the whole hour once minutes are pruned. */
  minuteTable(node: string, hourMs: number, value: StepValue): StepTable {
    const inMemory = this.#inMemory(node, hourMs)?.minutes;
    const written = inMemory ? null : this.#table.minuteTable(this.#idOf(node), hourMs, value);
    if (written) return written;
    const summaries = inMemory ?? this.#whole(node, hourMs);
    const table = new StepTable(summaries.size, value);
    for (const [minute, summary] of summaries) {
      table.begin(hourMs + minute * MINUTE_MS);
      table.addSummary(summary);
    }
    return table;
  }

  /** Time of the node's first sample in the hour tier; null: there is none. */
  firstMs(node: string): number | null {
    const inMemory = this.#hoursInMemory(node).map(({ summary }) => summary.firstMs);
    const times = [this.#table.first(this.#idOf(node)), ...inMemory].filter((ms) => ms !== null);
    return times.length > 0 ? Math.min(...times) : null;
  }

  /** Start of the node's newest written hour. */
  lastWritten(node: string): number | null {
    return this.#table.last(this.#idOf(node));
  }

  /** Null: the database has no row of the node. */
  #idOf(node: string): number | null {
    return this.#sources.nodes.find(node);
  }

  #whole(node: string, hourMs: number): ReadonlyMap<number, Summary> {
    const hour = this.#table.hour(this.#idOf(node), hourMs);
    return new Map(hour ? [[0, hour.summary]] : []);
  }

  #hoursInMemory(node: string): HourRecord[] {
    const open = this.#open.get(node);
    const finished = this.#finished.filter((entry) => entry.node === node).map(({ hour }) => hour);
    return open ? [...finished, open.hour] : finished;
  }

  #inMemory(node: string, hourMs: number): HourRecord | null {
    const hour = this.#hoursInMemory(node).find((candidate) => candidate.hourMs === hourMs);
    return hour ? this.#inOrder(node, hour) : null;
  }

  /** Makes `hour` the node's hour in progress; the previous one is finished. */
  #begin(node: string, hour: HourRecord): void {
    const before = this.#open.get(node);
    if (before) this.#finish({ node, hour: before.hour });
    this.#open.set(node, { hour, grewMs: this.#sources.nowMs(), grew: false });
  }

  #finish(entry: HourEntry): void {
    this.#finished.push(entry);
    if (this.#finished.length > MAX_UNWRITTEN_HOURS + this.#open.size) this.#finished.shift();
  }

  #takeFinished(node: string, hourMs: number): HourRecord | null {
    const index = this.#finished.findIndex((entry) => entry.node === node && entry.hour.hourMs === hourMs);
    return index < 0 ? null : (this.#finished.splice(index, 1)[0] as HourEntry).hour;
  }

  /** Adds those rows that lie in the hour. */
  #addRows(node: string, hour: HourRecord, chunks: Iterable<Columns>): void {
    for (const columns of chunks) {
      for (let row = 0; row < columns.count; row += 1) {
        if (hourOf(columns.timestampMs[row] as number) === hour.hourMs) this.#addRow(node, hour, columns, row);
      }
    }
  }

  /**
   * The hour as its samples give it in order of time, in which a restart reads them. If some of its raw samples were removed, it remains
   * as they arrived.
   */
  #inOrder(node: string, hour: HourRecord): HourRecord {
    if (!hour.needsRebuild) return hour;
    hour.needsRebuild = false;
    const rebuilt = emptyHour(hour.hourMs, hour.wasWritten);
    this.#addRows(node, rebuilt, this.#sources.samples.chunks(node, hour.hourMs, hour.hourMs + HOUR_MS, 'asc'));
    return rebuilt.summary.received < hour.summary.received ? hour : Object.assign(hour, rebuilt);
  }

  #addRow(node: string, hour: HourRecord, columns: Columns, row: number): void {
    const { sampling } = this.#sources;
    const periodMs = sampling.periodMsAt(node, columns.timestampMs[row] as number);
    addToHour(hour, columns, row, periodMs, sampling.clockEvents);
  }

  /** The hour to continue: one that has samples already (after a restart or a clock step back), or an empty one. */
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
    this.#addRows(node, hour, samples.writtenChunks(id, hourMs, hourMs + HOUR_MS));
    if (!written || written.summary.received <= hour.summary.received) return hour;
    return { ...hour, ...written, minutes: this.#table.minutes(id, hourMs) ?? new Map() };
  }
}

/**
 * The minute and hour tiers. Each hour of a node is written once when it is over, and again only if more samples arrive for it. Reads
 * accept the id null of a node without a row: no row matches `node_id = NULL`. In place of a damaged blob, queries use the other tiers.
 */
class HourTable {
  readonly #db: DatabaseSync;
  #selectMinutes: StatementSync | null = null;

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  write(nodeId: number, hour: HourRecord): void {
    this.#db.prepare('INSERT OR REPLACE INTO minute VALUES (?, ?, ?)').run(nodeId, hour.hourMs, encodeMinutes(hour.minutes, hour.hourMs));
    this.#db
      .prepare('INSERT OR REPLACE INTO hour VALUES (?, ?, ?)')
      .run(nodeId, hour.hourMs, encodeHour(hour.summary, hour.histograms, hour.hourMs));
  }

  /** Hours with raw samples that are not in this table, ascending. */
  missing(): { readonly nodeId: number; readonly hourMs: number }[] {
    return this.#db
      .prepare(
        `SELECT node_id AS nodeId, hour_ms AS hourMs FROM raw_hour
         WHERE NOT EXISTS (SELECT 1 FROM hour WHERE hour.node_id = raw_hour.node_id AND hour.hour_ms = raw_hour.hour_ms) ORDER BY hour_ms`,
      )
      .all() as { nodeId: number; hourMs: number }[];
  }

  /** Hours that begin in the range, ascending. */
  starts(nodeId: number | null, fromMs: number, toMs: number): number[] {
    const rows = this.#db
      .prepare('SELECT hour_ms FROM hour WHERE node_id = ? AND hour_ms >= ? AND hour_ms < ? ORDER BY hour_ms')
      .all(nodeId, fromMs, toMs) as { hour_ms: number }[];
    return rows.map(({ hour_ms }) => hour_ms);
  }

  hour(nodeId: number | null, hourMs: number): { summary: Summary; histograms: Histograms } | null {
    const row = this.#db.prepare('SELECT summary FROM hour WHERE node_id = ? AND hour_ms = ?').get(nodeId, hourMs) as
      | { summary: Uint8Array }
      | undefined;
    return row ? tryDecode(() => decodeHour(row.summary, hourMs)) : null;
  }

  minutes(nodeId: number | null, hourMs: number): Map<number, Summary> | null {
    const blob = this.#minuteBlob(nodeId, hourMs);
    return blob && tryDecode(() => decodeMinutes(blob, hourMs));
  }

  /** The hour's minutes with one value per metric. */
  minuteTable(nodeId: number | null, hourMs: number, value: StepValue): StepTable | null {
    const blob = this.#minuteBlob(nodeId, hourMs);
    return blob && tryDecode(() => decodeMinuteTable(blob, hourMs, value));
  }

  #minuteBlob(nodeId: number | null, hourMs: number): Uint8Array | null {
    this.#selectMinutes ??= this.#db.prepare('SELECT summaries FROM minute WHERE node_id = ? AND hour_ms = ?');
    const row = this.#selectMinutes.get(nodeId, hourMs) as { summaries: Uint8Array } | undefined;
    return row?.summaries ?? null;
  }

  last(nodeId: number | null): number | null {
    return (this.#db.prepare('SELECT max(hour_ms) AS ms FROM hour WHERE node_id = ?').get(nodeId) as { ms: number | null }).ms;
  }

  /** Time of the first sample in the oldest hour. */
  first(nodeId: number | null): number | null {
    const row = this.#db.prepare('SELECT min(hour_ms) AS ms FROM hour WHERE node_id = ?').get(nodeId) as { ms: number | null };
    if (row.ms === null) return null;
    return this.hour(nodeId, row.ms)?.summary.firstMs ?? row.ms;
  }
}
