import { mkdirSync } from 'node:fs';
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
  Log,
  Mark,
  Position,
  RecordedPage,
  RecordedQuery,
  StorageState,
} from '../core/ports.ts';
import type { ShutdownBook, ShutdownQuery } from '../core/shutdown-ports.ts';
import type { ShutdownRecord } from '../core/shutdown-record.ts';
import type { JudgingPast } from '../core/threshold-monitor.ts';
import { isoUtc } from '../core/time.ts';
import { Batch } from './batch.ts';
import type { Leftover, OpenAnswer, Written } from './protocol.ts';
import { isStorableTime, Tail, tailFolder } from './tail.ts';
import { WorkerClient } from './worker-client.ts';

/** A segment is written to the database this often: what a power cut may take. */
const SEGMENT_SECONDS = 60;
/** At high frequencies a segment ends earlier, to bound the tail. */
const SEGMENT_BYTES = 2 * 1024 * 1024;
/** While writing fails, it is tried again this often. */
const RETRY_SECONDS = 10;
/** What may wait in memory while the database cannot be written: two days at 1 Hz. Beyond it the oldest is given up. */
const MAX_WAITING_BYTES = 24 * 1024 * 1024;
/** An alert, or a request of a shutdown, waits this long for the disk before it goes its way all the same; it is in the tail by then. */
const DURABLE_DEADLINE_MS = 500;
/** Samples are handed to the thread in batches of at most this many. */
const MAX_BATCH = 1000;

export interface StoreOptions {
  readonly dataPath: string;
  readonly maxBytes: number;
  readonly node: string;
  readonly hertz: number;
  /** The worker's program. */
  readonly worker: URL;
  readonly environment: NodeJS.ProcessEnv;
  readonly log: Log;
  readonly monotonicSeconds: () => number;
  /** Told when a database that could not be opened at the start was opened later, with its open episodes. */
  readonly onLateOpen: (openAlerts: readonly Alert[], heard: readonly HeardNode[]) => void;
  readonly retrySeconds?: number;
  readonly maxWaitingBytes?: number;
}

/** What the database knows of earlier runs. */
export interface StoredPast extends JudgingPast {
  /** Every node that ever had a sample. */
  readonly nodes: readonly string[];
  /** Of these the ones whose samples came from elsewhere. */
  readonly heard: readonly HeardNode[];
}

interface WaitingSegment {
  readonly segment: number;
  readonly bytes: number;
  readonly samples: number;
}

/**
 * The store as the service sees it: every sample and alert goes into the tail at once and into the database by the store's
 * thread. Nothing here waits for a disk, but an alert that asks to be durable.
 */
export class Store implements HistoryReader, ShutdownBook {
  readonly #options: StoreOptions;
  readonly #databasePath: string;
  readonly #batches = new Map<string, Batch>();
  #tail: Tail | null = null;
  #client: WorkerClient | null = null;
  /** What was recorded before the start, and jumps of the clock while the thread is gone. */
  #early: (() => void)[] = [];
  #segmentSamples = 0;
  #segmentStartSeconds = 0;
  /** Number of the record within the segment that was recorded last. */
  #order = 0;
  #healthMark: Mark | null = null;
  #alertMark: Mark | null = null;
  #waiting: WaitingSegment[] = [];
  #retryTimer: NodeJS.Timeout | null = null;
  #committing: Promise<void> | null = null;
  #stopping = false;
  #state: 'starting' | 'ok' | 'degraded' = 'starting';
  #error: string | null = null;
  #since: string | null = null;
  #written: Written = { sizeBytes: 0, oldestSampleMs: null };
  #lastWrite: string | null = null;
  #lost = 0;
  #tailFailed = false;
  #refused = false;
  readonly #setAside: string[] = [];

  constructor(options: StoreOptions) {
    this.#options = options;
    this.#databasePath = join(options.dataPath, 'edge-health.db');
  }

