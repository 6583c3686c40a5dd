import type { Alert } from '../core/alert.ts';
import type { HeardNode } from '../core/node-watch.ts';
import type { Log, StorageState } from '../core/ports.ts';
import { isoUtc } from '../core/time.ts';
import { Backlog, type WaitingSegment } from './backlog.ts';
import { Condition } from './condition.ts';
import type { Leftover, OpenAnswer, Operation, Operations, Written } from './protocol.ts';
import type { SegmentRecorder } from './segment-recorder.ts';
import { REAL_TIMERS, type Timer, type Timers } from './timers.ts';
import { hangText, WorkerClient, type WorkerListener } from './worker-client.ts';

/** While writing fails, it is tried again this often. */
const RETRY_SECONDS = 10;
/** What may wait in memory while the database cannot be written: two days at 1 Hz. Beyond it the oldest is given up. */
const MAX_WAITING_BYTES = 24 * 1024 * 1024;
/** An alert, or a request of a shutdown, waits this long for the disk before it goes its way all the same; it is in the tail by then. */
const DURABLE_DEADLINE_MS = 500;

export interface StoreThreadOptions {
  readonly databasePath: string;
  readonly maxBytes: number;
  readonly node: string;
  readonly hertz: number;
  /** The worker's program. */
  readonly worker: URL;
  readonly log: Log;
  /** Told when a database that could not be opened at the start was opened later, with its open episodes. */
  readonly onLateOpen: (openAlerts: readonly Alert[], heard: readonly HeardNode[]) => void;
  readonly retrySeconds?: number;
  readonly maxWaitingBytes?: number;
  readonly timers?: Timers;
}

/**
 * Brings what is recorded into the database by the store's thread: segment by segment, again and again while the disk refuses,
 * and by another thread when one dies. What is not written stays in the tail.
 */
export class StoreThread {
  readonly #options: StoreThreadOptions;
  readonly #recorder: SegmentRecorder;
  /** Called at every opening, as soon as the thread takes requests. */
  readonly #onOpening: () => void;
  readonly #backlog: Backlog;
  readonly #condition: Condition;
  readonly #timers: Timers;
  #client: WorkerClient | null = null;
  #retryTimer: Timer | null = null;
  #committing: Promise<void> | null = null;
  #stopping = false;

  constructor(options: StoreThreadOptions, recorder: SegmentRecorder, onOpening: () => void) {
    this.#options = options;
    this.#recorder = recorder;
    this.#onOpening = onOpening;
    this.#backlog = new Backlog(options.maxWaitingBytes ?? MAX_WAITING_BYTES);
    this.#condition = new Condition(options.log);
    this.#timers = options.timers ?? REAL_TIMERS;
  }

  /** Whether it takes requests. */
  get isThere(): boolean {
    return this.#client !== null;
  }

