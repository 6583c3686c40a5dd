/** The observers of the machine during a fault, outside of it: a client of the event stream, and a DDS subscriber. */
import { type ClientRequest, get } from 'node:http';
import { eventParser, type ServerEvent } from '../../../src/client/event-stream.ts';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import { Peer } from '../../../testkit/dds/peers.ts';
import type { Host } from '../../../testkit/network/network.ts';

/** A status or a change of an alert, with its time of arrival here. */
export interface Received<T> {
  readonly atMs: number;
  readonly it: T;
}

const RECONNECT_MS = 100;

/** A client of /events that reconnects with the last id whenever it is disconnected, as a browser does. */
export class EventStreamClient {
  readonly statuses: Received<HealthStatus>[] = [];
  readonly alerts: Received<Alert>[] = [];
  disconnections = 0;
  readonly #url: string;
  readonly #node: string;
  #lastId: string | null = null;
  #request: ClientRequest | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(url: string, node: string) {
    this.#url = url;
    this.#node = node;
    this.#connect();
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer) clearTimeout(this.#timer);
    this.#request?.destroy();
  }

  #connect(): void {
    const headers = this.#lastId === null ? {} : { 'Last-Event-ID': this.#lastId };
    let isOver = false;
    const over = (wasOpen: boolean): void => {
      if (isOver || this.#isClosed) return;
      isOver = true;
      if (wasOpen) this.disconnections += 1;
      this.#timer = setTimeout(() => this.#connect(), RECONNECT_MS);
    };
    this.#request = get(`${this.#url}/events`, { headers, agent: false }, (response) => {
      if (response.statusCode !== 200) response.resume();
      else {
        response.setEncoding('utf8').on(
          'data',
          eventParser((event) => this.#receive(event)),
        );
      }
      response.on('error', () => over(true)).on('close', () => over(true));
    });
    this.#request.on('error', () => over(false));
  }

  #receive({ data, event, id }: ServerEvent): void {
    if (id !== null) this.#lastId = id;
    const atMs = Date.now();
    if (event === 'health') {
      const it = JSON.parse(data) as HealthStatus;
      if (it.node_name === this.#node) this.statuses.push({ atMs, it });
    } else if (event === 'alert') {
      this.alerts.push({ atMs, it: JSON.parse(data) as Alert });
    }
  }
}

/** A subscriber to /health_status and /alerts on another DDS implementation than the service's. */
export class TopicSubscriber {
  readonly #peer: Peer;
  readonly #node: string;

  private constructor(peer: Peer, node: string) {
    this.#peer = peer;
    this.#node = node;
  }

  static async start(host: Host, node: string): Promise<TopicSubscriber> {
    const peer = await Peer.start(host, 'cyclone', 'subscribe', ['--topic', '/health_status', '--topic', '/alerts']);
    return new TopicSubscriber(peer, node);
  }

  get statuses(): Received<HealthStatus>[] {
    return this.#received<HealthStatus>('health_status').filter(({ it }) => it.node_name === this.#node);
  }

  get alerts(): Received<Alert>[] {
    return this.#received<Alert>('alerts');
  }

  /** Time stamp of the newest status, in ms since the epoch; 0: none yet. Cheap. */
  get newestMs(): number {
    for (const event of this.#peer.events.slice(-50).reverse()) {
      if (event.event !== 'sample' || !event.topic.endsWith('health_status') || event.data['node_name'] !== this.#node) continue;
      return Date.parse(String(event.data['timestamp']));
    }
    return 0;
  }

  async close(): Promise<void> {
    await this.#peer.kill('SIGKILL');
  }

  #received<T>(topic: string): Received<T>[] {
    return this.#peer
      .all('sample')
      .filter((sample) => sample.topic.endsWith(topic))
      .map(({ wall_ms, data }) => ({ atMs: wall_ms, it: data as T }));
  }
}