  /**
   * Takes the data folder, opens the database and recovers what a killed run left. Rejects when the folder is in use or
   * cannot be made; a database that cannot be opened for now only degrades the store.
   */
  async start(): Promise<StoredPast> {
    mkdirSync(this.#options.dataPath, { recursive: true });
    const tail = new Tail(tailFolder(this.#options.dataPath, this.#options.environment));
    this.#tail = tail;
    let answer: OpenAnswer;
    try {
      answer = await this.#open();
    } catch (error) {
      this.#stopping = true;
      if (this.#retryTimer) clearTimeout(this.#retryTimer);
      tail.end();
      tail.remove(tail.segment); // It may lie among those of the run that has the folder.
      throw error;
    }
    if (answer.recovered > 0) {
      this.#options.log('notice', 'recovered what an earlier run had not written', { samples: answer.recovered });
    }
    const { heard, nodes, openAlerts, readableMetrics } = answer;
    return { openAlerts, readableMetrics: new Set(readableMetrics), nodes, heard };
  }

  /** Writes what is left and closes the database; on a failure the tail keeps it for the next start. */
  async stop(): Promise<void> {
    this.#stopping = true;
    if (this.#retryTimer) clearTimeout(this.#retryTimer);
    await this.#committing;
    const client = this.#client;
    if (client) {
      this.#endSegment();
      await this.#commit();
    }
    this.#tail?.end();
    if (!client) return;
    await client.request('close', null).catch(() => null); // The thread is gone: so is what it would have closed.
    await client.end();
    this.#client = null;
  }

  /** Records one status, before it is published. `line` is the status as JSON. */
  recordHealth(status: HealthStatus, line: string, timestampMs: number): void {
    if (!isStorableTime(timestampMs)) {
      this.#refuse(status);
      return;
    }
    if (!this.#tail) {
      this.#early.push(() => this.recordHealth(status, line, timestampMs));
      return;
    }
    const mark = this.#writeTail(line);
    this.#healthMark = mark;
    let batch = this.#batches.get(status.node_name);
    if (!batch) {
      batch = new Batch();
      this.#batches.set(status.node_name, batch);
    }
    batch.add(status, timestampMs, mark.order);
    this.#segmentSamples += 1;
    if (batch.count >= MAX_BATCH) this.#sendBatches();
    const age = this.#options.monotonicSeconds() - this.#segmentStartSeconds;
    if (age >= SEGMENT_SECONDS || this.#tail.bytes >= SEGMENT_BYTES) this.#rotate();
  }

  /**
   * Records a change of an episode, before it is published: resolves once it is durable, or after a short while if the disk does
   * not keep up; with false if it was known before. Calls resolve in the order in which they were made.
   */
  async recordAlert(alert: Alert): Promise<boolean> {
    if (!this.#tail) {
      this.#early.push(() => void this.recordAlert(alert));
      return true;
    }
    const mark = this.#writeTail(JSON.stringify(alert));
    const isNews = await this.#durable(this.#ask('alert', { alert, mark }));
    this.#alertMark = mark;
    return isNews ?? true;
  }

  /** Notes how often another node publishes from a time on, by its own clock. */
  recordRate(node: string, hertz: number, sinceMs: number): void {
    if (!this.#client) {
      this.#early.push(() => this.recordRate(node, hertz, sinceMs));
      return;
    }
    this.#ask('rate', { node, hertz, sinceMs }).catch((error: Error) => this.#degrade(error.message));
  }

  /** As recordAlert, for a request of a safe shutdown and what became of it. */
  async recordShutdown(record: ShutdownRecord): Promise<void> {
    if (!this.#tail) {
      this.#early.push(() => void this.recordShutdown(record));
      return;
    }
    this.#writeTail(JSON.stringify(record));
    await this.#durable(this.#ask('shutdown', record));
  }

  /** Writes everything recorded up to now into the database. Resolves with why that has to wait; null: it is written. */
  async flush(): Promise<string | null> {
    await this.#committing; // It may have begun before the last sample.
    if (!this.#client) return this.#error ?? 'the store is not open';
    this.#endSegment();
    this.#beginSegment();
    await this.#commit();
    return this.#error;
  }

  recordClockEvent(event: ClockEvent): void {
    if (!this.#client) {
      this.#early.push(() => this.recordClockEvent(event));
      return;
    }
    this.#ask('clockEvent', event).catch((error: Error) => this.#degrade(error.message));
  }

  history(query: HistoryQuery): Promise<HistoryPage> {
    this.#sendBatches();
    return this.#ask('history', query);
  }

  aggregate(query: AggregateQuery): Promise<Aggregate[]> {
    this.#sendBatches();
    return this.#ask('aggregate', query);
  }

  alerts(query: AlertQuery): Promise<AlertPage> {
    return this.#ask('alerts', query);
  }

  recorded(query: RecordedQuery): Promise<RecordedPage> {
    this.#sendBatches();
    return this.#ask('recorded', query);
  }

  position(): Position | null {
    return this.#healthMark && this.#alertMark && { health: this.#healthMark, alert: this.#alertMark };
  }

  clockEvents(limit: number): Promise<ClockEvent[]> {
    return this.#ask('clockEvents', { limit });
  }

  shutdowns(query: ShutdownQuery): Promise<ShutdownRecord[]> {
    return this.#ask('shutdowns', query);
  }

  state(): StorageState {
    const waiting = this.#waiting.reduce((sum, { samples }) => sum + samples, 0);
    return {
      path: this.#databasePath,
      state: this.#state,
      error: this.#error,
      since: this.#since,
      size_bytes: this.#written.sizeBytes,
      max_bytes: this.#options.maxBytes,
      oldest_sample: this.#written.oldestSampleMs === null ? null : isoUtc(this.#written.oldestSampleMs),
      samples_pending: waiting + this.#segmentSamples,
      samples_lost: this.#lost,
      last_write: this.#lastWrite,
      set_aside: this.#setAside,
    };
  }

  async #open(): Promise<OpenAnswer> {
    const tail = this.#tail as Tail;
    // What is recorded from here on goes into a segment of its own; everything before it is a leftover.
    this.#batches.clear();
    this.#segmentSamples = 0;
    this.#beginSegment();
    const nothingYet = { segment: tail.segment, order: 0 };
    this.#healthMark ??= nothingYet;
    this.#alertMark ??= nothingYet;
    const leftovers = tail.leftovers();
    this.#waiting = leftovers.map(toWaiting);
    const client = new WorkerClient(
      this.#options.worker,
      (path, reason) => this.#onSetAside(path, reason),
      (reason) => this.#onDeath(client, reason),
    );
    this.#client = client;
    const { maxBytes, node, hertz } = this.#options;
    const opening = client.request('open', { path: this.#databasePath, maxBytes, node, hertz, leftovers });
    const early = this.#early;
    this.#early = [];
    for (const record of early) record();
    try {
      const answer = await opening;
      if (this.#client !== client) throw new Error('the store thread ended');
      if (answer.problem === null) this.#onWritten(answer, leftovers.at(-1)?.segment ?? 0);
      else this.#degrade(answer.problem);
      this.#written = answer;
      if (answer.lastSegment >= tail.segment) {
        // The clock was set back since the last run: what comes now comes after that all the same.
        this.#endSegment();
        this.#beginSegment(answer.lastSegment + 1);
      }
      return answer;
    } catch (error) {
      if (this.#client === client) this.#client = null;
      await client.end();
      throw error;
    }
  }

  #ask<O extends Parameters<WorkerClient['request']>[0]>(
    ...[operation, body, transfer]: Parameters<typeof WorkerClient.prototype.request<O>>
  ): ReturnType<typeof WorkerClient.prototype.request<O>> {
    if (!this.#client) return Promise.reject(new Error('the store is not open'));
    return this.#client.request(operation, body, transfer);
  }

  /** Waits for a write, but not for long; null: it failed, which degrades the store, or takes longer. */
  async #durable<T>(writing: Promise<T>): Promise<T | null> {
    const saved = writing.catch((error: Error) => {
      this.#degrade(error.message);
      return null;
    });
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), DURABLE_DEADLINE_MS);
    });
    const answer = await Promise.race([saved, deadline]);
    clearTimeout(timer);
    return answer;
  }

  /** Writes a line; its place among all that is recorded. */
  #writeTail(line: string): Mark {
    this.#order += 1;
    try {
      this.#tail?.write(line);
      this.#tailFailed = false;
    } catch (error) {
      // Samples still reach the database with their batch; only a kill before that would lose them now.
      if (!this.#tailFailed)
        this.#options.log('error', 'cannot write the tail', { folder: this.#tail?.folder, error: (error as Error).message });
      this.#tailFailed = true;
    }
    return { segment: this.#tail?.segment ?? 0, order: this.#order };
  }

  #sendBatches(): void {
    if (!this.#client) {
      this.#batches.clear(); // The next thread takes them from the tail.
      return;
    }
    const segment = this.#tail?.segment ?? 0;
    for (const [node, batch] of this.#batches) {
      if (batch.count === 0) continue;
      const { columns, buffers } = batch.take();
      this.#ask('append', { segment, node, columns }, buffers).catch((error: Error) => this.#degrade(error.message));
    }
  }

  #beginSegment(atLeast = 0): void {
    this.#segmentStartSeconds = this.#options.monotonicSeconds();
    this.#order = 0;
    try {
      this.#tail?.begin(Math.max(Date.now(), atLeast));
    } catch (error) {
      this.#options.log('error', 'cannot begin a tail segment', { folder: this.#tail?.folder, error: (error as Error).message });
    }
  }

  #endSegment(): void {
    this.#sendBatches();
    const tail = this.#tail as Tail;
    this.#waiting.push({ segment: tail.segment, bytes: tail.bytes, samples: this.#segmentSamples });
    this.#segmentSamples = 0;
  }

  #rotate(): void {
    this.#endSegment();
    this.#beginSegment();
    this.#giveUpOldest();
    // While writing fails the retry timer decides when to try again.
    if (this.#state === 'ok') void this.#commit();
  }

  #commit(): Promise<void> {
    this.#committing ??= this.#commitWaiting().finally(() => {
      this.#committing = null;
    });
    return this.#committing;
  }

