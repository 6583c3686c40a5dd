import type { ServerResponse } from 'node:http';
import type { Alert } from '../core/alert.ts';
import { nodeOfAlertId } from '../core/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { HistoryReader, Position, Publisher } from '../core/ports.ts';
import type { ShutdownProgress } from '../core/shutdown.ts';
import { drained, fromStore } from './context.ts';
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
import { connectionKey, readUnsent } from './unsent.ts';

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

interface Stream {
  readonly response: ServerResponse;
  readonly filter: StreamFilter;
  /** Up to date: events go to it as they happen. Before that it is brought what it missed. */
  live: boolean;
  /** How far it was brought from the store: what is published later and was in the store already is not sent again. */
  reached: Partial<Position>;
  /** Bytes that its reader had taken when that was looked at last. */
  taken: number;
}

/** What the kernel has been given of a stream. */
function sentBytes({ response: { socket } }: Stream): number {
  return socket ? socket.bytesWritten - socket.writableLength : 0;
}

/** Events kept for clients that come back within moments. */
const KEPT = 1024;
/** Missed events that are written before waiting for the reader to take them. */
const AT_ONCE = 200;
const HEARTBEAT_SECONDS = 15;
/** Bytes that may wait for a reader who does not read; beyond it the stream is cut, and the client may resume. */
const MAX_WAITING_BYTES = 128 * 1024;
/** The same for all of them together, which is shared out evenly: a thousand who do not read are not worth the service's end. */
const MAX_WAITING_BYTES_OVER_ALL = 32 * 1024 * 1024;
/** The kernel takes megabytes for a reader before anything waits here. One who takes less than this from one heartbeat to the next does not read. */
const LEAST_TAKEN_BYTES = 4096;

/** Fans health statuses and alerts out to the readers of /events, and lets them resume where they left off. */
export class EventHub implements Publisher {
  readonly #streams = new Set<Stream>();
  readonly #history: HistoryReader;
  readonly #max: number;
  readonly #heartbeatSeconds: number;
  #kept: SentEvent[] = [];
  /** Of the next event. Numbers begin at 1; what comes from the store has 0. */
  #number = 1;
  #position: Position | null = null;
  #dropped = 0;
  #heartbeat: NodeJS.Timeout | null = null;

  constructor(history: HistoryReader, maxStreams: number, heartbeatSeconds = HEARTBEAT_SECONDS) {
    this.#history = history;
    this.#max = maxStreams;
    this.#heartbeatSeconds = heartbeatSeconds;
  }

  get count(): number {
    return this.#streams.size;
  }

  get dropped(): number {
    return this.#dropped;
  }

  get isFull(): boolean {
    return this.#streams.size >= this.#max;
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
  async open(response: ServerResponse, filter: StreamFilter, lastEventId: string | null): Promise<void> {
    const stream: Stream = { response, filter, live: lastEventId === null, reached: {}, taken: 0 };
    this.#streams.add(stream);
    response.once('close', () => this.#close(stream));
    this.#heartbeat ??= setInterval(() => this.#beat(), this.#heartbeatSeconds * 1000);
    response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
    });
    response.write('retry: 2000\n\n');
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
    for (const stream of this.#streams) {
      stream.response.write(': still here\n\n');
      this.#cutIfSlow(stream);
    }
    void this.#cutTheDeaf();
  }

  /** Cuts those for whom too much waits in the kernel, and who have taken next to nothing of it since they were looked at last. */
  async #cutTheDeaf(): Promise<void> {
    const suspects = [...this.#streams].filter((stream) => sentBytes(stream) - stream.taken > MAX_WAITING_BYTES);
    const port = suspects[0]?.response.socket?.localPort;
    if (port === undefined) return;
    const unsent = await readUnsent(port);
    for (const stream of suspects) {
      const { socket } = stream.response;
      const waiting = socket ? unsent.get(connectionKey(socket)) : undefined;
      if (waiting === undefined || !this.#streams.has(stream)) continue;
      const before = stream.taken;
      stream.taken = Math.max(before, sentBytes(stream) - waiting);
      if (waiting > MAX_WAITING_BYTES && stream.taken - before < LEAST_TAKEN_BYTES) this.#drop(stream);
    }
  }

  #drop(stream: Stream): void {
    this.#dropped += 1;
    this.#close(stream);
    stream.response.destroy();
  }

  /** Sends what came after an event: from memory where that is known, else first from the store by its position. */
  async #bringUpToDate(stream: Stream, lastEventId: string): Promise<void> {
    const known = this.#kept.find(({ number, position }) => formatId(position, number) === lastEventId);
    let position = parseId(lastEventId);
    /** Of the next event to send; null: it is to be sought in the store. */
    let next = known ? known.number + 1 : position ? null : this.#number;
    while (this.#streams.has(stream) && !stream.live) {
      if (next !== null && next < (this.#kept[0]?.number ?? this.#number)) next = null; // Memory has moved on meanwhile.
      if (next === null && position) {
        // What is published from here on is in memory.
        const later = this.#number;
        const { events, more } = await this.#missed(position, stream.filter);
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

  async #missed(since: Position, filter: StreamFilter): Promise<MissedEvents> {
    try {
      return await fromStore(() => missedSince(this.#history, since, filter));
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

  /** A reader who does not take what it asked for is cut off like any slow one. */
  async #taken({ response }: Stream): Promise<void> {
    await new Promise(setImmediate);
    if (!(await drained(response))) this.#dropped += 1;
  }
}
