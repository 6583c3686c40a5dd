import { closeSync, openSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { Alert } from '../core/alert.ts';
import type { ClockEvent } from '../core/clock-watch.ts';
import type { HeardNode } from '../core/node-watch.ts';
import type { Mark, Order } from '../core/ports.ts';
import type { ShutdownRecord } from '../core/shutdown-record.ts';
import type { Histograms, Summary } from '../core/summary.ts';
import { HOUR_MS, isoUtc, MINUTE_MS } from '../core/time.ts';
import { AlertLog } from './alert-log.ts';
import { AlertTable, type RecordedChange } from './alert-table.ts';
import type { Columns } from './chunk.ts';
import { checkStillThere, isDamage, openDatabase, setAside, sizeOf, standInDatabase } from './database.ts';
import { heardNodes } from './heard.ts';
import { HourBook } from './hour-book.ts';
import { HourTable } from './hour-table.ts';
import { LagTable } from './lag-table.ts';
import { Means } from './means.ts';
import { Notes } from './notes.ts';
import { RawTable } from './raw-table.ts';
import type { Recordings, SegmentPart } from './recorded.ts';
import { pruneByAge, pruneBySize } from './retention.ts';
import { type PendingSegment, type SegmentSource, segmentParts } from './segments.ts';
import { ShutdownLog } from './shutdown-log.ts';
import { addToHour, emptyHour, type HourRecord, hourOf } from './tiers.ts';

/** Segments written in one transaction, when many have waited. */
const SEGMENTS_AT_ONCE = 60;

export interface ArchiveOptions {
  readonly path: string;
  readonly maxBytes: number;
  /** Samples of every other node came from elsewhere; null: nobody needs to know. */
  readonly localNode: string | null;
  readonly nowMs: () => number;
  /** Told when a database was set aside, at the start or later. */
  readonly onSetAside: (path: string, reason: string) => void;
}

/**
 * The database and what is not yet in it. Samples are appended in segments; a segment is written whole, in one
 * transaction, and at most once. Reads see everything appended, written or not.
 */
export class Archive implements Recordings {
  readonly #options: ArchiveOptions;
  readonly alerts: AlertLog;
  readonly shutdowns: ShutdownLog;
  readonly #notes = new Notes();
  readonly #book: HourBook;
  #db: DatabaseSync;
  #hours: HourTable;
  #raw: RawTable;
  #lags: LagTable;
  /** Null while an empty database in memory stands in for one that cannot be opened (a full disk, no permission). */
  #inode: number | null = null;
  /** The database's file, to look at while SQLite has it for itself. */
  #descriptor: number | null = null;
  #closedBecause = 'not tried yet';
  #everOpened = false;
  #pending: PendingSegment[] = [];
  #nodeIds = new Map<string, number>();
  /** Those whose samples came from elsewhere. */
  readonly #gathered = new Set<string>();
  #openEpisodesFound: readonly Alert[] = [];

  constructor(options: ArchiveOptions) {
    this.#options = options;
    this.#db = standInDatabase();
    this.alerts = new AlertLog(new AlertTable(this.#db));
    this.shutdowns = new ShutdownLog(this.#db);
    this.#hours = new HourTable(this.#db);
    this.#raw = new RawTable(this.#db);
    this.#lags = new LagTable(this.#db);
    this.#book = new HourBook(
      options.nowMs,
      (node, hourMs) => this.#resumeHour(node, hourMs),
      (node, hour, columns, row) => this.#addToHour(node, hour, columns, row),
    );
  }

  /** Whether the database itself is open; without it samples and alerts wait in memory and reads see only those. */
  get isOpen(): boolean {
    return this.#inode !== null;
  }

  /** Episodes that the database said were open when it was opened, but for those of which newer changes wait. */
  get openEpisodesFound(): readonly Alert[] {
    return this.#openEpisodesFound;
  }

  get db(): DatabaseSync {
    return this.#db;
  }

  get notes(): Notes {
    return this.#notes;
  }

  /** Opens the database; throws when that is impossible for now. Until then a stand-in serves. */
  open(): void {
    try {
      this.#openOnce();
    } catch (error) {
      this.#closedBecause = (error as Error).message;
      throw error;
    }
    try {
      this.#load();
    } catch (error) {
      if (!isDamage(error)) {
        this.#leave();
        throw error;
      }
      this.replaceDamaged((error as Error).message);
    }
  }

  /** Names of all nodes with samples, written or not. */
  nodes(): string[] {
    return [...new Set([...this.#nodeIds.keys(), ...this.#pending.flatMap(({ parts }) => parts.map(({ node }) => node))])];
  }

  /** When the nodes were last heard whose samples came from elsewhere. */
  heard(): HeardNode[] {
    const waiting = this.#pending.flatMap(({ parts }) => parts.map(({ node }) => node));
    const names = new Set([...this.#gathered, ...waiting].filter((node) => this.#isGathered(node)));
    return heardNodes(this.#segments(), this.#hours, names);
  }

  /** The last segment that is written; 0: there is none. */
  lastSegment(): number {
    const newest = Math.max(0, ...[...this.#nodeIds.values()].map((id) => this.#raw.lastSegment(id) ?? 0));
    // What is last in time was written last, unless the clock was set back since.
    return Math.max(this.alerts.lastSegment(), newest <= this.#options.nowMs() ? newest : this.#raw.searchLastSegment());
  }

  /** Notes how often a node publishes from then on, by its own clock; throws when writing that has to wait. */
  setRate(node: string, hertz: number, sinceMs = this.#options.nowMs()): void {
    this.#notes.addRate(node, { sinceMs, hertz });
    this.#saveNotes();
  }

  /** Writes a jump of the clock; throws when that has to wait. Readers see it either way. */
  saveClockEvent(event: ClockEvent): void {
    this.#notes.addClockEvent(event);
    this.#saveNotes();
  }

  /** Writes one change durably; tells whether it was news. Throws when that has to wait. Readers see it either way. */
  saveAlert(alert: Alert, mark?: Mark): boolean {
    if (!this.isOpen) {
      this.alerts.hold(alert, mark);
      throw new Error(`the database is not open: ${this.#closedBecause}`);
    }
    try {
      return this.alerts.save(alert, mark);
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.replaceDamaged((error as Error).message);
      return this.alerts.flush();
    }
  }

  /** Writes a request of a safe shutdown durably; throws when that has to wait. Readers see it either way. */
  saveShutdown(record: ShutdownRecord): void {
    if (!this.isOpen) {
      this.shutdowns.hold(record);
      throw new Error(`the database is not open: ${this.#closedBecause}`);
    }
    try {
      this.shutdowns.save(record);
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.replaceDamaged((error as Error).message);
      this.shutdowns.flush();
    }
  }

  append(segment: number, node: string, columns: Columns): void {
    const index = this.#pending.findIndex((candidate) => candidate.segment === segment);
    const parts = [...(this.#pending[index]?.parts ?? []), { node, columns }];
    if (index < 0) this.#pending.push({ segment, parts });
    else this.#pending[index] = { segment, parts };
    this.#book.add(node, columns);
  }

  /** Gives up a segment that could not be written for too long. */
  forget(segment: number): void {
    this.#pending = this.#pending.filter((candidate) => candidate.segment !== segment);
  }

  /** Writes every pending segment up to and with this one. Throws when the database cannot be written; nothing is lost then. */
  commit(segment: number): void {
    this.#guard(() => {
      this.#reopenIfGone();
      this.alerts.flush();
      this.shutdowns.flush();
      for (let last = false; !last; ) {
        const due = this.#pending.filter((candidate) => candidate.segment <= segment);
        const next = due.slice(0, SEGMENTS_AT_ONCE);
        last = next.length === due.length;
        this.#transaction(() => {
          for (const pending of next) this.#writeSegment(pending);
          if (last) this.#writeHours();
        });
        this.#pending = this.#pending.filter((candidate) => !next.includes(candidate));
        if (last) this.#book.written();
        pruneBySize(this.#db, this.#options.maxBytes);
      }
      this.#saveNotes();
    });
  }

  /** Whether a segment found after a crash had been written before it. */
  hasSegment(segment: number, node: string, timestampMs: Float64Array): boolean {
    const id = this.#nodeIds.get(node);
    return id !== undefined && this.#raw.hasSegment(id, segment, timestampMs);
  }

  /** Hours with samples that begin in the range, ascending: written ones and those in memory. */
  hourStarts(node: string, fromMs: number, toMs: number): number[] {
    const id = this.#nodeIds.get(node);
    const starts = new Set(id === undefined ? [] : this.#hours.starts(id, fromMs, toMs));
    for (const { hourMs } of this.#book.of(node)) if (hourMs >= fromMs && hourMs < toMs) starts.add(hourMs);
    return [...starts].sort((a, b) => a - b);
  }

  /** The hour as a whole. What is in memory is newer than what is written. */
  hour(node: string, hourMs: number): { readonly summary: Summary; readonly histograms: Histograms } | null {
    const id = this.#nodeIds.get(node);
    return this.#book.find(node, hourMs) ?? (id === undefined ? null : this.#hours.hour(id, hourMs));
  }

  /** The hour's minutes by their number; null where they are no longer kept. */
  minutes(node: string, hourMs: number): ReadonlyMap<number, Summary> | null {
    const id = this.#nodeIds.get(node);
    return this.#book.find(node, hourMs)?.minutes ?? (id === undefined ? null : this.#hours.minutes(id, hourMs));
  }

  /** The hour's minutes as averages alone, or where they are no longer kept the hour as one; null: nothing is known. */
  minuteMeans(node: string, hourMs: number): Means | null {
    const id = this.#nodeIds.get(node);
    const inMemory = this.#book.find(node, hourMs)?.minutes;
    const written = inMemory || id === undefined ? null : this.#hours.minuteMeans(id, hourMs);
    if (written) return written;
    const summaries = inMemory ?? (id === undefined ? undefined : this.#wholeHour(id, hourMs));
    if (!summaries) return null;
    const means = new Means(summaries.size);
    for (const [minute, summary] of summaries) {
      means.begin(hourMs + minute * MINUTE_MS);
      means.addSummary(summary);
    }
    return means;
  }

  #wholeHour(nodeId: number, hourMs: number): ReadonlyMap<number, Summary> | undefined {
    const hour = this.#hours.hour(nodeId, hourMs);
    return hour ? new Map([[0, hour.summary]]) : undefined;
  }

  /** Samples that may lie in the range, in order of time, written ones and pending ones. In `desc` the last chunk comes first. */
  chunks(node: string, fromMs: number, toMs: number, order: Order): Generator<Columns> {
    return this.#raw.chunks(this.#nodeIds.get(node) ?? null, this.#pendingOf(node), fromMs, toMs, order);
  }

  segmentParts(fromSegment: number, node: string | null): Generator<SegmentPart> {
    return segmentParts(this.#segments(), fromSegment, node);
  }

  changesAfter(after: Mark, node: string | null, limit: number): RecordedChange[] {
    return this.alerts.recorded(after, node, limit);
  }

  /** Time of the node's first sample that is still kept as such. */
  firstRawMs(node: string): number | null {
    const id = this.#nodeIds.get(node);
    let first = (id === undefined ? null : this.#raw.firstMs(id)) ?? Number.POSITIVE_INFINITY;
    for (const { timestampMs } of this.#pendingOf(node)) for (const ms of timestampMs) first = Math.min(first, ms);
    return Number.isFinite(first) ? first : null;
  }

  /** Time of the node's first sample that is still known in any tier; null: there is none. */
  firstSampleMs(node: string): number | null {
    const id = this.#nodeIds.get(node);
    const inMemory = this.#book.of(node).map(({ summary }) => summary.firstMs);
    const times = [this.firstRawMs(node), id === undefined ? null : this.#hours.first(id), ...inMemory].filter((ms) => ms !== null);
    return times.length > 0 ? Math.min(...times) : null;
  }

  /** The node's newest samples, for what was known before this start. */
  newestChunk(node: string): Columns | null {
    for (const columns of this.chunks(node, 0, Number.MAX_SAFE_INTEGER, 'desc')) return columns;
    return null;
  }

  size(): { totalBytes: number; freeBytes: number } {
    return sizeOf(this.#db);
  }

  close(): void {
    this.#db.close();
    this.#closeFile();
  }

  /** Sets the database aside and goes on with a new one: what is still in memory is written to it, and what was open stays open. */
  replaceDamaged(reason: string): void {
    if (this.isOpen) this.alerts.keepOpenEpisodes();
    this.#leave();
    const target = setAside(this.#options.path, this.#options.nowMs());
    this.#options.onSetAside(target, reason);
    this.#openOnce();
    this.#load();
  }

  #openOnce(): void {
    const { path, nowMs, onSetAside } = this.#options;
    const opened = openDatabase(path, nowMs());
    if (opened.setAside) onSetAside(opened.setAside.path, opened.setAside.reason);
    this.#use(opened.db);
    this.#descriptor = openSync(path, 'r');
    this.#inode = statSync(path).ino;
  }

  #use(db: DatabaseSync): void {
    try {
      this.#db.close();
    } catch {
      // Damaged or gone; there is nothing left to close properly.
    }
    this.#closeFile();
    this.#db = db;
    this.#nodeIds = new Map();
    this.alerts.replace(new AlertTable(db));
    this.shutdowns.replace(db);
    this.#hours = new HourTable(db);
    this.#raw = new RawTable(db);
    this.#lags = new LagTable(db);
  }

  #closeFile(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }

  /** Closes the database and stands in for it. */
  #leave(): void {
    this.#inode = null;
    this.#use(standInDatabase());
  }

  #load(): void {
    this.#loadNodeIds();
    this.#notes.load(this.#db);
    this.#openEpisodesFound = this.alerts.openOnDisk();
    if (!this.#everOpened) this.#resumeHours();
    this.#everOpened = true;
  }

  /**
   * Builds anew the hours that an earlier run did not come to write; when the database could be opened only late, those
   * that have begun since go on from there.
   */
  #resumeHours(): void {
    const inMemory = this.#book.takeAll();
    for (const [node, id] of this.#nodeIds) {
      const missing = this.#raw.hours(id).filter((hourMs) => this.#hours.starts(id, hourMs, hourMs + 1).length === 0);
      for (const hourMs of missing) this.#book.begin(node, this.#fromDatabase(node, hourMs));
    }
    // What waited may have been written before a crash: whether it was can be seen only now.
    this.#pending = this.#pending.map(({ segment, parts }) => ({
      segment,
      parts: parts.filter(({ node, columns }) => !this.hasSegment(segment, node, columns.timestampMs)),
    }));
    for (const { parts } of this.#pending) for (const { node, columns } of parts) this.#book.add(node, columns);
    // An hour whose samples had to be given up meanwhile is known only from memory.
    for (const entry of inMemory) if (!this.#book.find(entry.node, entry.hour.hourMs)) this.#book.keep(entry);
  }

  #loadNodeIds(): void {
    const rows = this.#db.prepare('SELECT id, name, gathered FROM node').all() as { id: number; name: string; gathered: number }[];
    this.#nodeIds = new Map(rows.map(({ id, name }) => [name, id]));
    this.#gathered.clear();
    for (const { name, gathered } of rows) if (gathered !== 0) this.#gathered.add(name);
  }

  #isGathered(node: string): boolean {
    return this.#options.localNode !== null && node !== this.#options.localNode;
  }

  #segments(): SegmentSource {
    return { nodes: this.#nodeIds, raw: this.#raw, lags: this.#lags, pending: this.#pending, nowMs: this.#options.nowMs() };
  }

  #idOf(node: string): number {
    const known = this.#nodeIds.get(node);
    const gathered = this.#isGathered(node);
    // A name may pass from one machine to another.
    if (known !== undefined && this.#gathered.has(node) === gathered) return known;
    this.#db
      .prepare('INSERT INTO node (name, gathered) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET gathered = excluded.gathered')
      .run(node, gathered ? 1 : 0);
    if (gathered) this.#gathered.add(node);
    else this.#gathered.delete(node);
    const { id } = this.#db.prepare('SELECT id FROM node WHERE name = ?').get(node) as { id: number };
    this.#nodeIds.set(node, id);
    return id;
  }

  #writeSegment({ segment, parts }: PendingSegment): void {
    for (const node of new Set(parts.map((part) => part.node))) {
      const columns = parts.filter((part) => part.node === node).map((part) => part.columns);
      const id = this.#idOf(node);
      this.#raw.write(id, segment, columns, (fromMs) => this.#lags.note(id, segment, fromMs));
    }
  }

  #writeHours(): void {
    const finished = this.#book.finished();
    for (const { node, hour } of [...finished, ...this.#book.reopened()]) this.#hours.write(this.#idOf(node), hour);
    if (finished.length === 0) return;
    pruneByAge(this.#db, this.#options.nowMs());
    this.#lags.reload();
  }

  #saveNotes(): void {
    if (!this.isOpen) throw new Error(`the database is not open: ${this.#closedBecause}`);
    this.#guard(() => this.#notes.save(this.#db, (node) => this.#idOf(node)));
  }

  #pendingOf(node: string): Columns[] {
    const parts = this.#pending.flatMap((pending) => pending.parts.filter((part) => part.node === node));
    return parts.map(({ columns }) => columns).filter(({ count }) => count > 0);
  }

  #addToHour(node: string, hour: HourRecord, columns: Columns, row: number): void {
    const periodMs = this.#notes.periodMsAt(node, columns.timestampMs[row] as number);
    addToHour(hour, columns, row, periodMs, this.#notes.clockEvents);
  }

  #resumeHour(node: string, hourMs: number): HourRecord {
    try {
      return this.#fromDatabase(node, hourMs);
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.replaceDamaged((error as Error).message);
      return emptyHour(hourMs);
    }
  }

  /** An hour as the database knows it: from its raw samples, or from what was written of it where that knows of more of them. */
  #fromDatabase(node: string, hourMs: number): HourRecord {
    const id = this.#nodeIds.get(node);
    if (id === undefined) return emptyHour(hourMs);
    const written = this.#hours.hour(id, hourMs);
    const hour = emptyHour(hourMs, written !== null);
    for (const columns of this.#raw.chunks(id, [], hourMs, hourMs + HOUR_MS, 'asc')) {
      for (let row = 0; row < columns.count; row += 1) {
        if (hourOf(columns.timestampMs[row] as number) === hourMs) this.#addToHour(node, hour, columns, row);
      }
    }
    if (!written || written.summary.received <= hour.summary.received) return hour;
    return { ...hour, ...written, minutes: this.#hours.minutes(id, hourMs) ?? new Map() };
  }

  #transaction(work: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#db.exec('COMMIT');
    } catch (error) {
      try {
        if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
        // Ids given out inside the transaction are gone with it.
        this.#loadNodeIds();
        this.#lags.reload();
      } catch {
        // The error that brought us here says more.
      }
      throw error;
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

  /** A database deleted or replaced under us would be written to in vain. */
  #reopenIfGone(): void {
    const { path, nowMs, onSetAside } = this.#options;
    const inode = statSync(path, { throwIfNoEntry: false })?.ino;
    if (inode !== undefined && inode === this.#inode) {
      if (this.#descriptor !== null) checkStillThere(this.#descriptor);
      return;
    }
    if (this.isOpen) {
      this.alerts.keepOpenEpisodes();
      this.#leave();
      // Its side files would be taken for the next one's.
      setAside(path, nowMs(), ['-wal', '-shm']);
      onSetAside('(removed)', `the database was removed or replaced at ${isoUtc(nowMs())}`);
    }
    this.open();
  }
}
