import type { Alert } from '../../core/alerts/alert.ts';
import type { KnownNode } from '../../core/alerts/node-watch.ts';
import type { Log, StorageState } from '../../core/ports.ts';
import { isoUtc } from '../../core/time/time.ts';
import { Backlog, type WaitingSegment } from '../spool/backlog.ts';
import type { SegmentRecorder } from '../spool/segment-recorder.ts';
import type { Answer, Leftover, OpenAnswer, Operation, Operations, Written } from './protocol.ts';
import { hangText, REAL_TIMERS, type Timer, type Timers, WorkerClient, type WorkerListener } from './worker-client.ts';

/** Interval of retries while writing fails. */
const RETRY_SECONDS = 10;
/** Upper limit of records waiting in memory: two days at 1 Hz. Beyond it the oldest samples are dropped. */
const MAX_WAITING_BYTES = 24 * 1024 * 1024;
/** Longest wait of an alert or a shutdown request for the disk before it is published. It is in the spool by then. */
const DURABLE_DEADLINE_MS = 500;

export interface StoreThreadOptions {
  readonly databasePath: string;
  readonly maxBytes: number;
  readonly node: string;
  readonly hertz: number;
  readonly worker: URL;
  readonly log: Log;
  /** Called with the open episodes of a database that was opened after the start. */
  readonly onLateOpen: (openAlerts: readonly Alert[], remoteNodes: readonly KnownNode[]) => void;
  readonly retrySeconds?: number;
  readonly maxWaitingBytes?: number;
  readonly timers?: Timers;
}

/**
 * Writes the recorded segments to the database through the store's thread. It retries while the disk fails and starts a new thread when
 * one terminates. Unwritten records stay in the spool.
 */
export class StoreThread {
  readonly #options: StoreThreadOptions;
  readonly #recorder: SegmentRecorder;
  /** Called each time a thread starts and accepts requests. */
  readonly #onOpening: () => void;
  readonly #backlog: Backlog;
  readonly #health: StoreHealth;
  readonly #timers: Timers;
  #client: WorkerClient | null = null;
  #retryTimer: Timer | null = null;
  #committing: Promise<void> | null = null;
  #stopping = false;
  /** Whether the service has the open episodes of the database; not before a thread could be started. */
  #isPastKnown = false;
  /** Number of the first segment of this run. */
  #firstSegment: number | null = null;

  constructor(options: StoreThreadOptions, recorder: SegmentRecorder, onOpening: () => void) {
    this.#options = options;
    this.#recorder = recorder;
    this.#onOpening = onOpening;
    this.#backlog = new Backlog(options.maxWaitingBytes ?? MAX_WAITING_BYTES);
    this.#health = new StoreHealth(options.log);
    this.#timers = options.timers ?? REAL_TIMERS;
  }

  /** Whether a thread accepts requests. */
  get isRunning(): boolean {
    return this.#client !== null;
  }

  /**
   * Starts a thread. Rejects when the folder is locked by another process. Null: no thread could be started, as without free descriptors;
   * this is retried, and `onLateOpen` is called once it succeeds.
   */
  async start(): Promise<OpenAnswer | null> {
    try {
      const { answer } = await this.#open();
      return answer;
    } catch (error) {
      if ((error as Error).name === 'DataFolderInUse') throw error;
      this.#degrade((error as Error).message);
      return null;
    }
  }