  /** Starts a thread, which opens the database and takes in what the tail holds. Rejects when the folder is in use. */
  async open(): Promise<OpenAnswer> {
    const leftovers = this.#recorder.startOver();
    const { databasePath: path, hertz, maxBytes, node, worker } = this.#options;
    this.#backlog.replace(leftovers.map(toWaiting));
    const listener: WorkerListener = {
      onSetAside: (setAside, reason) => this.#condition.begunAnew(setAside, reason),
      onDeath: (reason) => this.#onDeath(client, reason),
      onHang: (hangs) => this.#condition.hangs(hangs),
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
      this.#condition.learn(answer);
      this.#goBeyond(answer.lastSegment);
      return answer;
    } catch (error) {
      if (this.#client === client) this.#client = null;
      await client.end();
      throw error;
    }
  }

  /** Nothing is tried again. */
  giveUp(): void {
    this.#stopping = true;
    if (this.#retryTimer) this.#timers.clearTimeout(this.#retryTimer);
  }

  /** Writes what is left and closes the database. */
  async stop(): Promise<void> {
    this.giveUp();
    await this.#committing;
    const client = this.#client;
    if (client) {
      this.#endSegment();
      await this.#commit();
    }
    this.#recorder.close();
    if (!client) return;
    await client.request('close', null).catch(() => null); // The thread is gone: so is what it would have closed.
    await client.end();
    this.#client = null;
  }

  ask<O extends Operation>(
    operation: O,
    body: Operations[O]['request'],
    transfer?: readonly ArrayBuffer[],
  ): Promise<Operations[O]['answer']> {
    if (!this.#client) return Promise.reject(new Error('the store is not open'));
    return this.#client.request(operation, body, transfer);
  }

  /** Asks for a write whose answer nobody needs. */
  tell<O extends Operation>(operation: O, body: Operations[O]['request'], transfer?: readonly ArrayBuffer[]): void {
    this.ask(operation, body, transfer).catch((error: Error) => this.#degrade(error.message));
  }

  /** Waits for a write, but not for long; null: it failed, which degrades the store, or takes longer. */
  async askDurably<O extends Operation>(operation: O, body: Operations[O]['request']): Promise<Operations[O]['answer'] | null> {
    const saved = this.ask(operation, body).catch((error: Error) => {
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
      this.#recorder.dropBatches(); // The next thread takes them from the tail.
      return;
    }
    for (const { buffers, ...batch } of this.#recorder.takeBatches()) {
      this.tell('append', batch, buffers);
    }
  }

  /** Begins the next segment; what was recorded before is written in the background. */
  rotate(): void {
    this.#nextSegment();
    const cut = this.#backlog.giveUpOldest((segment) => this.#recorder.keepRare(segment));
    if (this.#client) for (const segment of cut) this.tell('forget', { segment });
    // While writing fails the retry timer decides when to try again.
    if (this.#condition.isOk) void this.#commit();
  }

  /** Writes everything recorded up to now into the database. Resolves with why that has to wait; null: it is written. */
  async flush(): Promise<string | null> {
    await this.#committing; // It may have begun before the last sample.
    if (!this.#client) return this.#condition.error ?? 'the store is not open';
    this.#nextSegment();
    await this.#commit();
    return this.#condition.error;
  }

  /** Changes of other nodes' alerts that came when no more of them could be written that day, as of the last commit. */
  get alertsNotStored(): number {
    return this.#condition.alertsNotStored;
  }

  state(): StorageState {
    const { error, last_write, oldest_sample, set_aside, since, size_bytes, state } = this.#condition.tell();
    const hangSeconds = this.#client?.hangSeconds ?? null;
    const hanging =
      hangSeconds === null || state !== 'ok' ? null : { error: hangText(hangSeconds), since: isoUtc(Date.now() - hangSeconds * 1000) };
    return {
      path: this.#options.databasePath,
      state: hanging ? 'degraded' : state,
      error: hanging?.error ?? error,
      since: hanging?.since ?? since,
      size_bytes,
      max_bytes: this.#options.maxBytes,
      oldest_sample,
      samples_pending: this.#backlog.samples + this.#recorder.samples,
      samples_lost: this.#backlog.lost,
      last_write,
      set_aside,
    };
  }

  #nextSegment(atLeast?: number): void {
    this.#endSegment();
    this.#recorder.begin(atLeast);
  }

  /** The clock was set back since the last run: what comes now comes after all of that all the same. */
  #goBeyond(lastSegment: number): void {
    if (lastSegment >= this.#recorder.segment) this.#nextSegment(lastSegment + 1);
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
      const written = await this.ask('commit', { segment: last });
      if (this.#client !== client) return; // It died with these words; the next one sees for itself what is written.
      this.#onWritten(written, last);
      if (written.lastSegment !== undefined) this.#goBeyond(written.lastSegment);
      if (written.openAlerts) this.#options.onLateOpen(written.openAlerts, written.heard ?? []);
    } catch (error) {
      this.#degrade((error as Error).message);
    }
  }

  #onWritten(written: Written, upToSegment: number): void {
    this.#backlog.written(upToSegment, (segment) => this.#recorder.remove(segment));
    this.#condition.works(written, this.#backlog.lost);
  }

  #degrade(error: string): void {
    this.#condition.fails(error);
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
      await this.open().catch((error: Error) => this.#degrade(error.message));
      return;
    }
    if (this.#backlog.isEmpty) this.#nextSegment();
    await this.#commit();
  }

  /** What the thread had not written is in the tail, from where the next one takes it. */
  #onDeath(client: WorkerClient, reason: string): void {
    if (this.#client === client) this.#client = null;
    this.#degrade(reason);
  }
}

function toWaiting({ segment, bytes, samples }: Leftover): WaitingSegment {
  return { segment, bytes, samples: samples.reduce((sum, { columns }) => sum + columns.count, 0) };
}
