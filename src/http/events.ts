import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Alert, nodeOfAlertId } from '../core/alerts/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { HistoryReader, Position, Publisher, RecordCursor, RecordedEvent, RecordedPage } from '../core/ports.ts';
import type { ShutdownProgress } from '../core/shutdown/shutdown.ts';
import { ID } from './api/query-schema.ts';
import { isForThisMachine, isLocal, queryStore, type StoreAccess, waitForDrain, withoutMapping } from './context.ts';
import { Problem } from './problem.ts';
import { cutOff } from './raw-response.ts';
import { type Client, type Clients, Shares } from './shares.ts';

interface SentEvent {
  readonly number: number;
  readonly kind: EventKind;
  readonly node: string;
  readonly json: string;
  /** Where the store recorded it; null: it did not. */
  readonly cursor: RecordCursor | null;
  /** Position of the stream after this event. */
  readonly position: Position | null;
}

/** An event in the format of an event stream (WHATWG HTML, "Server-sent events"). */
function formatEvent({ number, kind, json, position }: Omit<SentEvent, 'cursor'>): string {
  return `id: ${formatId(position, number)}\nevent: ${kind}\ndata: ${json}\n\n`;
}

/**
 * Writes a chunk (RFC 9112, section 7.1) to the socket. `response.write` would keep its parts until the end of the turn, which takes a
 * fourteenth of the CPU time of the service at 1 Hz.
 */
function writeAtOnce(response: ServerResponse, text: string): void {
  const { chunkedEncoding, socket, writableCorked } = response;
  // What `response` still keeps must come first, and HTTP 1.0 has no chunks.
  if (!socket || writableCorked > 0 || !chunkedEncoding) response.write(text);
  else socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
}

/** The id before the first event, if the store is empty. */
const BEFORE_ALL = formatId(null, 0);

interface Stream {
  readonly access: StoreAccess;
  readonly response: ServerResponse;
  readonly filter: StreamFilter;
  readonly openedMs: number;
  /** Whether it receives events as they happen. Until then, it receives the events that it missed. */
  live: boolean;
  /** Position of the last events sent from the store. An event up to this position is not sent again when it is published. */
  reached: Partial<Position>;
}

const LIMITS = { leastShare: 4, reserved: 8, perUser: 2 } as const;
/** Recent events kept in memory for clients that reconnect soon. */
const RECENT_EVENTS = 1024;
/** Missed events that are written before waiting for the client to read them. */
const AT_ONCE = 200;
/** Maximum number of events per store query. */
const EVENTS_PER_QUERY = 1000;
const HEARTBEAT_SECONDS = 15;
/** A stream is ended after this time, and its client resumes it. This bounds how long a client can hold memory. */
const LIFE_SECONDS = 15 * 60;
/** `retry` field of a stream: the time until the client reconnects if the service stops. */
const RETRY_MS = 2000;
/** `retry` field at the end of a stream that only reached LIFE_SECONDS. */
const RETRY_AT_ONCE_MS = 100;
/** Unread bytes of a stream. Above this the stream is closed; the client can resume it. */
const MAX_WAITING_BYTES = 128 * 1024;
/** Unread bytes of all streams, divided equally among them, so that many clients that do not read cannot exhaust the memory. */
const MAX_WAITING_BYTES_OVER_ALL = 32 * 1024 * 1024;

interface EventHubOptions {
  readonly history: HistoryReader;
  readonly clients: Clients;
  readonly max: number;
  /** Shorter in tests. */
  readonly heartbeatSeconds?: number;
  readonly lifeSeconds?: number;
}

/** Sends health statuses and alerts to the clients of /events, and resumes their streams after the last event that they received. */
export class EventHub implements Publisher {
  readonly #streams = new Set<Stream>();
  readonly #history: HistoryReader;
  readonly #clients: Clients;
  readonly #max: number;
  readonly #heartbeatMs: number;
  readonly #lifeMs: number;
  #recent: SentEvent[] = [];
  /** Number of the next event. Numbers begin at 1; events from the store have 0. */
  #number = 1;
  #position: Position | null = null;
  #dropped = 0;
  #heartbeat: NodeJS.Timeout | null = null;

