import type { DatabaseSync } from 'node:sqlite';
import { type Alert, isAboutRemoteNode } from '../../core/alerts/alert.ts';
import type { KnownNode } from '../../core/alerts/node-watch.ts';
import type { RecordCursor } from '../../core/ports.ts';
import type { ShutdownRecord } from '../../core/shutdown/shutdown.ts';
import type { ClockCorrection, ClockEvent } from '../../core/time/clock-watch.ts';
import { DAY_MS } from '../../core/time/time.ts';
import { AlertLog, AlertTable } from '../events/alert-log.ts';
import { SamplingHistory } from '../events/clock-events.ts';
import { ShutdownLog } from '../events/shutdown-log.ts';
import { Hours } from '../rollups/hours.ts';
import type { Columns } from '../samples/chunk.ts';
import { RawSamples } from '../samples/raw-samples.ts';
import { DatabaseFile, type DatabaseFileOptions, pagesOfLog, sizeOf, transaction } from './database.ts';
import { NodeTable } from './node-table.ts';
import { pruneByAge, pruneBySize, pruneRemoteAlerts } from './retention.ts';

/** Limits one transaction when many segments are pending. */
const SEGMENTS_PER_TRANSACTION = 60;

interface ArchiveOptions extends DatabaseFileOptions {
  readonly maxBytes: number;
  /** Every other node is remote. */
  readonly localNode: string;
}

/**
 * The database together with the records that are not yet in it. Each part keeps its unwritten records and includes them in reads. This
 * class decides what is written in one transaction, in which order, and what happens to unwritten records when the database fails.
 */
export class Archive {
  readonly alerts: AlertLog;
  readonly shutdowns: ShutdownLog;
  readonly sampling = new SamplingHistory();
  readonly samples: RawSamples;
  readonly hours: Hours;
  readonly #options: ArchiveOptions;
  readonly #file: DatabaseFile;
  readonly #nodes: NodeTable;
  readonly #budget = new WriteBudget();
  #alertsNotStored = 0;
  #everOpened = false;
  #openEpisodesFound: readonly Alert[] = [];

