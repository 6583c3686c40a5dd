import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { Alert } from '../core/alert.ts';
import type { ClockEvent } from '../core/clock-watch.ts';
import { isoUtc, MINUTE_MS } from '../core/time.ts';
import { AlertLog } from './alert-log.ts';
import { AlertTable } from './alert-table.ts';
import { type Columns, decodeChunk, encodeChunk } from './chunk.ts';
import { isDamage, openDatabase, setAside, sizeOf, standInDatabase } from './database.ts';
import { HourTable } from './hour-table.ts';
import { pruneByAge, pruneBySize } from './retention.ts';
import { addToHour, emptyHour, type HourRecord, hourOf } from './tiers.ts';

/** A chunk never spans more than this, so that a range query knows how far back to look. */
export const MAX_CHUNK_MS = MINUTE_MS;
/** Rows of one chunk at most; also bounds what a damaged count can allocate. */
const MAX_CHUNK_ROWS = 4096;
/** Finished hours kept in memory while they cannot be written: more than a week. */
const MAX_UNWRITTEN_HOURS = 200;

interface PendingSegment {
  readonly segment: number;
  readonly parts: { readonly node: string; readonly columns: Columns }[];
}

export interface ArchiveOptions {
  readonly path: string;
  readonly maxBytes: number;
  readonly nowMs: () => number;
  /** Told when a database was set aside, at the start or later. */
  readonly onSetAside: (path: string, reason: string) => void;
}

/**
 * The database and what is not yet in it. Samples are appended in segments; a segment is written whole, in one
 * transaction, and at most once. Reads see everything appended, written or not.
 */
export class Archive {
  readonly #options: ArchiveOptions;
  #db: DatabaseSync;
  /** Null while an empty database in memory stands in for one that cannot be opened (a full disk, no permission). */
  #inode: number | null = null;
  readonly alerts: AlertLog;
  hours: HourTable;
  #pending: PendingSegment[] = [];
  /** The hour being built, by node. */
  readonly #open = new Map<string, HourRecord>();
  #unwritten: { node: string; hour: HourRecord }[] = [];
  #rates = new Map<string, { sinceMs: number; hertz: number }[]>();
  #clockEvents: ClockEvent[] = [];
  #nodeIds = new Map<string, number>();