  async #commitWaiting(): Promise<void> {
    const last = this.#waiting.at(-1)?.segment;
    if (last === undefined) return;
    const client = this.#client;
    try {
      const written = await this.#ask('commit', { segment: last });
      if (this.#client !== client) return; // It died with these words; the next one sees for itself what is written.
      this.#onWritten(written, last);
      if (written.openAlerts) this.#options.onLateOpen(written.openAlerts, written.heard ?? []);
    } catch (error) {
      this.#degrade((error as Error).message);
    }
  }

  #onWritten(written: Written, upToSegment: number): void {
    this.#written = written;
    this.#lastWrite = isoUtc(Date.now());
    for (const { segment } of this.#waiting) if (segment <= upToSegment) this.#tail?.remove(segment);
    this.#waiting = this.#waiting.filter(({ segment }) => segment > upToSegment);
    if (this.#state === 'degraded') {
      this.#options.log('notice', 'storage works again', { since: this.#since, samples_lost: this.#lost });
    }
    this.#state = 'ok';
    this.#error = null;
    this.#since = null;
  }

  #degrade(error: string): void {
    if (this.#state !== 'degraded') {
      this.#since = isoUtc(Date.now());
      this.#options.log('error', 'cannot write the database; samples wait in memory, and it is tried again', { error });
    }
    this.#state = 'degraded';
    this.#error = error;
    if (this.#stopping || this.#retryTimer) return;
    this.#retryTimer = setTimeout(
      () => {
        this.#retryTimer = null;
        void this.#retry();
      },
      (this.#options.retrySeconds ?? RETRY_SECONDS) * 1000,
    );
  }