  /** Starts a thread, which opens the database and loads the spool; `own`: the episodes that this run has recorded in the spool. */
  async #open(): Promise<{ answer: OpenAnswer; own: ReadonlySet<string> }> {
    this.#backlog.push(this.#recorder.end());
    const leftovers = this.#recorder.beginAfterRestart();
    this.#firstSegment ??= this.#recorder.segment;
    const first = this.#firstSegment;
    const { databasePath: path, hertz, maxBytes, node, worker } = this.#options;
    this.#backlog.replace(leftovers.map(toWaitingSegment));
    const listener: WorkerListener = {
      onQuarantined: (quarantined, reason) => this.#health.recordQuarantine(quarantined, reason),
      onExit: (reason) => this.#onExit(client, reason),
      onHang: (hangs) => this.#health.setHanging(hangs),
    };
    const client = new WorkerClient(worker, listener, this.#timers);
    this.#client = client;
    const opening = client.request('open', { path, maxBytes, node, hertz, leftovers });
    this.#onOpening();
    try {
      const answer = await opening;
      if (this.#client !== client) throw new Error('the store thread ended');
      if (answer.problem === null) this.#onWritten(answer, leftovers.at(-1)?.segment ?? 0);
      else this.#degrade(answer.problem);
      this.#health.setDatabaseState(answer);
      this.#ensureSegmentAfter(answer.lastSegment);
      this.#isPastKnown = true;
      const ofThisRun = leftovers.filter(({ segment }) => segment >= first);
      return { answer, own: new Set(ofThisRun.flatMap(({ alerts }) => alerts.map(({ alert }) => alert.alert_id))) };
    } catch (error) {
      if (this.#client === client) this.#client = null;
      await client.end();
      throw error;
    }
  }

  endRetries(): void {
    this.#stopping = true;
    if (this.#retryTimer) this.#timers.clearTimeout(this.#retryTimer);
  }

  /** Writes everything pending and closes the database. */
  async stop(): Promise<void> {
    this.endRetries();
    await this.#committing;
    const client = this.#client;
    if (client) {
      this.#endSegment();
      await this.#commit();
    }
    this.#recorder.close();
    if (!client) return;
    await client.request('close', null).catch(() => undefined); // A terminated thread has closed the database.
    await client.end();
    this.#client = null;
  }

  request<O extends Operation>(operation: O, body: Operations[O]['request'], transfer?: readonly ArrayBuffer[]): Promise<Answer<O>> {
    if (!this.#client) return Promise.reject(new Error('the store is not open'));
    return this.#client.request(operation, body, transfer);
  }

  /** Sends a write that has no result; a failure degrades the store. */
  send<O extends Operation>(operation: O, body: Operations[O]['request'], transfer?: readonly ArrayBuffer[]): void {
    this.request(operation, body, transfer).catch((error: Error) => this.#degrade(error.message));
  }

  /** Waits for a write for at most DURABLE_DEADLINE_MS. Resolves with null when it failed, which degrades the store, or takes longer. */
  async requestDurably<O extends Operation>(operation: O, body: Operations[O]['request']): Promise<Answer<O> | null> {
    const saved = this.request(operation, body).catch((error: Error) => {
      this.#degrade(error.message);
      return null;
    });
    return new Promise((resolve) => {
      const deadline = this.#timers.setTimeout(() => resolve(null), DURABLE_DEADLINE_MS);
      void saved.then((answer) => {
        this.#timers.clearTimeout(deadline);
        resolve(answer);
      });
    });
  }

  sendBatches(): void {
    if (!this.#client) {
      this.#recorder.dropBatches(); // The next thread loads these records from the spool.
      return;
    }
    for (const { buffers, ...batch } of this.#recorder.takeBatches()) {
      this.send('append', batch, buffers);
    }
  }

  /** Begins the next segment and writes the earlier ones in the background. */
  rotate(): void {
    this.#beginNextSegment();
    const trimmed = this.#backlog.dropOldestSamples((segment) => this.#recorder.dropSamples(segment));
    if (this.#client) for (const segment of trimmed) this.send('forget', { segment });
    // While writing fails, the retry timer starts the next attempt.
    if (this.#health.isOk) void this.#commit();
  }

  /** Writes everything recorded so far to the database. Resolves with the reason if that fails, else with null. */
  async flush(): Promise<string | null> {
    await this.#committing; // A commit in progress may have begun before the last sample.
    if (!this.#client) return this.#health.error ?? 'the store is not open';
    this.#beginNextSegment();
    await this.#commit();
    return this.#health.error;
  }

  /** Changes of remote nodes' alerts that exceeded the daily write budget, as of the last commit. */
  get alertsNotStored(): number {
    return this.#health.alertsNotStored;
  }

  /** Why the last write failed; null: it succeeded. */
  get error(): string | null {
    return this.#health.error;
  }

  state(): StorageState {
    const state = {
      path: this.#options.databasePath,
      ...this.#health.storageState(),
      max_bytes: this.#options.maxBytes,
      samples_pending: this.#backlog.samples + this.#recorder.samples,
      samples_lost: this.#backlog.lost,
    };
    const hangSeconds = this.#client?.hangSeconds ?? null;
    if (hangSeconds === null || state.state !== 'ok') return state;
    return { ...state, state: 'degraded', error: hangText(hangSeconds), since: isoUtc(Date.now() - hangSeconds * 1000) };
  }

  #beginNextSegment(atLeast?: number): void {
    this.#endSegment();
    this.#recorder.begin(atLeast);
  }

  /** Keeps sequence numbers ascending after the clock was set back between two runs. */
  #ensureSegmentAfter(lastSegment: number): void {
    if (lastSegment >= this.#recorder.segment) this.#beginNextSegment(lastSegment + 1);
  }

  #endSegment(): void {
    this.sendBatches();
    this.#backlog.push(this.#recorder.end());
  }

  #commit(): Promise<void> {
    this.#committing ??= this.#commitWaiting().finally(() => {
      this.#committing = null;
    });
    return this.#committing;
  }

  async #commitWaiting(): Promise<void> {
    const { last } = this.#backlog;
    if (last === null) return;
    const client = this.#client;
    try {
      const written = await this.request('commit', { segment: last });
      if (this.#client !== client) return; // The thread ended meanwhile; the next one determines from the database what was written.
      this.#onWritten(written, last);
      if (written.lastSegment !== undefined) this.#ensureSegmentAfter(written.lastSegment);
      if (written.openAlerts) this.#options.onLateOpen(written.openAlerts, written.remoteNodes ?? []);
    } catch (error) {
      this.#degrade((error as Error).message);
    }
  }

  #onWritten(written: Written, upToSegment: number): void {
    this.#backlog.written(upToSegment, (segment) => this.#recorder.remove(segment));
    this.#health.recordSuccess(written, this.#backlog.lost);
  }

  #degrade(error: string): void {
    this.#health.recordFailure(error);
    if (this.#stopping || this.#retryTimer) return;
    this.#retryTimer = this.#timers.setTimeout(
      () => {
        this.#retryTimer = null;
        void this.#retry();
      },
      (this.#options.retrySeconds ?? RETRY_SECONDS) * 1000,
    );
  }

  async #retry(): Promise<void> {
    if (!this.#client) {
      await this.#reopen().catch((error: Error) => this.#degrade(error.message));
      return;
    }
    if (this.#backlog.isEmpty) this.#beginNextSegment();
    await this.#commit();
  }

  async #reopen(): Promise<void> {
    const isLate = !this.#isPastKnown;
    const { answer, own } = await this.#open();
    if (isLate)
      this.#options.onLateOpen(
        answer.openAlerts.filter(({ alert_id }) => !own.has(alert_id)),
        answer.remoteNodes,
      );
  }