  constructor(options: ArchiveOptions) {
    this.#options = options;
    this.#db = standInDatabase();
    this.alerts = new AlertLog(new AlertTable(this.#db));
    this.hours = new HourTable(this.#db);
  }

  /** Whether the database itself is open; without it samples and alerts wait in memory and reads see only those. */
  get isOpen(): boolean {
    return this.#inode !== null;
  }

  /** Opens the database; throws when that is impossible for now. Until then a stand-in serves. */
  open(): void {
    const rates = this.#rates;
    const { path, nowMs, onSetAside } = this.#options;
    const opened = openDatabase(path, nowMs());
    this.#closeQuietly();
    this.#db = opened.db;
    this.#inode = statSync(path).ino;
    this.alerts.replace(new AlertTable(this.#db));
    this.hours = new HourTable(this.#db);
    this.#load();
    for (const [node, known] of rates) {
      const last = known.at(-1);
      if (last) this.setRate(node, last.hertz);
    }
    if (opened.setAside) onSetAside(opened.setAside.path, opened.setAside.reason);
  }

  get db(): DatabaseSync {
    return this.#db;
  }

  get clockEvents(): readonly ClockEvent[] {
    return this.#clockEvents;
  }

  get pendingSamples(): number {
    let count = 0;
    for (const { parts } of this.#pending) for (const { columns } of parts) count += columns.count;
    return count;
  }

  /** Names of all nodes with samples, written or not. */
  nodes(): string[] {
    return [...new Set([...this.#nodeIds.keys(), ...this.#pending.flatMap(({ parts }) => parts.map(({ node }) => node))])];
  }

  /** Notes from when on a node publishes how often; what came before keeps its own rate. */
  setRate(node: string, hertz: number): void {
    const rates = this.#rates.get(node) ?? [];
    if (rates.at(-1)?.hertz === hertz) return;
    const sinceMs = this.#options.nowMs();
    rates.push({ sinceMs, hertz });
    this.#rates.set(node, rates);
    this.#db.prepare('INSERT OR REPLACE INTO rate VALUES (?, ?, ?)').run(this.#idOf(node), sinceMs, hertz);
  }

  /** Rates by time, oldest first; a node that never said is taken to publish at 1 Hz. */
  ratesOf(node: string): readonly { sinceMs: number; hertz: number }[] {
    return this.#rates.get(node) ?? [{ sinceMs: 0, hertz: 1 }];
  }

  periodMsAt(node: string, timestampMs: number): number {
    const rates = this.ratesOf(node);
    let hertz = rates[0]?.hertz ?? 1;
    for (const rate of rates) if (rate.sinceMs <= timestampMs) hertz = rate.hertz;
    return 1000 / hertz;
  }

  saveClockEvent(event: ClockEvent): void {
    this.#clockEvents.push(event);
    this.#db.prepare('INSERT OR IGNORE INTO clock_event VALUES (?, ?, ?)').run(event.timestamp_ms, event.kind, event.delta_seconds);
  }

  /** Writes one change durably; throws when that has to wait. Readers see it either way. */
  saveAlert(alert: Alert): void {
    if (!this.isOpen) {
      this.alerts.hold(alert);
      throw new Error('the database is not open');
    }
    try {
      this.alerts.save(alert);
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.replaceDamaged((error as Error).message);
      this.alerts.flush();
    }
  }

  append(segment: number, node: string, columns: Columns): void {
    let pending = this.#pending.find((candidate) => candidate.segment === segment);
    if (!pending) {
      pending = { segment, parts: [] };
      this.#pending.push(pending);
    }
    pending.parts.push({ node, columns });
    this.#addToHours(node, columns);
  }

  /** Gives up a segment that could not be written for too long. */
  forget(segment: number): void {
    this.#pending = this.#pending.filter((candidate) => candidate.segment !== segment);
  }

  /** Writes every pending segment up to and with this one. Throws when the database cannot be written; nothing is lost then. */
  commit(segment: number): void {
    this.#guard(() => {
      this.#reopenIfGone();
      for (;;) {
        const next = this.#pending[0];
        if (!next || next.segment > segment) break;
        this.#transaction(() => this.#writeSegment(next));
        this.#pending.shift();
      }
      if (this.#unwritten.length > 0) {
        this.#transaction(() => {
          for (const { node, hour } of this.#unwritten) this.hours.write(this.#idOf(node), hour);
          pruneByAge(this.#db, this.#options.nowMs());
        });
        this.#unwritten = [];
      }
      this.alerts.flush();
      pruneBySize(this.#db, this.#options.maxBytes);
    });
  }

  /** Whether a segment found after a crash had been written before it. */
  hasSegment(segment: number, node: string, firstTimestampMs: number): boolean {
    const id = this.#nodeIds.get(node);
    if (id === undefined) return false;
    const row = this.#db.prepare('SELECT 1 FROM raw WHERE node_id = ? AND from_ms = ? AND segment = ?').get(id, firstTimestampMs, segment);
    return row !== undefined;
  }

  /** Hours not in the database yet: unwritten ones and the one being built. */
  hoursInMemory(node: string): HourRecord[] {
    const open = this.#open.get(node);
    const unwritten = this.#unwritten.filter((entry) => entry.node === node).map(({ hour }) => hour);
    return open ? [...unwritten, open] : unwritten;
  }

  hoursInDatabase(node: string, fromMs: number, toMs: number) {
    const id = this.#nodeIds.get(node);
    return id === undefined ? [] : this.hours.summaries(id, fromMs, toMs);
  }

  minutesInDatabase(node: string, fromMs: number, toMs: number) {
    const id = this.#nodeIds.get(node);
    return id === undefined ? [] : this.hours.minutes(id, fromMs, toMs);
  }

  /** Chunks that may hold samples of the range, in order of time, written ones and pending ones. */
  *chunks(node: string, fromMs: number, toMs: number, order: 'asc' | 'desc'): Generator<Columns> {
    const pending = this.#pending
      .flatMap(({ parts }) => parts)
      .filter((part) => part.node === node)
      .map(({ columns }) => columns);
    if (order === 'desc') yield* pending.reverse();
    const id = this.#nodeIds.get(node);
    if (id !== undefined) {
      const rows = this.#db
        .prepare(`SELECT samples FROM raw WHERE node_id = ? AND from_ms > ? AND from_ms < ? ORDER BY from_ms ${order}, segment ${order}`)
        .iterate(id, fromMs - MAX_CHUNK_MS - 1, toMs) as Iterable<{ samples: Uint8Array }>;
      for (const { samples } of rows) {
        const columns = tryDecode(samples);
        if (columns) yield columns;
      }
    }
    if (order === 'asc') yield* pending;
  }

  /** Time of the node's first sample that is still known in any tier; null: there is none. */
  firstSampleMs(node: string): number | null {
    const id = this.#nodeIds.get(node);
    const times: number[] = [];
    if (id !== undefined) {
      const raw = this.#db.prepare('SELECT min(from_ms) AS ms FROM raw WHERE node_id = ?').get(id) as { ms: number | null };
      if (raw.ms !== null) times.push(raw.ms);
      const hour = this.hours.first(id);
      if (hour !== null) times.push(hour);
    }
    for (const { parts } of this.#pending.slice(0, 1)) {
      for (const part of parts) if (part.node === node && part.columns.count > 0) times.push(part.columns.timestampMs[0] as number);
    }
    return times.length > 0 ? Math.min(...times) : null;
  }

  /** The newest written chunk of a node, for what was known before this start. */
  newestChunk(node: string): Columns | null {
    for (const columns of this.chunks(node, 0, Number.MAX_SAFE_INTEGER, 'desc')) return columns;
    return null;
  }

  size(): { totalBytes: number; freeBytes: number } {
    return sizeOf(this.#db);
  }

  close(): void {
    this.#db.close();
  }

  #load(): void {
    this.#nodeIds = new Map();
    for (const row of this.#db.prepare('SELECT id, name FROM node').all() as { id: number; name: string }[]) {
      this.#nodeIds.set(row.name, row.id);
    }
    const names = new Map([...this.#nodeIds].map(([name, id]) => [id, name]));
    this.#rates = new Map();
    const rates = this.#db.prepare('SELECT * FROM rate ORDER BY since_ms').all() as { node_id: number; since_ms: number; hertz: number }[];
    for (const { node_id, since_ms, hertz } of rates) {
      const name = names.get(node_id);
      if (name === undefined) continue;
      this.#rates.set(name, [...(this.#rates.get(name) ?? []), { sinceMs: since_ms, hertz }]);
    }
    this.#clockEvents = this.#db
      .prepare('SELECT kind, timestamp_ms, delta_seconds FROM clock_event ORDER BY timestamp_ms')
      .all() as unknown as ClockEvent[];
  }

  #idOf(node: string): number {
    const known = this.#nodeIds.get(node);
    if (known !== undefined) return known;
    this.#db.prepare('INSERT OR IGNORE INTO node (name) VALUES (?)').run(node);
    const { id } = this.#db.prepare('SELECT id FROM node WHERE name = ?').get(node) as { id: number };
    this.#nodeIds.set(node, id);
    return id;
  }

  #writeSegment({ segment, parts }: PendingSegment): void {
    const insert = this.#db.prepare('INSERT OR IGNORE INTO raw VALUES (?, ?, ?, ?, ?)');
    for (const { node, columns } of joinParts(parts)) {
      for (const chunk of splitIntoChunks(columns)) {
        const from = chunk.timestampMs[0] as number;
        insert.run(this.#idOf(node), from, segment, chunk.timestampMs[chunk.count - 1] as number, encodeChunk(chunk));
      }
    }
  }

  #addToHours(node: string, columns: Columns): void {
    for (let i = 0; i < columns.count; i += 1) {
      const timestampMs = columns.timestampMs[i] as number;
      const hourMs = hourOf(timestampMs);
      let hour = this.#open.get(node);
      if (hour?.hourMs !== hourMs) {
        if (hour) this.#unwritten.push({ node, hour });
        if (this.#unwritten.length > MAX_UNWRITTEN_HOURS) this.#unwritten.shift();
        hour = this.#resumeHour(node, hourMs);
        this.#open.set(node, hour);
      }
      addToHour(hour, columns, i, this.periodMsAt(node, timestampMs), this.#clockEvents);
    }
  }

  /** Begins an hour; one that has samples already (after a restart, or a clock set back) is built anew from them. */
  #resumeHour(node: string, hourMs: number): HourRecord {
    const waiting = this.#unwritten.findIndex((entry) => entry.node === node && entry.hour.hourMs === hourMs);
    if (waiting >= 0) return (this.#unwritten.splice(waiting, 1)[0] as { hour: HourRecord }).hour;
    const hour = emptyHour(hourMs);
    const id = this.#nodeIds.get(node);
    if (id === undefined) return hour;
    const rows = this.#db
      .prepare('SELECT samples FROM raw WHERE node_id = ? AND from_ms >= ? AND from_ms < ? ORDER BY from_ms, segment')
      .iterate(id, hourMs - MAX_CHUNK_MS, hourMs + 60 * MINUTE_MS) as Iterable<{ samples: Uint8Array }>;
    for (const { samples } of rows) {
      const columns = tryDecode(samples);
      for (let i = 0; columns && i < columns.count; i += 1) {
        const timestampMs = columns.timestampMs[i] as number;
        if (hourOf(timestampMs) === hourMs) addToHour(hour, columns, i, this.periodMsAt(node, timestampMs), this.#clockEvents);
      }
    }
    return hour;
  }

  #transaction(work: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#db.exec('COMMIT');
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      // Ids given out inside the transaction are gone with it.
      this.#loadNodeIds();
      throw error;
    }
  }

  #loadNodeIds(): void {
    try {
      const rows = this.#db.prepare('SELECT id, name FROM node').all() as { id: number; name: string }[];
      this.#nodeIds = new Map(rows.map(({ id, name }) => [name, id]));
    } catch {
      // The error that brought us here says more.
    }
  }

  /** Runs `work`; when it meets a damaged database, that one is set aside and the work done once more on a new one. */
  #guard<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.replaceDamaged((error as Error).message);
      return work();
    }
  }

  /** Sets the database aside and goes on with a new one; what is still in memory is written to it. */
  replaceDamaged(reason: string): void {
    this.#closeQuietly();
    this.#inode = null;
    const target = setAside(this.#options.path, this.#options.nowMs());
    this.#options.onSetAside(target, reason);
    this.open();
  }

  /** A database deleted or replaced under us would be written to in vain. */
  #reopenIfGone(): void {
    let inode: number | null = null;
    try {
      inode = statSync(this.#options.path).ino;
    } catch {
      // Gone: handled below like one that was replaced.
    }
    if (inode !== null && inode === this.#inode) return;
    const vanished = this.#inode !== null;
    this.open();
    if (vanished) this.#options.onSetAside('(removed)', `the database was removed or replaced at ${isoUtc(this.#options.nowMs())}`);
  }

  #closeQuietly(): void {
    try {
      this.#db.close();
    } catch {
      // Damaged or gone; there is nothing left to close properly.
    }
  }
}

/** A chunk that cannot be decoded is passed over: it is one minute, and the rest of the range is readable. */
function tryDecode(samples: Uint8Array): Columns | null {
  try {
    return decodeChunk(samples);
  } catch {
    return null;
  }
}

/** Puts what came in several batches for the same node together again. */
function joinParts(parts: readonly { node: string; columns: Columns }[]): { node: string; columns: Columns }[] {
  const byNode = new Map<string, Columns[]>();
  for (const { node, columns } of parts) byNode.set(node, [...(byNode.get(node) ?? []), columns]);
  return [...byNode].map(([node, list]) => ({ node, columns: concatenate(list) }));
}

export function concatenate(list: readonly Columns[]): Columns {
  if (list.length === 1) return list[0] as Columns;
  const count = list.reduce((sum, columns) => sum + columns.count, 0);
  const join = (pick: (columns: Columns) => Float64Array): Float64Array => {
    const joined = new Float64Array(count);
    let offset = 0;
    for (const columns of list) {
      joined.set(pick(columns).subarray(0, columns.count), offset);
      offset += columns.count;
    }
    return joined;
  };
  const status = new Uint8Array(count);
  let offset = 0;
  for (const columns of list) {
    status.set(columns.status.subarray(0, columns.count), offset);
    offset += columns.count;
  }
  const metrics = (list[0]?.metrics ?? []).map((_, m) => join((columns) => columns.metrics[m] as Float64Array));
  return { count, timestampMs: join((columns) => columns.timestampMs), metrics, status };
}

/** Cuts where a chunk would grow too long in rows or time, where the hour changes, and where time runs backwards. */
export function* splitIntoChunks(columns: Columns): Generator<Columns> {
  let start = 0;
  for (let i = 1; i <= columns.count; i += 1) {
    const first = columns.timestampMs[start] as number;
    const now = columns.timestampMs[i] as number;
    const before = columns.timestampMs[i - 1] as number;
    const cut =
      i === columns.count || i - start >= MAX_CHUNK_ROWS || now - first > MAX_CHUNK_MS || now < before || hourOf(now) !== hourOf(first);
    if (!cut) continue;
    yield {
      count: i - start,
      timestampMs: columns.timestampMs.subarray(start, i),
      metrics: columns.metrics.map((column) => column.subarray(start, i)),
      status: columns.status.subarray(start, i),
    };
    start = i;
  }
}
