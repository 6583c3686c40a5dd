import * as v from 'valibot';
import { DAY_MS, HOUR_MS } from '../../src/core/time.ts';

/** The pending notifications of one channel and the outcome of its deliveries: plain data, saved across restarts. */

export const CHANNELS = ['webhook', 'command', 'email'] as const;
export type ChannelName = (typeof CHANNELS)[number];

const waitingSchema = v.object({
  id: v.string(),
  createdMs: v.number(),
  bytes: v.number(),
  attempts: v.number(),
  /** The next attempt is not before. */
  nextMs: v.number(),
});

const attemptSchema = v.object({
  id: v.string(),
  ms: v.number(),
  ok: v.boolean(),
  /** The receiver's answer, or what failed and what to do. */
  detail: v.string(),
});

export const queueSchema = v.object({
  waiting: v.array(waitingSchema),
  delivered: v.number(),
  /** Since the last delivery: the next notification reports them. */
  dropped: v.number(),
  droppedInAll: v.number(),
  /** Attempts that failed since one succeeded. */
  failures: v.number(),
  lastSuccessMs: v.nullable(v.number()),
  last: v.nullable(attemptSchema),
});

type Waiting = Readonly<v.InferOutput<typeof waitingSchema>>;
export type Queue = Readonly<v.InferOutput<typeof queueSchema>>;

/** The outcome of an attempt; `afterMs` is the wait that the receiver asked for. */
export type Result =
  | { readonly kind: 'delivered'; readonly detail: string }
  | { readonly kind: 'retry'; readonly detail: string; readonly afterMs?: number }
  | { readonly kind: 'final'; readonly detail: string };

export interface Settled {
  readonly queue: Queue;
  /** Notifications that are not tried again. */
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
/** A notification is tried for this long. */
export const MAX_AGE_MS = DAY_MS;
const FIRST_BACKOFF_MS = 5000;
export const MAX_BACKOFF_MS = HOUR_MS;

/** 5, 10, 20 seconds … up to an hour, each between three quarters and five quarters of it; `random` is from 0 to below 1. */
export function backoffMs(attempts: number, random: number): number {
  const wait = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(attempts - 1, 20));
  return Math.round(wait * (0.75 + random / 2));
}

/** The queue with one more notification; beyond the limits the oldest are dropped. */
export function added(queue: Queue, id: string, bytes: number, nowMs: number): Settled {
  if (queue.waiting.some((waiting) => waiting.id === id)) return { queue, dropped: [] };
  let waiting: Waiting[] = [...queue.waiting, { id, createdMs: nowMs, bytes, attempts: 0, nextMs: 0 }];
  const gone: string[] = [];
  const isTooMuch = (): boolean => waiting.length > MAX_WAITING || waiting.reduce((sum, entry) => sum + entry.bytes, 0) > MAX_WAITING_BYTES;
  while (waiting.length > 1 && isTooMuch()) {
    gone.push((waiting[0] as Waiting).id);
    waiting = waiting.slice(1);
  }
  const reason = `more than ${MAX_WAITING} notifications or ${MAX_WAITING_BYTES / 1024} kB wait`;
  return { queue: withDropped({ ...queue, waiting }, gone.length), dropped: gone.map((entry) => ({ id: entry, reason })) };
}

/** The notification to try now, else the time of the next attempt; null: none is pending. Those that failed less often go first, so that one that always fails blocks no other. */
export function picked({ waiting }: Queue, nowMs: number): { readonly entry: Waiting } | { readonly atMs: number } | null {
  if (waiting.length === 0) return null;
  const due = waiting.filter(({ nextMs }) => nextMs <= nowMs || nextMs > nowMs + 2 * MAX_BACKOFF_MS); // Or the clock was set back.
  if (due.length === 0) return { atMs: Math.min(...waiting.map(({ nextMs }) => nextMs)) };
  return { entry: due.reduce((a, b) => (b.attempts < a.attempts ? b : a)) };
}

/** The queue after an attempt. While a receiver is down, one backoff holds all its notifications. */
export function settled(queue: Queue, id: string, result: Result, nowMs: number, random: number): Settled {
  const entry = queue.waiting.find((waiting) => waiting.id === id);
  if (!entry) return { queue, dropped: [] };
  const last = { id, ms: nowMs, ok: result.kind === 'delivered', detail: result.detail };
  const others = queue.waiting.filter((waiting) => waiting !== entry);
  if (result.kind === 'delivered') {
    const waiting = others.map((other) => ({ ...other, nextMs: other.attempts === 0 ? 0 : other.nextMs }));
    return {
      queue: { ...queue, waiting, delivered: queue.delivered + 1, dropped: 0, failures: 0, lastSuccessMs: nowMs, last },
      dropped: [],
    };
  }
  if (result.kind === 'final') {
    return {
      queue: withDropped({ ...queue, waiting: others, last, failures: queue.failures + 1 }, 1),
      dropped: [{ id, reason: result.detail }],
    };
  }
  const failures = queue.failures + 1;
  const own = { ...entry, attempts: entry.attempts + 1, nextMs: nowMs + (result.afterMs ?? backoffMs(entry.attempts + 1, random)) };
  const pauseMs = nowMs + (result.afterMs ?? backoffMs(Math.min(failures, 6), random));
  const waiting = queue.waiting.map((other) => (other === entry ? own : { ...other, nextMs: Math.max(other.nextMs, pauseMs) }));
  const tooOld = waiting.filter(({ createdMs }) => nowMs - createdMs >= MAX_AGE_MS);
  return {
    queue: withDropped({ ...queue, waiting: waiting.filter((other) => !tooOld.includes(other)), failures, last }, tooOld.length),
    dropped: tooOld.map((old) => ({ id: old.id, reason: `not delivered within a day; last: ${result.detail}` })),
  };
}

function withDropped(queue: Queue, count: number): Queue {
  return { ...queue, dropped: queue.dropped + count, droppedInAll: queue.droppedInAll + count };
}