  /** The next thread loads the unwritten records from the spool. */
  #onExit(client: WorkerClient, reason: string): void {
    if (this.#client === client) this.#client = null;
    this.#degrade(reason);
  }
}

function toWaitingSegment({ segment, bytes, samples }: Leftover): WaitingSegment {
  return { segment, bytes, samples: samples.reduce((sum, { columns }) => sum + columns.count, 0) };
}

/** The wall clock's time of a moment in performance.now() time, to the second, since the two clocks do not run alike. */
function wallTimeOf(monotonicMs: number | null): string | null {
  return monotonicMs === null ? null : isoUtc(Math.round((Date.now() - performance.now() + monotonicMs) / 1000) * 1000);
}

/** State of writing to the database, for the log and /status. */
class StoreHealth {
  readonly #log: Log;
  readonly #quarantined: string[] = [];
  #state: StorageState['state'] = 'starting';
  #error: string | null = null;
  /** Monotonic times: the wall clock may step. */
  #sinceMs: number | null = null;
  #written: Written = { sizeBytes: 0, oldestSampleMs: null, alertsNotStored: 0 };
  #lastWriteMs: number | null = null;
  #isAlertBudgetSpent = false;

  constructor(log: Log) {
    this.#log = log;
  }

  get isOk(): boolean {
    return this.#state === 'ok';
  }

  /** Reason of the last failure; null while writing works. */
  get error(): string | null {
    return this.#error;
  }

  /** Changes of remote nodes' alerts that exceeded the daily write budget. */
  get alertsNotStored(): number {
    return this.#written.alertsNotStored;
  }

  setDatabaseState(written: Written): void {
    this.#written = written;
  }

  recordSuccess(written: Written, samplesLost: number): void {
    const more = written.alertsNotStored - this.#written.alertsNotStored;
    if (more > 0 && !this.#isAlertBudgetSpent)
      this.#log('warning', 'remote alerts shown but not stored: daily write budget used up', { changes: more });
    this.#isAlertBudgetSpent = more > 0;
    this.#written = written;
    this.#lastWriteMs = performance.now();
    if (this.#state === 'degraded')
      this.#log('notice', 'storage recovered', { since: wallTimeOf(this.#sinceMs), samples_lost: samplesLost });
    this.#state = 'ok';
    this.#error = null;
    this.#sinceMs = null;
  }

  recordFailure(error: string): void {
    if (this.#state !== 'degraded') {
      this.#sinceMs = performance.now();
      this.#log('error', 'cannot write the database; samples are kept in memory and writing is retried', { error });
    }
    this.#state = 'degraded';
    this.#error = error;
  }

  /** Logs that the disk stopped responding, or responds again. */
  setHanging(hangs: boolean): void {
    if (hangs) this.#log('error', 'database disk does not respond; samples are kept in memory');
    else this.#log('notice', 'database disk responds again');
  }

  recordQuarantine(quarantined: string, reason: string): void {
    this.#quarantined.push(quarantined);
    this.#log('error', 'unusable database quarantined and a new one created', { quarantined: quarantined, reason });
  }

  storageState(): Omit<StorageState, 'path' | 'max_bytes' | 'samples_pending' | 'samples_lost'> {
    const { oldestSampleMs, sizeBytes } = this.#written;
    return {
      state: this.#state,
      error: this.#error,
      since: wallTimeOf(this.#sinceMs),
      size_bytes: sizeBytes,
      oldest_sample: oldestSampleMs === null ? null : isoUtc(oldestSampleMs),
      last_write: wallTimeOf(this.#lastWriteMs),
      quarantined: this.#quarantined,
    };
  }
}
