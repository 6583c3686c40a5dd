import { join } from 'node:path';
import type { Alert } from '../core/alert.ts';
import type { ClockEvent } from '../core/clock-watch.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { HeardNode } from '../core/node-watch.ts';
import type {
  Aggregate,
  AggregateQuery,
  AlertPage,
  AlertQuery,
  HistoryPage,
  HistoryQuery,
  HistoryReader,
  Mark,
  Position,
  RecordedPage,
  RecordedQuery,
  StorageState,
} from '../core/ports.ts';
import type { ShutdownBook, ShutdownQuery } from '../core/shutdown-ports.ts';
import type { ShutdownRecord } from '../core/shutdown-record.ts';
import type { Snapshot } from '../core/snapshot.ts';
import type { JudgingPast } from '../core/threshold-monitor.ts';
import { makeFolder } from '../system/data-folder.ts';
import { SegmentRecorder } from './segment-recorder.ts';
import { Snapshots } from './snapshots.ts';
import { StoreThread, type StoreThreadOptions } from './store-thread.ts';
import { isStorableTime, Tail, tailFolder } from './tail.ts';

export interface StoreOptions extends Omit<StoreThreadOptions, 'databasePath'> {
  readonly dataPath: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly monotonicSeconds: () => number;
}

/** What the database knows of earlier runs. */
export interface StoredPast extends JudgingPast {
  /** Every node that ever had a sample. */
  readonly nodes: readonly string[];
  /** Of these the ones whose samples came from elsewhere. */
  readonly heard: readonly HeardNode[];
}

/**
 * The store as the service sees it: every sample and alert goes into the tail at once and into the database by the store's
 * thread. Nothing here waits for a disk, but an alert that asks to be durable.
 */
export class Store implements HistoryReader, ShutdownBook {
  readonly #options: StoreOptions;
  readonly #recorder: SegmentRecorder;
  readonly #thread: StoreThread;
  readonly #snapshots: Snapshots;
  /** What was recorded before the start, and jumps of the clock while the thread is gone. */
  #early: (() => void)[] = [];
  #healthMark: Mark | null = null;
  #alertMark: Mark | null = null;
  #refused = false;

  constructor(options: StoreOptions) {
    this.#options = options;
    this.#recorder = new SegmentRecorder(options.log, options.monotonicSeconds);
    const databasePath = join(options.dataPath, 'edge-health.db');
    this.#thread = new StoreThread({ ...options, databasePath }, this.#recorder, () => this.#onOpening());
    this.#snapshots = new Snapshots(this.#thread);
  }

