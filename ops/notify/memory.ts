import * as v from 'valibot';
import type { Message } from './message.ts';
import { EMPTY_PLAN, type Plan } from './plan.ts';
import { CHANNELS, type ChannelName, EMPTY_QUEUE, type Queue } from './queue.ts';

/** All that is kept over a restart. */
export interface Memory {
  /** Of the last notification. */
  readonly number: number;
  /** Id of the last event of the service that is in `plan`. */
  readonly place: string | null;
  readonly plan: Plan;
  readonly queues: Readonly<Record<ChannelName, Queue>>;
  /** What waits in any queue, by id. */
  readonly messages: Readonly<Record<string, Message>>;
}

/** One line of the journal: what became different, each as a whole. The first line has everything. */
export interface Patch {
  readonly v: 1;
  readonly number?: number;
  readonly place?: string | null;
  readonly plan?: Plan;
  readonly queues?: Partial<Memory['queues']>;
  readonly messages?: Memory['messages'];
}

const NO_QUEUES = { webhook: EMPTY_QUEUE, command: EMPTY_QUEUE, email: EMPTY_QUEUE };
export const EMPTY_MEMORY: Memory = { number: 0, place: null, plan: EMPTY_PLAN, queues: NO_QUEUES, messages: {} };

/** A memory after a change; messages that no queue has any more are gone. */
export function patched(memory: Memory, { v: _, ...patch }: Patch): Memory {
  const queues = { ...memory.queues, ...patch.queues };
  const needed = new Set(CHANNELS.flatMap((name) => queues[name].waiting.map(({ id }) => id)));
  const all = { ...memory.messages, ...patch.messages };
  const messages = Object.fromEntries(Object.entries(all).filter(([id]) => needed.has(id)));
  return { ...memory, ...patch, queues, messages };
}

/** Two changes as one, the later last. */
export function merged(first: Patch, then: Patch): Patch {
  return {
    ...first,
    ...then,
    ...(first.queues || then.queues ? { queues: { ...first.queues, ...then.queues } } : {}),
    ...(first.messages || then.messages ? { messages: { ...first.messages, ...then.messages } } : {}),
  };
}

export interface Loaded {
  readonly memory: Memory;
  /** Lines that were not understood. A torn last one, of a kill in the middle of writing, is none of them. */
  readonly damaged: number;
}

const severity = v.picklist(['WARNING', 'ERROR', 'CRITICAL']);
const level = v.nullable(severity);
const texts = v.array(v.string());
const subject = v.looseObject({
  key: v.string(),
  source: v.picklist(['alert', 'job']),
  id: v.string(),
  node: v.string(),
  metric: v.string(),
  level,
  at: v.string(),
  value: v.nullable(v.number()),
  threshold: v.nullable(v.number()),
  lines: texts,
  findings: texts,
  since: v.string(),
  told: level,
  news: v.nullable(
    v.looseObject({ firstMs: v.number(), lastMs: v.number(), episodes: v.number(), worst: level, isNewFinding: v.boolean() }),
  ),
  tellings: v.array(v.looseObject({ ms: v.number(), level: severity })),
});
const queue = v.looseObject({
  waiting: v.array(v.looseObject({ id: v.string(), createdMs: v.number(), bytes: v.number(), attempts: v.number(), nextMs: v.number() })),
  delivered: v.number(),
  givenUp: v.number(),
  givenUpInAll: v.number(),
  failures: v.number(),
  lastSuccessMs: v.nullable(v.number()),
  last: v.nullable(v.looseObject({ id: v.string(), ms: v.number(), ok: v.boolean(), detail: v.string() })),
});
const line = v.looseObject({
  v: v.literal(1),
  number: v.optional(v.number()),
  place: v.optional(v.nullable(v.string())),
  plan: v.optional(v.looseObject({ subjects: v.record(v.string(), subject), toldMs: v.array(v.number()) })),
  queues: v.optional(v.looseObject({ webhook: v.optional(queue), command: v.optional(queue), email: v.optional(queue) })),
  messages: v.optional(v.record(v.string(), v.looseObject({ id: v.string(), alerts: v.array(v.unknown()), open: v.array(v.unknown()) }))),
});

/** What the lines of a journal amount to. */
export function memoryOf(text: string): Loaded {
  let memory = EMPTY_MEMORY;
  let damaged = 0;
  const lines = text.split('\n');
  for (const [index, entry] of lines.entries()) {
    if (entry === '') continue;
    const patch = parsedJson(entry);
    if (v.is(line, patch))
      memory = patched(memory, patch as unknown as Patch); // As it was written: a notification that is sent again is the same to the byte.
    else if (index < lines.length - 1) damaged += 1;
  }
  return { memory: withoutLostMessages(memory), damaged };
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** What waits without its message, whose line was damaged, cannot be sent. */
function withoutLostMessages(memory: Memory): Memory {
  const kept = (name: ChannelName): Queue => ({
    ...memory.queues[name],
    waiting: memory.queues[name].waiting.filter(({ id }) => Object.hasOwn(memory.messages, id)),
  });
  return { ...memory, queues: { webhook: kept('webhook'), command: kept('command'), email: kept('email') } };
}