  constructor(options: ArchiveOptions) {
    this.#options = options;
    this.#file = new DatabaseFile(options, {
      use: (db) => this.#use(db),
      load: () => this.#load(),
      save: () => this.alerts.keepOpenEpisodes(),
    });
    const { nowMs } = options;
    const { db } = this.#file;
    this.#nodes = new NodeTable(db, options.localNode);
    this.alerts = new AlertLog(new AlertTable(db));
    this.shutdowns = new ShutdownLog(db);
    this.samples = new RawSamples(db, this.#nodes);
    const { sampling, samples } = this;
    this.hours = new Hours(db, { nodes: this.#nodes, samples, sampling, nowMs, onDamage: (reason) => this.replaceDamaged(reason) });
  }

  /** Whether the real database is open. Without it, records wait in memory and reads return only those. */
  get isOpen(): boolean {
    return this.#file.isOpen;
  }

  /** Episodes that were open in the database when it was opened, except those with newer pending changes. */
  get openEpisodesFound(): readonly Alert[] {
    return this.#openEpisodesFound;
  }

  /** Changes of remote nodes' alerts that exceeded the daily write budget. */
  get alertsNotStored(): number {
    return this.#alertsNotStored;
  }

  get db(): DatabaseSync {
    return this.#file.db;
  }

  /** Opens the database; throws when that is impossible for now. Until it succeeds, an in-memory database is used. */
  open(): void {
    this.#file.open();
  }

  /** Names of all nodes with samples, written or pending. */
  nodes(): string[] {
    return [...new Set([...this.#nodes.ids.keys(), ...this.samples.nodesWaiting()])];
  }

  /** First and last receive times of the remote nodes. */
  remoteNodes(): KnownNode[] {
    return this.samples.remoteNodes((node) => this.hours.lastWritten(node));
  }

  /** The last segment written; 0: there is none. */
  lastSegment(): number {
    return Math.max(this.alerts.lastSegment(), this.samples.lastSegment());
  }

  /** Records how often a node publishes since `sinceMs`, a time of that node's clock. Throws when it cannot be written yet. */
  setRate(node: string, hertz: number, sinceMs = this.#options.nowMs()): void {
    if (!this.sampling.hasRate(node)) this.hours.rebuild(node);
    this.sampling.addRate(node, { sinceMs, hertz });
    this.#saveSampling();
  }

  /** Records a clock event. Throws when it cannot be written yet; reads include it either way. */
  saveClockEvent(event: ClockEvent): void {
    this.sampling.addClockEvent(event);
    this.#saveSampling();
  }

  /**
   * Writes a change of this node's alert durably; a change of a remote node's alert is written by the next commit. Returns whether the
   * change is new. Throws when it cannot be written yet; reads include it either way.
   */
  saveAlert(alert: Alert, cursor?: RecordCursor): boolean {
    const { localNode, nowMs } = this.#options;
    if (isAboutRemoteNode(alert, localNode)) {
      const isNew = this.alerts.hold(alert, cursor, true);
      if (isNew && this.#budget.changes(nowMs()) === 0) this.#alertsNotStored += 1;
      return isNew;
    }
    this.#reopenIfDeleted();
    if (!this.isOpen) {
      this.alerts.hold(alert, cursor);
      throw this.#file.notOpen();
    }
    return this.#file.guard(
      () => this.alerts.save(alert, cursor),
      () => this.alerts.flush(0),
    );
  }

  /** Corrects the times of open alerts that this machine raised before its clock stepped; returns them. */
  correctAlerts(correction: ClockCorrection): Alert[] {
    return this.#file.guard(() => this.alerts.correct(this.#options.localNode, correction));
  }

  /** Writes a shutdown request durably. Throws when it cannot be written yet; reads include it either way. */
  saveShutdown(record: ShutdownRecord): void {
    this.#reopenIfDeleted();
    if (!this.isOpen) {
      this.shutdowns.hold(record);
      throw this.#file.notOpen();
    }
    this.#file.guard(
      () => this.shutdowns.save(record),
      () => this.shutdowns.flush(),
    );
  }

  /** Adds samples. While `isNewcomer` is true for a node without stored samples, its samples stay in memory; reads include them. */
  append(segment: number, node: string, columns: Columns, isNewcomer = false): void {
    if (!isNewcomer) this.#nodes.markStored(node);
    this.samples.add(segment, { node, columns });
    this.hours.add({ node, columns });
  }

  /** Whether the node's samples are written to the database. */
  isStored(node: string): boolean {
    return this.#nodes.isStored(node);
  }

  /** Drops a newcomer's samples. */
  drop(node: string): void {
    if (this.#nodes.isStored(node)) return;
    this.samples.drop(node);
    this.hours.drop(node);
    this.sampling.drop(node);
  }

  /** Drops a segment that could not be written before the backlog was full. */
  forget(segment: number): void {
    this.samples.forget(segment);
  }

  /**
   * Writes every pending segment up to and including this one. Throws when the database cannot be written; everything stays pending then.
   */
  commit(segment: number): void {
    this.#file.guard(() => {
      this.#file.reopenIfDeleted();
      this.#flushAlerts();
      this.shutdowns.flush();
      for (let last = false; !last; ) {
        const due = this.samples.due(segment);
        const next = due.slice(0, SEGMENTS_PER_TRANSACTION);
        last = next.length === due.length;
        this.#transaction(() => {
          if (last) this.#writeHours();
          this.samples.write(next);
        });
        this.samples.written(next);
        if (last) this.hours.written();
        pruneBySize(this.db, this.#options.maxBytes);
      }
      this.#saveSampling();
    });
  }

  /** Time of the node's first sample in any tier; null: there is none. */
  firstSampleMs(node: string): number | null {
    const times = [this.samples.firstMs(node), this.hours.firstMs(node)].filter((ms) => ms !== null);
    return times.length > 0 ? Math.min(...times) : null;
  }

  size(): { totalBytes: number; freeBytes: number } {
    return sizeOf(this.db);
  }

  close(): void {
    this.#file.close();
  }

  /** Quarantines the database and continues with a new one. Records in memory are written to it, and open episodes stay open. */
  replaceDamaged(reason: string): void {
    this.#file.replaceDamaged(reason);
  }

  /** A record is durable only in a file that still exists under its name. */
  #reopenIfDeleted(): void {
    try {
      if (this.isOpen) this.#file.guard(() => this.#file.reopenIfDeleted());
    } catch {
      // The next write encounters the same problem and reports it.
    }
  }

  #use(db: DatabaseSync): void {
    this.#nodes.replace(db);
    this.alerts.replace(new AlertTable(db));
    this.shutdowns.replace(db);
    this.hours.replace(db);
    this.samples.replace(db);
  }

  #load(): void {
    this.#nodes.load();
    this.sampling.load(this.db);
    this.#openEpisodesFound = this.alerts.openOnDisk();
    if (!this.#everOpened) this.hours.resume(() => this.samples.dropWritten());
    this.#everOpened = true;
  }

  #flushAlerts(): void {
    const before = pagesOfLog(this.db);
    const { localNode, maxBytes, nowMs } = this.#options;
    const maxRemote = this.#budget.changes(nowMs());
    const writesRemote = maxRemote > 0 && this.alerts.hasRemoteWaiting;
    this.alerts.flush(maxRemote);
    if (!writesRemote) return;
    pruneRemoteAlerts(this.db, localNode, maxBytes);
    const after = pagesOfLog(this.db);
    // The log was checkpointed and restarted from its first page.
    this.#budget.spend(after < before ? after : after - before);
  }

  #writeHours(): void {
    if (!this.hours.write()) return;
    pruneByAge(this.db, this.#options.nowMs());
  }

  #saveSampling(): void {
    if (!this.isOpen) throw this.#file.notOpen();
    this.#file.guard(() => this.sampling.save(this.db, (node) => (this.#nodes.isStored(node) ? this.#nodes.idOf(node) : null)));
  }

  #transaction(work: () => void): void {
    try {
      transaction(this.db, work);
    } catch (error) {
      this.samples.reload();
      try {
        this.#nodes.load();
      } catch {
        // The first error is more useful.
      }
      throw error;
    }
  }
}

/**
 * Daily write limit of remote nodes' alerts, equal to this machine's own daily writes. Any host on the network can publish alerts at any
 * rate.
 */
const BYTES_PER_DAY = 20e6;
/** A page goes to the write-ahead log with a header of 24 bytes, and later to the database, where the disk writes a block of 4096. */
const BYTES_PER_PAGE = 2048 + 24 + 4096;
/** A change updates a row and an index entry in two tables, and the index of the open episodes. */
const BYTES_PER_CHANGE = 5 * BYTES_PER_PAGE;

/** Counts the bytes written per day. A day begins with its first write. */
class WriteBudget {
  #startMs = 0;
  #spent = 0;

  /** Number of changes that may be written now, each at its highest cost. */
  changes(nowMs: number): number {
    // After the clock was set back the day is not over; a difference of a day in either direction starts a new one.
    if (Math.abs(nowMs - this.#startMs) >= DAY_MS) {
      this.#startMs = nowMs;
      this.#spent = 0;
    }
    return Math.max(0, Math.ceil((BYTES_PER_DAY - this.#spent) / BYTES_PER_CHANGE));
  }

  /** Adds written pages of the log. */
  spend(pages: number): void {
    this.#spent += pages * BYTES_PER_PAGE;
  }
}