  /**
   * Takes the data folder, opens the database and recovers what a killed run left. Rejects when the folder is in use or
   * cannot be made; a database that cannot be opened for now only degrades the store.
   */
  async start(): Promise<StoredPast> {
    makeFolder(this.#options.dataPath);
    this.#recorder.open(new Tail(tailFolder(this.#options.dataPath, this.#options.environment)));
    try {
      const { heard, nodes, openAlerts, readableMetrics, recovered } = await this.#thread.open();
      if (recovered > 0) this.#options.log('notice', 'samples of an earlier run recovered', { samples: recovered });
      return { openAlerts, readableMetrics: new Set(readableMetrics), nodes, heard };
    } catch (error) {
      this.#thread.giveUp();
      this.#recorder.close();
      this.#recorder.remove(this.#recorder.segment); // It may lie among those of the run that has the folder.
      throw error;
    }
  }

  /** Writes what is left and closes the database; on a failure the tail keeps it for the next start. */
  async stop(): Promise<void> {
    await this.#thread.stop();
  }

  /**
   * Records one status, before it is published. `line` is the status as JSON. Of a newcomer everything is kept in memory, to be written as soon
   * as a status comes that is no newcomer's.
   */
  recordHealth(status: HealthStatus, line: string, timestampMs: number, isNewcomer = false): void {
    if (!isStorableTime(timestampMs)) {
      this.#refuse(status);
      return;
    }
    if (!this.#recorder.isOpen) {
      this.#early.push(() => this.recordHealth(status, line, timestampMs, isNewcomer));
      return;
    }
    this.#healthMark = this.#recorder.add(status, line, timestampMs, isNewcomer);
    if (this.#recorder.isBatchFull) this.#thread.sendBatches();
    if (this.#recorder.isOver) this.#thread.rotate();
  }

  /** Forgets a newcomer: nothing of it was written. */
  dropNewcomer(node: string): void {
    this.#recorder.drop(node);
    if (this.#thread.isThere) this.#thread.tell('drop', { node });
  }

  /**
   * Records a change of an episode, before it is published: resolves once it is durable, or after a short while if the disk does
   * not keep up; with false if it was known before. Calls resolve in the order in which they were made. Those of other nodes outlast a
   * kill at once, and a power cut with the next commit, as samples do; beyond what they may write in a day they are in memory alone.
   */
  async recordAlert(alert: Alert): Promise<boolean> {
    if (!this.#recorder.isOpen) {
      this.#early.push(() => void this.recordAlert(alert));
      return true;
    }
    const mark = this.#recorder.write(JSON.stringify(alert));
    const isNews = await this.#thread.askDurably('alert', { alert, mark });
    this.#alertMark = mark;
    return isNews ?? true;
  }

  /** Notes how often another node publishes from a time on, by its own clock. */
  recordRate(node: string, hertz: number, sinceMs: number): void {
    if (this.#thread.isThere) this.#thread.tell('rate', { node, hertz, sinceMs });
    else this.#early.push(() => this.recordRate(node, hertz, sinceMs));
  }

  /** As recordAlert, for a request of a safe shutdown and what became of it. */
  async recordShutdown(record: ShutdownRecord): Promise<void> {
    if (!this.#recorder.isOpen) {
      this.#early.push(() => void this.recordShutdown(record));
      return;
    }
    this.#recorder.write(JSON.stringify(record));
    await this.#thread.askDurably('shutdown', record);
  }

  recordClockEvent(event: ClockEvent): void {
    if (this.#thread.isThere) this.#thread.tell('clockEvent', event);
    else this.#early.push(() => this.recordClockEvent(event));
  }

  /** Writes everything recorded up to now into the database. Resolves with why that has to wait; null: it is written. */
  flush(): Promise<string | null> {
    return this.#thread.flush();
  }

  history(query: HistoryQuery): Promise<HistoryPage> {
    this.#thread.sendBatches();
    return this.#thread.ask('history', query);
  }

  aggregate(query: AggregateQuery): Promise<Aggregate[]> {
    this.#thread.sendBatches();
    return this.#thread.ask('aggregate', query);
  }

  alerts(query: AlertQuery): Promise<AlertPage> {
    return this.#thread.ask('alerts', query);
  }

  recorded(query: RecordedQuery): Promise<RecordedPage> {
    this.#thread.sendBatches();
    return this.#thread.ask('recorded', query);
  }

  position(): Position | null {
    return this.#healthMark && this.#alertMark && { health: this.#healthMark, alert: this.#alertMark };
  }

  segment(): number | null {
    return this.#recorder.isOpen ? this.#recorder.segment : null;
  }

  clockEvents(limit: number): Promise<ClockEvent[]> {
    return this.#thread.ask('clockEvents', { limit });
  }

  shutdowns(query: ShutdownQuery): Promise<ShutdownRecord[]> {
    return this.#thread.ask('shutdowns', query);
  }

  snapshot(signal: AbortSignal): Promise<Snapshot> {
    return this.#snapshots.take(signal);
  }

  /** Changes of other nodes' alerts that came when no more of them could be written that day, as of the last commit. */
  get alertsNotStored(): number {
    return this.#thread.alertsNotStored;
  }

  state(): StorageState {
    return this.#thread.state();
  }

  #onOpening(): void {
    const nothingYet = { segment: this.#recorder.segment, order: 0 };
    this.#healthMark ??= nothingYet;
    this.#alertMark ??= nothingYet;
    const early = this.#early;
    this.#early = [];
    for (const record of early) record();
  }

  #refuse(status: HealthStatus): void {
    if (!this.#refused) this.#options.log('warning', 'status with an impossible time not stored', { node: status.node_name });
    this.#refused = true;
  }
}
