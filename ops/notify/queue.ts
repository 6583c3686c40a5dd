import * as v from 'valibot';
import type { Log } from '../../src/core/ports.ts';
import { DAY_MS, HOUR_MS } from '../../src/core/time/time.ts';
import type { Channel, ChannelName, Result } from './channels/channel.ts';
import type { Message } from './message.ts';

/** The pending notifications of one channel and the outcome of its deliveries: plain data, saved across restarts. */

export const queueSchema = v.object({
  waiting: v.array(
    v.object({
      id: v.string(),
      createdMs: v.number(),
      bytes: v.number(),
      attempts: v.number(),
      /** Earliest time of the next attempt. */
      nextMs: v.number(),
    }),
  ),
  delivered: v.number(),
  /** Dropped since the last delivery; the next notification reports them. */
  dropped: v.number(),
  droppedInAll: v.number(),
  /** Consecutive failed attempts. */
  failures: v.number(),
  lastSuccessMs: v.nullable(v.number()),
  /** The last attempt; `detail` is the receiver's response, or the failure and its remedy. */
  last: v.nullable(v.object({ id: v.string(), ms: v.number(), ok: v.boolean(), detail: v.string() })),
});

export type Queue = Readonly<v.InferOutput<typeof queueSchema>>;
type Waiting = Readonly<Queue['waiting'][number]>;

export interface Settled {
  readonly queue: Queue;
  /** Notifications that are not retried. */
  readonly dropped: readonly { readonly id: string; readonly reason: string }[];
}

export const EMPTY_QUEUE: Queue = {
  waiting: [],
  delivered: 0,
  dropped: 0,
  droppedInAll: 0,
  failures: 0,
  lastSuccessMs: null,
  last: null,
};

export const MAX_WAITING = 50;
export const MAX_WAITING_BYTES = 512 * 1024;
/** Attempts continue for this long. */
export const MAX_AGE_MS = DAY_MS;
const FIRST_BACKOFF_MS = 5000;
export const MAX_BACKOFF_MS = HOUR_MS;

/** 5, 10, 20 seconds and so on up to an hour, each multiplied by 0.75 to 1.25; `random` is in [0, 1). */
export function backoffMs(attempts: number, random: number): number {
  const wait = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(attempts - 1, 20));
  return Math.round(wait * (0.75 + random / 2));
}

/** Adds one notification to the queue; beyond the limits, the oldest are dropped. */
export function added(queue: Queue, id: string, bytes: number, nowMs: number): Settled {
  if (queue.waiting.some((waiting) => waiting.id === id)) return { queue, dropped: [] };
  const waiting: Waiting[] = [...queue.waiting, { id, createdMs: nowMs, bytes, attempts: 0, nextMs: 0 }];
  const dropped: Waiting[] = [];
  const isTooMuch = (): boolean => waiting.length > MAX_WAITING || waiting.reduce((sum, entry) => sum + entry.bytes, 0) > MAX_WAITING_BYTES;
  while (waiting.length > 1 && isTooMuch()) dropped.push(...waiting.splice(0, 1));
  return withDropped({ ...queue, waiting }, dropped, `more than ${MAX_WAITING} notifications or ${MAX_WAITING_BYTES / 1024} kB wait`);
}

/**
 * The notification to try now, or else the time of the next attempt; null if none is pending. Notifications with fewer failures go first,
 * so that one that always fails does not block the others.
 */
export function picked({ waiting }: Queue, nowMs: number): { readonly entry: Waiting } | { readonly atMs: number } | null {
  if (waiting.length === 0) return null;
  const due = waiting.filter(({ nextMs }) => nextMs <= nowMs || nextMs > nowMs + 2 * MAX_BACKOFF_MS); // Or the clock went back.
  if (due.length === 0) return { atMs: Math.min(...waiting.map(({ nextMs }) => nextMs)) };
  return { entry: due.reduce((a, b) => (b.attempts < a.attempts ? b : a)) };
}

/** The queue after an attempt. While a receiver is down, one backoff applies to all its notifications. */
export function settled(queue: Queue, id: string, result: Result, nowMs: number, random: number): Settled {
  const entry = queue.waiting.find((waiting) => waiting.id === id);
  if (!entry) return { queue, dropped: [] };
  const last = { id, ms: nowMs, ok: result.kind === 'delivered', detail: result.detail };
  const others = queue.waiting.filter((waiting) => waiting !== entry);
  if (result.kind === 'delivered') {
    const waiting = others.map((other) => ({ ...other, nextMs: other.attempts === 0 ? 0 : other.nextMs }));
    const delivered = queue.delivered + 1;
    return { queue: { ...queue, waiting, delivered, dropped: 0, failures: 0, lastSuccessMs: nowMs, last }, dropped: [] };
  }
  const failures = queue.failures + 1;
  if (result.kind === 'final') {
    return withDropped({ ...queue, waiting: others, failures, last }, [entry], result.detail);
  }
  const attempts = entry.attempts + 1;
  const own = { ...entry, attempts, nextMs: nowMs + (result.afterMs ?? backoffMs(attempts, random)) };
  const pauseMs = nowMs + (result.afterMs ?? backoffMs(Math.min(failures, 6), random));
  const all = queue.waiting.map((other) => (other === entry ? own : { ...other, nextMs: Math.max(other.nextMs, pauseMs) }));
  const isTooOld = ({ createdMs }: Waiting): boolean => nowMs - createdMs >= MAX_AGE_MS;
  const waiting = all.filter((other) => !isTooOld(other));
  return withDropped({ ...queue, waiting, failures, last }, all.filter(isTooOld), `not delivered within a day; last: ${result.detail}`);
}

