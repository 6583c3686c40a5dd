import { Worker } from 'node:worker_threads';
import type { Answer, Operation, Operations, Reply, Request } from './protocol.ts';

/** An error thrown in the worker, with its original name. */
class StoreError extends Error {
  constructor(message: string, name: string) {
    super(message);
    this.name = name;
  }
}

/**
 * A thread with a pending response that sends nothing for this long is blocked in the kernel because its disk does not respond. No
 * operation of its own takes that long.
 */
const HANG_SECONDS = 4;
/** A hang is confirmed by a second check: this process may have been stopped itself, with the response waiting in the queue. */
const CONFIRM_HANG_MS = 250;
/** Operations whose caller waits for the result and that fail on a hang. Writes wait for the disk without a limit. */
const READS: ReadonlySet<Operation> = new Set<Operation>([
  'history',
  'aggregate',
  'alerts',
  'recorded',
  'clockEvents',
  'shutdowns',
  'snapshot',
]);

export interface WorkerListener {
  onQuarantined(path: string, reason: string): void;
  onExit(reason: string): void;
  /** Called when the thread hangs and when it responds again. */
  onHang(hangs: boolean): void;
}

interface Waiting {
  readonly operation: Operation;
  readonly resolve: (body: never) => void;
  readonly reject: (error: Error) => void;
}

/** Sends requests to the store's thread and matches the responses. One client owns one thread; when it ends, pending requests fail. */
export class WorkerClient {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 1;
  readonly #listener: WorkerListener;
  readonly #timers: Timers;
  #ended = false;
  /** Time of the last response, or of the first request while none was pending; monotonic seconds. */
  #sinceSeconds = 0;
  #isSuspect = false;
  #hangs = false;
  #timer: Timer | null = null;

  constructor(program: URL, listener: WorkerListener, timers: Timers = REAL_TIMERS) {
    this.#listener = listener;
    this.#timers = timers;
    // The thread holds little long-lived data, and garbage of a larger young generation would stay resident.
    const { STATE_DIRECTORY } = process.env; // Shows that the sandbox of a unit applies.
    const env = STATE_DIRECTORY === undefined ? {} : { STATE_DIRECTORY };
    this.#worker = new Worker(program, { resourceLimits: { maxYoungGenerationSizeMb: 4 }, env });
    this.#worker.on('message', (reply: Reply) => {
      if ('progress' in reply) return this.#onAnswer();
      if ('quarantined' in reply) return listener.onQuarantined(reply.quarantined.path, reply.quarantined.reason);
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      this.#onAnswer();
      if (reply.ok) waiting?.resolve(reply.body as never);
      else waiting?.reject(new StoreError(reply.error, reply.name));
    });
    let reason = 'the store thread ended';
    this.#worker.on('error', (error) => {
      reason = (error as Error).message;
    });
    this.#worker.on('exit', () => {
      const expected = this.#ended;
      this.#ended = true;
      for (const { reject } of this.#waiting.values()) reject(new StoreError(reason, 'StoreThreadEnded'));
      this.#waiting.clear();
      this.#onAnswer();
      if (!expected) listener.onExit(reason);
    });
  }

  request<O extends Operation>(operation: O, body: Operations[O]['request'], transfer: readonly ArrayBuffer[] = []): Promise<Answer<O>> {
    if (this.#ended) return Promise.reject(new StoreError('the store thread is not running', 'StoreThreadEnded'));
    if (this.#hangs && READS.has(operation)) return Promise.reject(this.#hangError());
    const id = this.#nextId++;
    const request: Request<O> = { id, operation, body };
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) this.#sinceSeconds = this.#timers.nowSeconds();
      this.#waiting.set(id, { operation, resolve, reject });
      if (!this.#timer) this.#scheduleHangCheck(HANG_SECONDS * 1000);
      this.#worker.postMessage(request, transfer);
    });
  }

  /** Seconds since the thread's last response was due; null: it does not hang. */
  get hangSeconds(): number | null {
    return this.#hangs ? this.#timers.nowSeconds() - this.#sinceSeconds : null;
  }

  async end(): Promise<void> {
    this.#ended = true;
    if (this.#timer) this.#timers.clearTimeout(this.#timer);
    await this.#worker.terminate();
  }

  #onAnswer(): void {
    this.#sinceSeconds = this.#timers.nowSeconds();
    this.#isSuspect = false;
    if (!this.#hangs) return;
    this.#hangs = false;
    this.#listener.onHang(false);
  }

  #scheduleHangCheck(milliseconds: number): void {
    this.#timer = this.#timers.setTimeout(() => this.#checkForHang(), milliseconds);
    this.#timer.unref();
  }

  #checkForHang(): void {
    this.#timer = null;
    if (this.#waiting.size === 0 || this.#hangs) return;
    const leftMs = (this.#sinceSeconds + HANG_SECONDS - this.#timers.nowSeconds()) * 1000;
    if (leftMs > 0) {
      this.#scheduleHangCheck(leftMs);
      return;
    }
    if (!this.#isSuspect) {
      this.#isSuspect = true;
      this.#scheduleHangCheck(CONFIRM_HANG_MS);
      return;
    }
    this.#hangs = true;
    this.#listener.onHang(true);
    for (const [id, { operation, reject }] of this.#waiting) {
      if (!READS.has(operation)) continue;
      this.#waiting.delete(id);
      reject(this.#hangError());
    }
  }

  #hangError(): StoreError {
    return new StoreError(hangText(this.hangSeconds ?? HANG_SECONDS), 'StoreHangs');
  }
}

export function hangText(seconds: number): string {
  return `no response from the disk for ${Math.round(seconds)} s`;
}

/** Timers of the store for disk timeouts and retries; tests inject their own. */
export interface Timers {
  /** Seconds of a monotonic clock. */
  nowSeconds(): number;
  setTimeout(action: () => void, milliseconds: number): Timer;
  clearTimeout(timer: Timer): void;
}

export interface Timer {
  /** An unreferenced timer does not keep the process running. */
  unref(): unknown;
}

export const REAL_TIMERS: Timers = {
  nowSeconds: () => performance.now() / 1000,
  setTimeout: (action, milliseconds) => setTimeout(action, milliseconds),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};