  constructor({ clients, heartbeatSeconds = HEARTBEAT_SECONDS, history, lifeSeconds = LIFE_SECONDS, max }: EventHubOptions) {
    this.#history = history;
    this.#clients = clients;
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

  /** Counts a stream whose connection was closed because its client stopped reading. */
  countDropped(response: ServerResponse): void {
    for (const stream of this.#streams) if (stream.response === response) this.#dropped += 1;
  }

  /** Throws a Problem if a request may not have a further stream. */
  #checkShare(request: IncomingMessage): void {
    const shares = this.#shares();
    const client = this.#clientOf(request);
    const excess = shares.excessOf(client);
    if (excess === null) return;
    const share = `${client ?? 'this host'} has ${shares.shareOf(client)} event streams, the maximum for one client; close one`;
    const all = `all ${this.#max} event streams are in use; close one, or raise rest.max_event_streams`;
    throw new Problem('too_many_event_streams', excess === 'share' ? share : all);
  }

  #shares(): Shares {
    const shares = new Shares({ ...LIMITS, max: this.#max });
    for (const { access } of this.#streams) shares.add(this.#clientOf(access.request));
    return shares;
  }

  /** A proxy on this host has clients of other hosts, and no part of what is reserved for this host. */
  #clientOf(request: IncomingMessage): Client {
    const client = this.#clients.clientOf(request.socket);
    return isLocal(request.socket) && !isForThisMachine(request) ? withoutMapping(request.socket.remoteAddress ?? '') : client;
  }

  publishHealth(status: HealthStatus, line: string, cursor: RecordCursor | null): void {
    this.#advance('health', cursor);
    this.#send('health', status.node_name, line, cursor);
  }

  publishAlert(alert: Alert, cursor: RecordCursor | null): void {
    this.#advance('alert', cursor);
    this.#send('alert', nodeOfAlertId(alert.alert_id), JSON.stringify(alert), cursor);
  }

  /** A safe shutdown concerns the machine that serves the stream. It is sent regardless of the node that a client has selected. */
  publishShutdown(progress: ShutdownProgress): void {
    this.#send('shutdown', '', JSON.stringify(progress), null);
  }

  /** Begins a stream on a response; resolves when every event since `lastEventId` was sent. Throws a Problem if there are too many. */
  async open(access: StoreAccess, filter: StreamFilter, lastEventId: string | null): Promise<void> {
    const { request, response } = access;
    if (this.#shares().needsUser(this.#clientOf(request))) await this.#clients.lookUpUsers();
    this.#checkShare(request);
    if (response.destroyed) return;
    const stream: Stream = {
      access,
      response,
      filter,
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
    // With an id from the beginning, a client whose connection breaks before its first event can resume, too.
    const id = lastEventId === null ? `id: ${formatId(this.#position, this.#number - 1)}\n` : '';
    response.write(`retry: ${RETRY_MS}\n${id}\n`);
    if (lastEventId !== null) await this.#bringUpToDate(stream, lastEventId);
  }

  stop(): void {
    if (this.#heartbeat) clearInterval(this.#heartbeat);
    this.#heartbeat = null;
    for (const stream of this.#streams) stream.response.end();
    this.#streams.clear();
  }

  #advance(kind: keyof Position, cursor: RecordCursor | null): void {
    if (cursor === null) return;
    const { health, alert } = this.#position ?? startOf(cursor.segment);
    if (!isBeyond(cursor, kind === 'health' ? health : alert)) return;
    this.#position = kind === 'health' ? { health: cursor, alert } : { health, alert: cursor };
  }

  #send(kind: EventKind, node: string, json: string, cursor: RecordCursor | null): void {
    const event: SentEvent = { number: this.#number++, kind, node, json, cursor, position: this.#position };
    this.#recent.push(event);
    // Truncating the array only now and then is cheaper than shifting it for each event.
    if (this.#recent.length >= 2 * RECENT_EVENTS) this.#recent = this.#recent.slice(-RECENT_EVENTS);
    for (const stream of this.#streams) if (stream.live) this.#write(stream, event);
  }

  #write(stream: Stream, event: SentEvent): void {
    const { filter, response } = stream;
    const { kind, cursor } = event;
    if (!filter.kinds.includes(kind) || (kind !== 'shutdown' && filter.node !== null && filter.node !== event.node)) return;
    const reached = kind === 'shutdown' ? undefined : stream.reached[kind];
    if (cursor && reached && !isBeyond(cursor, reached)) return;
    writeAtOnce(response, formatEvent(event));
    this.#dropIfSlow(stream);
  }

  #dropIfSlow(stream: Stream): void {
    const maxBytes = Math.min(MAX_WAITING_BYTES, MAX_WAITING_BYTES_OVER_ALL / this.#streams.size);
    if (stream.response.writableLength > maxBytes) this.#drop(stream);
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
      stream.response.write(': heartbeat\n\n');
      this.#dropIfSlow(stream);
    }
  }

  /**
   * Ends a stream. A live stream gets the id to resume from, since there may have been no event that its client selected; one that is not
   * live yet is resumed from its last event.
   */
  #end(stream: Stream): void {
    const id = formatId(this.#position, this.#number - 1);
    this.#close(stream);
    stream.response.end(stream.live ? `retry: ${RETRY_AT_ONCE_MS}\nid: ${id}\n\n` : '');
  }

  #drop(stream: Stream): void {
    this.#dropped += 1;
    this.#close(stream);
    if (stream.response.socket) cutOff(stream.response.socket);
    else stream.response.destroy();
  }

  /** Sends the events after an event: from memory if it is still there, otherwise first from the store by its position. */
  async #bringUpToDate(stream: Stream, lastEventId: string): Promise<void> {
    const known = this.#recent.find(({ number, position }) => formatId(position, number) === lastEventId);
    let position = parseId(lastEventId);
    /** Number of the next event to send; null: it must be read from the store. */
    let next = known ? known.number + 1 : position ? null : lastEventId === BEFORE_ALL ? 1 : this.#number;
    while (this.#streams.has(stream) && !stream.live) {
      if (next !== null && next < (this.#recent[0]?.number ?? this.#number)) next = null; // The event is no longer in memory.
      if (next === null && position) {
        // Events published during the query are in memory.
        const firstAfterQuery = this.#number;
        const missed = await this.#missed(position, stream);
        if (missed === null) return this.#end(stream);
        position = await this.#writeMissed(stream, missed.events, position);
        if (!missed.more) next = firstAfterQuery;
        continue;
      }
      const first: number = this.#recent[0]?.number ?? this.#number;
      next ??= first;
      const events = this.#recent.slice(next - first, next - first + AT_ONCE);
      for (const event of events) this.#write(stream, event);
      next += events.length;
      position = events.at(-1)?.position ?? position;
      if (events.length < AT_ONCE) stream.live = true;
      else await this.#waitUntilRead(stream);
    }
  }

  /** The next events recorded after a position, in the order of recording; null: the store cannot be read. */
  async #missed(since: Position, { access, filter: { kinds, node } }: Stream): Promise<RecordedPage | null> {
    const query = {
      healthAfter: kinds.includes('health') ? since.health : null,
      alertAfter: kinds.includes('alert') ? since.alert : null,
      node,
      limit: EVENTS_PER_QUERY,
    };
    try {
      return await queryStore(access, () => this.#history.recorded(query));
    } catch {
      return null; // Without the missed events, any later id would make the client skip them for good.
    }
  }

  /** Sends events of the store to a stream at a position; resolves with the position after the last one. */
  async #writeMissed(stream: Stream, events: readonly RecordedEvent[], since: Position): Promise<Position> {
    let position = since;
    for (let i = 0; i < events.length && this.#streams.has(stream); i += AT_ONCE) {
      for (const event of events.slice(i, i + AT_ONCE)) {
        position = { ...position, [event.kind]: event.cursor };
        stream.response.write(formatEvent({ ...event, number: 0, position }));
        stream.reached = { ...stream.reached, [event.kind]: event.cursor };
      }
      await this.#waitUntilRead(stream);
    }
    return position;
  }

  async #waitUntilRead({ response }: Stream): Promise<void> {
    await new Promise(setImmediate);
    await waitForDrain(response);
  }
}

export type EventKind = 'health' | 'alert' | 'shutdown';

export interface StreamFilter {
  readonly kinds: readonly EventKind[];
  /** Null: all nodes. */
  readonly node: string | null;
}

/** Before the first record of a segment. */
function startOf(segment: number): Position {
  const start = { segment, sequence: 0 };
  return { health: start, alert: start };
}

export function isBeyond(cursor: RecordCursor, reached: RecordCursor): boolean {
  return cursor.segment > reached.segment || (cursor.segment === reached.segment && cursor.sequence > reached.sequence);
}

/**
 * The position is the last record that was sent, of any node; a client can resume from it after a restart of the service. The number
 * distinguishes events with the same position. Null: the store has no records yet.
 */
export function formatId(position: Position | null, number: number): string {
  if (!position) return `_${number.toString(36)}`;
  const cursor = ({ segment, sequence }: RecordCursor): string => `${segment.toString(36)}.${sequence.toString(36)}`;
  return `${cursor(position.health)}_${cursor(position.alert)}_${number.toString(36)}`;
}

export function parseId(id: string): Position | null {
  const match = ID.exec(id);
  if (!match) return null;
  const [healthSegment, healthSequence, alertSegment, alertSequence] = match.slice(1).map((text) => Number.parseInt(text, 36)) as [
    number,
    number,
    number,
    number,
  ];
  return { health: { segment: healthSegment, sequence: healthSequence }, alert: { segment: alertSegment, sequence: alertSequence } };
}