function withDropped(queue: Queue, waiting: readonly Waiting[], reason: string): Settled {
  const { length } = waiting;
  return {
    queue: { ...queue, dropped: queue.dropped + length, droppedInAll: queue.droppedInAll + length },
    dropped: waiting.map(({ id }) => ({ id, reason })),
  };
}

/** The part of the saved state that a worker uses. */
interface SavedQueues {
  readonly state: {
    readonly queues: Readonly<Record<ChannelName, Queue>>;
    readonly messages: Readonly<Record<string, Message>>;
  };
  save(change: { readonly queues: Partial<Record<ChannelName, Queue>> }): Promise<void>;
}

interface WorkerOptions {
  readonly channel: Channel;
  readonly file: SavedQueues;
  /** Notifications that are not yet on disk. If sent before, they could be sent again with another id. */
  readonly unsaved: ReadonlySet<string>;
  readonly log: Log;
  readonly nowMs: () => number;
}

/** At shutdown, a delivery in progress may take this long. */
const LAST_MS = 3000;
/** Bounds a sleep, because timers do not advance while a machine is suspended. */
export const MAX_SLEEP_MS = 60_000;

/** Delivers the notifications of one queue, one at a time and independently of other channels. */
export class QueueWorker {
  readonly channel: Channel;
  readonly #options: WorkerOptions;
  readonly #ending = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | null = null;
  #isStopped = false;

  constructor(options: WorkerOptions) {
    this.channel = options.channel;
    this.#options = options;
  }

  /** Returns the queue with one more notification. */
  queueWith(id: string, bytes: number): Queue {
    return this.#withDropsLogged(added(this.#queue, id, bytes, this.#options.nowMs()));
  }

  /** Sends the next notification if one is due. */
  wake(): void {
    clearTimeout(this.#timer);
    if (this.#isStopped || this.#sending) return;
    const { nowMs, unsaved } = this.#options;
    const waiting = this.#queue.waiting.filter(({ id }) => !unsaved.has(id));
    const next = picked({ ...this.#queue, waiting }, nowMs());
    if (!next) return;
    if ('atMs' in next) {
      this.#timer = setTimeout(() => this.wake(), Math.min(MAX_SLEEP_MS, Math.max(0, next.atMs - nowMs())));
      return;
    }
    this.#sending = this.#send(next.entry.id).finally(() => {
      this.#sending = null;
      setImmediate(() => this.wake());
    });
  }

  /** An interrupted delivery is sent again after the next start, with the same id. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    const cut = setTimeout(() => this.#ending.abort(new Error('ended with the scheduler')), LAST_MS);
    await this.#sending;
    clearTimeout(cut);
  }

  get #queue(): Queue {
    return this.#options.file.state.queues[this.channel.name];
  }

  async #send(id: string): Promise<void> {
    const { file, log, nowMs } = this.#options;
    const { name, target } = this.channel;
    const { dropped, failures } = this.#queue;
    const result = await this.#attempt(id, dropped);
    if (this.#ending.signal.aborted && result.kind !== 'delivered') return; // An interruption is not a failure of the receiver.
    const after = this.#withDropsLogged(settled(this.#queue, id, result, nowMs(), Math.random()));
    void file.save({ queues: { [name]: after } });
    const fields = { channel: name, target, id };
    if (result.kind === 'delivered') log(failures > 0 ? 'notice' : 'info', 'notification delivered', fields);
    else if (failures === 0) log('warning', `notification not delivered: ${result.detail}`, fields);
    else log('debug', `notification still not delivered: ${result.detail}`, { ...fields, failures: failures + 1 });
  }

  async #attempt(id: string, dropped: number): Promise<Result> {
    const message = this.#options.file.state.messages[id];
    if (!message) return { kind: 'final', detail: 'its message is missing' };
    if (dropped === 0) return this.channel.send(message, this.#ending.signal);
    const note = `${dropped} earlier notification${dropped === 1 ? '' : 's'} could not be delivered: see edge-health ops notify.`;
    return this.channel.send({ ...message, notes: [...message.notes, note] }, this.#ending.signal);
  }

  #withDropsLogged({ dropped, queue }: Settled): Queue {
    for (const { id, reason } of dropped) this.#options.log('error', `notification dropped: ${reason}`, { channel: this.channel.name, id });
    return queue;
  }
}
