import * as v from 'valibot';
import type { Log } from '../../src/core/ports.ts';
import { DAY_MS, HOUR_MS } from '../../src/core/time/time.ts';
import type { Channel, ChannelName, Result } from './channels/channel.ts';
import type { Message } from './message.ts';

/** The pending notifications of one channel and the outcome of its deliveries: plain data, saved across restarts. */

export const queueSchema = v.object({
  pending: v.array(
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
  droppedTotal: v.number(),
  /** Consecutive failed attempts. */
  failures: v.number(),
  lastSuccessMs: v.nullable(v.number()),
  /** The last attempt; `detail` is the receiver's response, or the failure and its remedy. */
  last: v.nullable(v.object({ id: v.string(), ms: v.number(), ok: v.boolean(), detail: v.string() })),
});

export type Queue = Readonly<v.InferOutput<typeof queueSchema>>;
type PendingNotification = Readonly<Queue['pending'][number]>;

export interface Settled {
  readonly queue: Queue;
  /** Notifications that are not retried. */
  readonly dropped: readonly { readonly id: string; readonly reason: string }[];
}

export const EMPTY_QUEUE: Queue = {
  pending: [],
  delivered: 0,
  dropped: 0,
  droppedTotal: 0,
  failures: 0,
  lastSuccessMs: null,
  last: null,
};

export const MAX_PENDING = 50;
export const MAX_PENDING_BYTES = 512 * 1024;
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
  if (queue.pending.some((pending) => pending.id === id)) return { queue, dropped: [] };
  const pending: PendingNotification[] = [...queue.pending, { id, createdMs: nowMs, bytes, attempts: 0, nextMs: 0 }];
  const dropped: PendingNotification[] = [];
  const isTooMuch = (): boolean => pending.length > MAX_PENDING || pending.reduce((sum, entry) => sum + entry.bytes, 0) > MAX_PENDING_BYTES;
  while (pending.length > 1 && isTooMuch()) dropped.push(...pending.splice(0, 1));
  return withDropped({ ...queue, pending }, dropped, `more than ${MAX_PENDING} notifications or ${MAX_PENDING_BYTES / 1024} kB pending`);
}

/**
 * The notification to try now, or else the time of the next attempt; null if none is pending. Notifications with fewer failures go first,
 * so that one that always fails does not block the others.
 */
export function picked({ pending }: Queue, nowMs: number): { readonly entry: PendingNotification } | { readonly atMs: number } | null {
  if (pending.length === 0) return null;
  const due = pending.filter(({ nextMs }) => nextMs <= nowMs || nextMs > nowMs + 2 * MAX_BACKOFF_MS); // Or the clock was set back.
  if (due.length === 0) return { atMs: Math.min(...pending.map(({ nextMs }) => nextMs)) };
  return { entry: due.reduce((a, b) => (b.attempts < a.attempts ? b : a)) };
}

/** The queue after an attempt. While a receiver is down, one backoff applies to all its notifications. */
export function settled(queue: Queue, id: string, result: Result, nowMs: number, random: number): Settled {
  const entry = queue.pending.find((pending) => pending.id === id);
  if (!entry) return { queue, dropped: [] };
  const last = { id, ms: nowMs, ok: result.kind === 'delivered', detail: result.detail };
  const others = queue.pending.filter((pending) => pending !== entry);
  if (result.kind === 'delivered') {
    const pending = others.map((other) => ({ ...other, nextMs: other.attempts === 0 ? 0 : other.nextMs }));
    const delivered = queue.delivered + 1;
    return { queue: { ...queue, pending, delivered, dropped: 0, failures: 0, lastSuccessMs: nowMs, last }, dropped: [] };
  }
  const failures = queue.failures + 1;
  if (result.kind === 'final') {
    return withDropped({ ...queue, pending: others, failures, last }, [entry], result.detail);
  }
  const attempts = entry.attempts + 1;
  const own = { ...entry, attempts, nextMs: nowMs + (result.afterMs ?? backoffMs(attempts, random)) };
  const pauseMs = nowMs + (result.afterMs ?? backoffMs(Math.min(failures, 6), random));
  const all = queue.pending.map((other) => (other === entry ? own : { ...other, nextMs: Math.max(other.nextMs, pauseMs) }));
  const isTooOld = ({ createdMs }: PendingNotification): boolean => nowMs - createdMs >= MAX_AGE_MS;
  const pending = all.filter((other) => !isTooOld(other));
  return withDropped({ ...queue, pending, failures, last }, all.filter(isTooOld), `not delivered within a day; last: ${result.detail}`);
}

function withDropped(queue: Queue, pending: readonly PendingNotification[], reason: string): Settled {
  const { length } = pending;
  return {
    queue: { ...queue, dropped: queue.dropped + length, droppedTotal: queue.droppedTotal + length },
    dropped: pending.map(({ id }) => ({ id, reason })),
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
  /** Corrects the times of the queue if the clock has stepped. */
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
    const nowMs = this.#options.nowMs();
    return this.#withDropsLogged(added(this.#queue, id, bytes, nowMs));
  }

  /** Sends the next notification if one is due. */
  wake(): void {
    clearTimeout(this.#timer);
    if (this.#isStopped || this.#sending) return;
    const { unsaved } = this.#options;
    const nowMs = this.#options.nowMs();
    const pending = this.#queue.pending.filter(({ id }) => !unsaved.has(id));
    const next = picked({ ...this.#queue, pending }, nowMs);
    if (!next) return;
    if ('atMs' in next) {
      this.#timer = setTimeout(() => this.wake(), Math.min(MAX_SLEEP_MS, Math.max(0, next.atMs - nowMs)));
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
    const timeout = setTimeout(() => this.#ending.abort(new Error('ended with the scheduler')), LAST_MS);
    await this.#sending;
    clearTimeout(timeout);
  }

  get #queue(): Queue {
    return this.#options.file.state.queues[this.channel.name];
  }

  async #send(id: string): Promise<void> {
    const { file, log } = this.#options;
    const { name, target } = this.channel;
    const { dropped, failures } = this.#queue;
    const result = await this.#attempt(id, dropped);
    if (this.#ending.signal.aborted && result.kind !== 'delivered') return; // An interruption is not a failure of the receiver.
    const nowMs = this.#options.nowMs();
    const after = this.#withDropsLogged(settled(this.#queue, id, result, nowMs, Math.random()));
    void file.save({ queues: { [name]: after } });
    const fields = { channel: name, target, id };
    if (result.kind === 'delivered') log(failures > 0 ? 'notice' : 'info', 'notification delivered', fields);
    else if (failures === 0) log('warning', `notification not delivered: ${result.detail}`, fields);
    else log('debug', `notification still not delivered: ${result.detail}`, { ...fields, failures: failures + 1 });
  }

  async #attempt(id: string, dropped: number): Promise<Result> {
    const message = this.#options.file.state.messages[id];
    if (!message) return { kind: 'final', detail: 'its content is missing' };
    if (dropped === 0) return this.channel.send(message, this.#ending.signal);
    const note = `${dropped} earlier notification${dropped === 1 ? '' : 's'} could not be delivered: see: sudo edge-health ops notify.`;
    return this.channel.send({ ...message, notes: [...message.notes, note] }, this.#ending.signal);
  }

  #withDropsLogged({ dropped, queue }: Settled): Queue {
    for (const { id, reason } of dropped) this.#options.log('error', `notification dropped: ${reason}`, { channel: this.channel.name, id });
    return queue;
  }
}