  async #retry(): Promise<void> {
    if (!this.#client) {
      await this.#open().catch((error: Error) => this.#degrade(error.message));
      return;
    }
    if (this.#waiting.length === 0) {
      this.#endSegment();
      this.#beginSegment();
    }
    await this.#commit();
  }

  /** Beyond what may wait, the oldest samples are given up; alerts and requests of a shutdown never are. */
  #giveUpOldest(): void {
    const { maxWaitingBytes = MAX_WAITING_BYTES } = this.#options;
    let bytes = this.#waiting.reduce((sum, segment) => sum + segment.bytes, 0);
    for (const [i, { segment, samples, bytes: before }] of this.#waiting.entries()) {
      if (bytes <= maxWaitingBytes || i === this.#waiting.length - 1) break;
      if (samples === 0) continue;
      const kept = this.#keepRare(segment);
      this.#waiting[i] = { segment, samples: 0, bytes: kept };
      bytes -= before - kept;
      this.#lost += samples;
      if (this.#client) this.#ask('forget', { segment }).catch((error: Error) => this.#degrade(error.message));
    }
    this.#waiting = this.#waiting.filter(({ samples, bytes: kept }) => samples > 0 || kept > 0);
  }

  #keepRare(segment: number): number {
    try {
      return this.#tail?.keepRare(segment) ?? 0;
    } catch (error) {
      this.#options.log('error', 'cannot shorten the tail', { folder: this.#tail?.folder, error: (error as Error).message });
      return 0;
    }
  }

  #refuse(status: HealthStatus): void {
    if (!this.#refused) this.#options.log('warning', 'a status with an impossible time is not stored', { node: status.node_name });
    this.#refused = true;
  }

  #onSetAside(path: string, reason: string): void {
    this.#setAside.push(path);
    this.#options.log('error', 'the database could not be used; it was set aside and a new one begun', { set_aside: path, reason });
  }

  /** The thread died: what it had not written is in the tail, from where the next one takes it. */
  #onDeath(client: WorkerClient, reason: string): void {
    if (this.#client === client) this.#client = null;
    this.#degrade(reason);
  }
}

function toWaiting({ segment, bytes, samples }: Leftover): WaitingSegment {
  return { segment, bytes, samples: samples.reduce((sum, { columns }) => sum + columns.count, 0) };
}
