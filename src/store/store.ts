import { join } from 'node:path';
import type { Alert } from '../core/alerts/alert.ts';
import type { KnownNode } from '../core/alerts/node-watch.ts';
import type { JudgingPast } from '../core/alerts/threshold-monitor.ts';
import { makeFolder } from '../core/files/data-folder.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type {
  Aggregate,
  AggregateQuery,
  AlertPage,
  AlertQuery,
  HistoryPage,
  HistoryQuery,
  HistoryReader,
  RecordCursor,
  RecordedAlert,
  RecordedPage,
  RecordedQuery,
  StorageState,
} from '../core/ports.ts';
import type { ShutdownQuery, ShutdownRecord, ShutdownRecords } from '../core/shutdown/shutdown.ts';
import type { Snapshot } from '../core/snapshot.ts';
import type { ClockCorrection, ClockEvent } from '../core/time/clock-watch.ts';
import { Snapshots } from './backup/snapshots.ts';
import { SegmentRecorder } from './spool/segment-recorder.ts';
import { isStorableTime, Spool, spoolFolder } from './spool/spool.ts';
import { StoreThread, type StoreThreadOptions } from './thread/store-thread.ts';

export interface StoreOptions extends Omit<StoreThreadOptions, 'databasePath'> {
  readonly dataPath: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly monotonicSeconds: () => number;
}

/** State that the database holds from earlier runs. */
interface StoredPast extends JudgingPast {
  /** Every node with at least one stored sample. */
  readonly nodes: readonly string[];
  /** Those of `nodes` whose samples were received from the network. */
  readonly remoteNodes: readonly KnownNode[];
}

/**
 * The store as seen by the service. Every sample and alert is written to the spool synchronously and to the database by the store's
 * thread. No method waits for a disk, except those whose promise resolves once a record is durable.
 */
export class Store implements HistoryReader, ShutdownRecords {
  readonly #options: StoreOptions;
  readonly #recorder: SegmentRecorder;
  readonly #thread: StoreThread;
  readonly #snapshots: Snapshots;
  /** Records made before start(), and rates and clock events that arrive while the thread is not running. */
  #earlyRecords: (() => void)[] = [];
  /**
   * Until the thread has opened the database, the cursor of a record may be below those of existing records. Of a database that cannot be
   * opened yet, this is accepted: event streams stay resumable meanwhile.
   */
  #isStarted = false;
  #refused = false;

  constructor(options: StoreOptions) {
    this.#options = options;
    this.#recorder = new SegmentRecorder(options.log, options.monotonicSeconds);
    const databasePath = join(options.dataPath, 'edge-health.db');
    this.#thread = new StoreThread({ ...options, databasePath }, this.#recorder, () => this.#onOpening());
    this.#snapshots = new Snapshots(this.#thread);
  }

