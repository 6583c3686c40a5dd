import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Alert } from '../core/alert.ts';
import { nodeOfAlertId } from '../core/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { HistoryReader, Position, Publisher } from '../core/ports.ts';
import type { ShutdownProgress } from '../core/shutdown.ts';
import { cutOff } from './bare.ts';
import { clientOf, isForThisMachine, shareOf } from './clients.ts';
import { type Asking, drained, fromStore } from './context.ts';
import { Problem } from './problem.ts';
import {
  type EventKind,
  formatId,
  isBeyond,
  type MissedEvent,
  type MissedEvents,
  missedSince,
  parseId,
  type StreamFilter,
} from './resume.ts';

interface SentEvent {
  readonly number: number;
  readonly kind: EventKind;
  readonly node: string;
  readonly json: string;
  readonly position: Position | null;
  /** Whether the store has it, at its position. */
  readonly isRecorded: boolean;
}

/** An event as it goes over the wire. */
function wire({ number, kind, json, position }: Omit<SentEvent, 'isRecorded'>): string {
  return `id: ${formatId(position, number)}\nevent: ${kind}\ndata: ${json}\n\n`;
}

/** The id before the first event, where nothing is recorded. */
const BEFORE_ALL = formatId(null, 0);

interface Stream {
  readonly asking: Asking;
  readonly response: ServerResponse;
  readonly filter: StreamFilter;
  /** Null: this host. */
  readonly client: string | null;
  readonly openedMs: number;
  /** Up to date: events go to it as they happen. Before that it is brought what it missed. */
  live: boolean;
  /** How far it was brought from the store: what is published later and was in the store already is not sent again. */
  reached: Partial<Position>;
}

/** Streams of this host that are beyond the maximum, so that no remote client keeps its programs out. */
const RESERVED_STREAMS = 8;
/** One client has at least so many of the maximum. */
const LEAST_SHARE = 4;
/** Events kept for clients that come back within moments. */
const KEPT = 1024;
/** Missed events that are written before waiting for the reader to take them. */
const AT_ONCE = 200;
const HEARTBEAT_SECONDS = 15;
/** A stream is ended after this time, and its client resumes it: no reader holds anything for longer. */
const LIFE_SECONDS = 15 * 60;
/** Until clients come back, by the `retry` field: where the service went away, and where it only ended the stream. */
const RETRY_MS = 2000;
const RETRY_AT_ONCE_MS = 100;
/** Bytes that may wait for a reader who does not read; beyond it the stream is cut, and the client may resume. */
const MAX_WAITING_BYTES = 128 * 1024;
/** The same for all of them together, which is shared out evenly: a thousand who do not read are not worth the service's end. */
const MAX_WAITING_BYTES_OVER_ALL = 32 * 1024 * 1024;

export interface EventHubOptions {
  readonly history: HistoryReader;
  readonly max: number;
  /** Shorter in tests. */
  readonly heartbeatSeconds?: number;
  readonly lifeSeconds?: number;
}

/** Fans health statuses and alerts out to the readers of /events, and lets them resume where they left off. */
export class EventHub implements Publisher {
  readonly #streams = new Set<Stream>();
  readonly #history: HistoryReader;
  readonly #max: number;
  readonly #heartbeatMs: number;
  readonly #lifeMs: number;
  #kept: SentEvent[] = [];
  /** Of the next event. Numbers begin at 1; what comes from the store has 0. */
  #number = 1;
  #position: Position | null = null;
  #dropped = 0;
  #heartbeat: NodeJS.Timeout | null = null;

  constructor({ heartbeatSeconds = HEARTBEAT_SECONDS, history, lifeSeconds = LIFE_SECONDS, max }: EventHubOptions) {
    this.#history = history;
    this.#max = max;
    this.#heartbeatMs = heartbeatSeconds * 1000;
    this.#lifeMs = lifeSeconds * 1000;
  }

  get count(): number {
    return this.#streams.size;
  }

  get dropped(): number {
    return this.#dropped;
  }

