import type { ServerResponse } from 'node:http';
import type { Alert } from '../core/alert.ts';
import { nodeOfAlertId } from '../core/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { HistoryReader, Publisher } from '../core/ports.ts';
import { METRICS } from '../core/metrics.ts';
import { STATUSES } from '../core/thresholds.ts';
import { isoUtc } from '../core/time.ts';

export type EventKind = 'health' | 'alert' | 'shutdown';

interface SentEvent {
  readonly id: string;
  readonly kind: EventKind;
  readonly node: string;
  readonly json: string;
}

/** An event as it goes over the wire. */
function wire({ id, kind, json }: SentEvent): string {
  return `id: ${id}\nevent: ${kind}\ndata: ${json}\n\n`;
}

export interface StreamFilter {
  readonly kinds: readonly EventKind[];
  /** Null: all nodes. */
  readonly node: string | null;
}

interface Stream {
  readonly response: ServerResponse;
  readonly filter: StreamFilter;
  /** While what was missed is fetched from the store, live events wait here. */
  held: SentEvent[] | null;
}

/** Events kept for clients that come back within moments. */
const KEPT = 1024;
/** What is brought from the store at most, of each kind, for a client that was away longer. */
const RESUMED = 1000;
const HEARTBEAT_SECONDS = 15;
/** Bytes that may wait for a reader who does not read; beyond it the stream is cut, and the client may resume. */
const MAX_WAITING_BYTES = 256 * 1024;

/** `<milliseconds>-<number>`: the time lets a client resume after a restart, the number tells events of one moment apart. */
function parseId(id: string): number | null {
  const match = /^(\d{1,15})-\d{1,15}$/.exec(id);
  return match ? Number(match[1]) : null;
}

/** Fans health statuses and alerts out to the readers of /events, and lets them resume where they left off. */
export class EventHub implements Publisher {
  readonly #streams = new Set<Stream>();
  readonly #history: HistoryReader;
  readonly #nodes: () => string[];
  readonly #max: number;
  #kept: SentEvent[] = [];
  #number = 0;
  #dropped = 0;
  #heartbeat: NodeJS.Timeout | null = null;

  constructor(history: HistoryReader, nodes: () => string[], maxStreams: number) {
    this.#history = history;
    this.#nodes = nodes;
    this.#max = maxStreams;
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
    this.#send('health', status.node_name, Date.parse(status.timestamp), line);
  }

  publishAlert(alert: Alert): void {
    this.#send('alert', nodeOfAlertId(alert.alert_id), Date.parse(alert.timestamp), JSON.stringify(alert));
  }

  /** Begins a stream on a response; resolves when everything missed since `lastEventId` was sent. */
  async open(response: ServerResponse, filter: StreamFilter, lastEventId: string | null): Promise<void> {
    const stream: Stream = { response, filter, held: [] };
    this.#streams.add(stream);
    response.once('close', () => this.#close(stream));
    this.#heartbeat ??= setInterval(() => this.#beat(), HEARTBEAT_SECONDS * 1000);
    response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
    });
    response.write('retry: 2000\n\n');
    const missed = lastEventId === null ? [] : await this.#missed(lastEventId, filter);
    for (const event of missed) this.#write(stream, event);
    // An alert is stored a moment before it is published: it can be in both.
    const sent = new Set(missed.map((event) => event.kind + event.json));
    const held = stream.held ?? [];
    stream.held = null;
    for (const event of held) if (!sent.has(event.kind + event.json)) this.#write(stream, event);
  }

  stop(): void {
    if (this.#heartbeat) clearInterval(this.#heartbeat);
    this.#heartbeat = null;
    for (const stream of this.#streams) stream.response.end();
    this.#streams.clear();
  }

  #send(kind: EventKind, node: string, timestampMs: number, json: string): void {
    const id = `${timestampMs}-${this.#number++}`;
    const event: SentEvent = { id, kind, node, json };
    this.#kept.push(event);
    // Cut in one go now and then: shifting a long array each time would cost more than sending.
    if (this.#kept.length >= 2 * KEPT) this.#kept = this.#kept.slice(-KEPT);
    for (const stream of this.#streams) {
      if (stream.held) stream.held.push(event);
      else this.#write(stream, event);
    }
  }

  #write(stream: Stream, event: SentEvent): void {
    const { filter, response } = stream;
    if (!filter.kinds.includes(event.kind) || (filter.node !== null && filter.node !== event.node)) return;
    response.write(wire(event));
    this.#cutIfSlow(stream);
  }

  #cutIfSlow(stream: Stream): void {
    if (stream.response.writableLength <= MAX_WAITING_BYTES) return;
    this.#dropped += 1;
    this.#close(stream);
    stream.response.destroy();
  }

  #close(stream: Stream): void {
    this.#streams.delete(stream);
    stream.held = null;
    if (this.#streams.size > 0 || !this.#heartbeat) return;
    clearInterval(this.#heartbeat);
    this.#heartbeat = null;
  }

  #beat(): void {
    for (const stream of this.#streams) {
      stream.response.write(': still here\n\n');
      this.#cutIfSlow(stream);
    }
  }

  /** Events after the one with this id: from memory where it is known, else from the store by its time. */
  async #missed(lastEventId: string, filter: StreamFilter): Promise<SentEvent[]> {
    const index = this.#kept.findIndex((event) => event.id === lastEventId);
    if (index >= 0) {
      // Everything up to now is in memory; what comes from here on is being held.
      return this.#kept.slice(index + 1);
    }
    const since = parseId(lastEventId);
    if (since === null) return [];
    const untilMs = Date.now() + 1;
    const nodes = filter.node === null ? this.#nodes() : [filter.node];
    const found: { timestampMs: number; event: SentEvent }[] = [];
    const add = (kind: EventKind, node: string, timestampMs: number, json: string): void => {
      const id = `${timestampMs}-0`;
      found.push({ timestampMs, event: { id, kind, node, json } });
    };
    try {
      for (const node of filter.kinds.includes('health') ? nodes : []) {
        const page = await this.#history.history({ node, fromMs: since + 1, toMs: untilMs, stepMs: null, order: 'desc', limit: RESUMED });
        for (let i = 0; i < page.count; i += 1) {
          const values = METRICS.map((metric, m) => [metric, Number.isFinite(page.metrics[m]?.[i]) ? page.metrics[m]?.[i] : null]);
          const timestampMs = page.timestampMs[i] as number;
          const status = { ...Object.fromEntries(values), status: STATUSES[page.status[i] as number], node_name: node, timestamp: isoUtc(timestampMs) };
          add('health', node, timestampMs, JSON.stringify(status));
        }
      }
      if (filter.kinds.includes('alert')) {
        const range = { fromMs: since + 1, toMs: untilMs };
        const query = { node: filter.node, severity: null, metric: null, resolved: null, changes: true, limit: RESUMED, after: null, range, nowMs: untilMs };
        const { alerts } = await this.#history.alerts(query);
        for (const alert of alerts) add('alert', nodeOfAlertId(alert.alert_id), Date.parse(alert.timestamp), JSON.stringify(alert));
      }
    } catch {
      return []; // The store cannot be read now: the stream goes on live, and /status tells of the store.
    }
    return found
      .sort((a, b) => a.timestampMs - b.timestampMs)
      .map(({ event }) => event);
  }
}