  /**
   * Locks the data folder, opens the database and recovers the spool of a killed run. Rejects when the folder is locked by another
   * process or cannot be created. A database that cannot be opened yet, or a thread that cannot be started, only degrades the store.
   */
  async start(): Promise<StoredPast> {
    makeFolder(this.#options.dataPath);
    this.#recorder.open(new Spool(spoolFolder(this.#options.dataPath, this.#options.environment)));
    try {
      const past = await this.#thread.start();
      this.#isStarted = true;
      if (past === null) return { openAlerts: [], readableMetrics: new Set(), nodes: [], remoteNodes: [] };
      const { remoteNodes, nodes, openAlerts, readableMetrics, recovered } = past;
      if (recovered > 0) this.#options.log('notice', 'samples of an earlier run recovered', { samples: recovered });
      return { openAlerts, readableMetrics, nodes, remoteNodes };
    } catch (error) {
      this.#thread.endRetries();
      this.#recorder.close();
      this.#recorder.remove(this.#recorder.segment); // The segment is in the folder of the run that holds the lock.
      throw error;
    }
  }

  /** Writes everything pending and closes the database. After a failure the spool keeps the records for the next start. */
  async stop(): Promise<void> {
    await this.#thread.stop();
  }

  /**
   * Records one health status before it is published. `line` is the status as JSON. The samples of a newcomer stay in memory until a
   * status of the same node arrives with `isNewcomer` false. Returns its cursor; null: the time is invalid, or the store is not started.
   */
  recordHealth(status: HealthStatus, line: string, timestampMs: number, isNewcomer = false): RecordCursor | null {
    if (!isStorableTime(timestampMs)) {
      this.#refuse(status);
      return null;
    }
    if (!this.#recorder.isOpen) {
      this.#earlyRecords.push(() => this.recordHealth(status, line, timestampMs, isNewcomer));
      return null;
    }
    const cursor = this.#recorder.add(status, line, timestampMs, isNewcomer);
    if (this.#recorder.isBatchFull) this.#thread.sendBatches();
    if (this.#recorder.isOver) this.#thread.rotate();
    return this.#isStarted ? cursor : null;
  }

  /** Drops the samples of a newcomer, none of which has been written. */
  dropNewcomer(node: string): void {
    this.#recorder.drop(node);
    if (this.#thread.isRunning) this.#thread.send('drop', { node });
  }

  /**
   * Records a change of an episode before it is published. Resolves once the change is durable, or after DURABLE_DEADLINE_MS if the disk
   * does not keep up. Calls resolve in call order. Changes of remote nodes survive a SIGKILL at once and a power cut after the next commit,
   * as samples do; beyond their daily write budget they are kept in memory only.
   */
  async recordAlert(alert: Alert): Promise<RecordedAlert> {
    if (!this.#recorder.isOpen) {
      this.#earlyRecords.push(() => void this.recordAlert(alert));
      return { isNew: true, cursor: null };
    }
    const cursor = this.#recorder.write(JSON.stringify(alert));
    const isNew = (await this.#thread.requestDurably('alert', { alert, cursor })) ?? true;
    return { isNew, cursor: this.#isStarted ? cursor : null };
  }

  /** Records the publish rate of a remote node. `sinceMs` is a time of that node's clock. */
  recordRate(node: string, hertz: number, sinceMs: number): void {
    if (this.#thread.isRunning) this.#thread.send('rate', { node, hertz, sinceMs });
    else this.#earlyRecords.push(() => this.recordRate(node, hertz, sinceMs));
  }

  /** Records a request of a safe shutdown or its outcome; resolves as recordAlert does. */
  async recordShutdown(record: ShutdownRecord): Promise<void> {
    if (!this.#recorder.isOpen) {
      this.#earlyRecords.push(() => void this.recordShutdown(record));
      return;
    }
    this.#recorder.write(JSON.stringify(record));
    await this.#thread.requestDurably('shutdown', record);
  }

  recordClockEvent(event: ClockEvent): void {
    if (this.#thread.isRunning) this.#thread.send('clockEvent', event);
    else this.#earlyRecords.push(() => this.recordClockEvent(event));
  }

  /**
   * Corrects the times of open alerts that this machine raised before its clock stepped; resolves with them. The spool, which has the
   * times as recorded, is written to the database, so that a restart does not read them again.
   */
  async correctAlerts(correction: ClockCorrection): Promise<readonly Alert[]> {
    if (!this.#thread.isRunning) return [];
    const alerts = await this.#thread.requestDurably('correctAlerts', correction);
    void this.flush();
    return alerts ?? [];
  }

  /** Writes everything recorded so far to the database. Resolves with the reason if that fails, else with null. */
  flush(): Promise<string | null> {
    return this.#thread.flush();
  }

  history(query: HistoryQuery): Promise<HistoryPage> {
    this.#thread.sendBatches();
    return this.#thread.request('history', query);
  }

  aggregate(query: AggregateQuery): Promise<Aggregate[]> {
    this.#thread.sendBatches();
    return this.#thread.request('aggregate', query);
  }

  alerts(query: AlertQuery): Promise<AlertPage> {
    return this.#thread.request('alerts', query);
  }

  recorded(query: RecordedQuery): Promise<RecordedPage> {
    this.#thread.sendBatches();
    return this.#thread.request('recorded', query);
  }

  segment(): number | null {
    return this.#recorder.isOpen ? this.#recorder.segment : null;
  }

  clockEvents(limit: number): Promise<ClockEvent[]> {
    return this.#thread.request('clockEvents', { limit });
  }

  shutdowns(query: ShutdownQuery): Promise<ShutdownRecord[]> {
    return this.#thread.request('shutdowns', query);
  }

  snapshot(signal: AbortSignal): Promise<Snapshot> {
    return this.#snapshots.take(signal);
  }

  /** Changes of remote nodes' alerts that exceeded the daily write budget, as of the last commit. */
  get alertsNotStored(): number {
    return this.#thread.alertsNotStored;
  }

  /** Why the last write failed; null: it succeeded. */
  get error(): string | null {
    return this.#thread.error;
  }

  state(): StorageState {
    return this.#thread.state();
  }

  #onOpening(): void {
    const earlyRecords = this.#earlyRecords;
    this.#earlyRecords = [];
    for (const record of earlyRecords) record();
  }

  #refuse(status: HealthStatus): void {
    if (!this.#refused) this.#options.log('warning', 'status with an invalid timestamp not stored', { node: status.node_name });
    this.#refused = true;
  }
}