  /** Counts a stream whose connection was closed because its reader takes nothing. */
  countDropped(response: ServerResponse): void {
    for (const stream of this.#streams) if (stream.response === response) this.#dropped += 1;
  }

  /** Why there can be no further stream for a request; null: there can. */
  refusal(request: IncomingMessage): Problem | null {
    const countOf = (client: string | null): number => [...this.#streams].filter((stream) => stream.client === client).length;
    const client = streamClient(request);
    const reserved = Math.min(countOf(null), RESERVED_STREAMS);
    if (client === null && reserved < RESERVED_STREAMS) return null;
    if (this.#streams.size - reserved >= this.#max)
      return new Problem('too_many_event_streams', `all ${this.#max} are in use; close another stream, or raise rest.max_event_streams`);
    const share = shareOf(this.#max, LEAST_SHARE);
    if (client === null || countOf(client) < share) return null;
    return new Problem('too_many_event_streams', `${client} has ${share} already, as many as one client may have; close one of them`);
  }

  publishHealth(status: HealthStatus, line: string): void {
    this.#send('health', status.node_name, line);
  }

  publishAlert(alert: Alert): void {
    this.#send('alert', nodeOfAlertId(alert.alert_id), JSON.stringify(alert));
  }

  /** A safe shutdown is of the machine that serves the stream: whoever follows any node of it is told. */
  publishShutdown(progress: ShutdownProgress): void {
    this.#send('shutdown', '', JSON.stringify(progress));
  }

  /** Begins a stream on a response; resolves when everything missed since `lastEventId` was sent. */
  async open(asking: Asking, filter: StreamFilter, lastEventId: string | null): Promise<void> {
    const { request, response } = asking;
    const client = streamClient(request);
    const stream: Stream = {
      asking,
      response,
      filter,
      client,
      openedMs: performance.now(),
      live: lastEventId === null,
      reached: {},
    };
    this.#streams.add(stream);
    response.once('close', () => this.#close(stream));
    this.#heartbeat ??= setInterval(() => this.#beat(), this.#heartbeatMs);
    response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
    });
    response.write(`retry: ${RETRY_MS}\n\n`);
    if (lastEventId !== null) await this.#bringUpToDate(stream, lastEventId);
  }

  stop(): void {
    if (this.#heartbeat) clearInterval(this.#heartbeat);
    this.#heartbeat = null;
    for (const stream of this.#streams) stream.response.end();
    this.#streams.clear();
  }

  /** What is recorded is published at once: the store's position is that of this event, unless it did not record it. */
  #send(kind: EventKind, node: string, json: string): void {
    const before = this.#position;
    const now = this.#history.position();
    const isRecorded = kind !== 'shutdown' && now !== null && (before === null || isBeyond(now[kind], before[kind]));
    const position = isRecorded ? { ...(before ?? now), [kind]: now[kind] } : (before ?? now);
    this.#position = position;
    const event: SentEvent = { number: this.#number++, kind, node, json, position, isRecorded };
    this.#kept.push(event);
    // Cut in one go now and then: shifting a long array each time would cost more than sending.
    if (this.#kept.length >= 2 * KEPT) this.#kept = this.#kept.slice(-KEPT);
    for (const stream of this.#streams) if (stream.live) this.#write(stream, event);
  }

  #write(stream: Stream, event: SentEvent): void {
    const { filter, response } = stream;
    const { kind, position } = event;
    if (!filter.kinds.includes(kind) || (kind !== 'shutdown' && filter.node !== null && filter.node !== event.node)) return;
    const reached = kind === 'shutdown' || !event.isRecorded ? undefined : stream.reached[kind];
    if (kind !== 'shutdown' && reached && position && !isBeyond(position[kind], reached)) return;
    response.write(wire(event));
    this.#cutIfSlow(stream);
  }

  #cutIfSlow(stream: Stream): void {
    const most = Math.min(MAX_WAITING_BYTES, MAX_WAITING_BYTES_OVER_ALL / this.#streams.size);
    if (stream.response.writableLength > most) this.#drop(stream);
  }

  #close(stream: Stream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0 || !this.#heartbeat) return;
    clearInterval(this.#heartbeat);
    this.#heartbeat = null;
  }

  #beat(): void {
    const openedBeforeMs = performance.now() - this.#lifeMs;
    for (const stream of this.#streams) {
      if (stream.openedMs <= openedBeforeMs) {
        this.#end(stream);
        continue;
      }
      stream.response.write(': still here\n\n');
      this.#cutIfSlow(stream);
    }
  }

  /** The client goes on from the id, also where no event that it asked for has come yet. Before it is live, the id of its last event counts. */
  #end(stream: Stream): void {
    const id = formatId(this.#position ?? this.#history.position(), this.#number - 1);
    this.#close(stream);
    stream.response.end(stream.live ? `retry: ${RETRY_AT_ONCE_MS}\nid: ${id}\n\n` : '');
  }

  #drop(stream: Stream): void {
    this.#dropped += 1;
    this.#close(stream);
    if (stream.response.socket) cutOff(stream.response.socket);
    else stream.response.destroy();
  }

  /** Sends what came after an event: from memory where that is known, else first from the store by its position. */
  async #bringUpToDate(stream: Stream, lastEventId: string): Promise<void> {
    const known = this.#kept.find(({ number, position }) => formatId(position, number) === lastEventId);
    let position = parseId(lastEventId);
    /** Of the next event to send; null: it is to be sought in the store. */
    let next = known ? known.number + 1 : position ? null : lastEventId === BEFORE_ALL ? 1 : this.#number;
    while (this.#streams.has(stream) && !stream.live) {
      if (next !== null && next < (this.#kept[0]?.number ?? this.#number)) next = null; // Memory has moved on meanwhile.
      if (next === null && position) {
        // What is published from here on is in memory.
        const later = this.#number;
        const { events, more } = await this.#missed(position, stream);
        await this.#writeMissed(stream, events);
        position = events.at(-1)?.position ?? position;
        if (!more) next = later;
        continue;
      }
      const first: number = this.#kept[0]?.number ?? this.#number;
      next ??= first;
      const events = this.#kept.slice(next - first, next - first + AT_ONCE);
      for (const event of events) this.#write(stream, event);
      next += events.length;
      position = events.at(-1)?.position ?? position;
      if (events.length < AT_ONCE) stream.live = true;
      else await this.#taken(stream);
    }
  }

  async #missed(since: Position, { asking, filter }: Stream): Promise<MissedEvents> {
    try {
      return await fromStore(asking, () => missedSince(this.#history, since, filter));
    } catch {
      return { events: [], more: false }; // The store cannot be read now: the stream goes on live, and /status tells of the store.
    }
  }

  async #writeMissed(stream: Stream, events: readonly MissedEvent[]): Promise<void> {
    for (let i = 0; i < events.length && this.#streams.has(stream); i += AT_ONCE) {
      for (const event of events.slice(i, i + AT_ONCE)) {
        stream.response.write(wire({ ...event, number: 0 }));
        stream.reached = { ...stream.reached, [event.kind]: event.position[event.kind] };
      }
      await this.#taken(stream);
    }
  }

  async #taken({ response }: Stream): Promise<void> {
    await new Promise(setImmediate);
    await drained(response);
  }
}

/** Programs behind a proxy of this host are not its own. */
function streamClient(request: IncomingMessage): string | null {
  return isForThisMachine(request) ? null : clientOf(request.socket);
}
