/** A client of /events that records all events. A test waits for a count or an alert, never for a fixed time. */
import { get, type IncomingMessage } from 'node:http';
import { eventParser } from '../../src/client/event-stream.ts';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { until } from '../wait.ts';

export interface ReceivedEvent {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

export class EventReader {
  readonly received: ReceivedEvent[] = [];
  readonly #response: IncomingMessage;

  private constructor(response: IncomingMessage) {
    this.#response = response;
    const parse = eventParser(({ data, event, id }) => this.received.push({ id: id ?? '', event, data }));
    response.setEncoding('utf8').on('data', parse);
    response.on('error', () => {
      // The service was killed. The events received so far stay valid.
    });
  }

  static open(url: string, path = '/events', headers: Readonly<Record<string, string>> = {}): Promise<EventReader> {
    return new Promise((resolve, reject) => {
      get(url + path, { headers, agent: false }, (response) => resolve(new EventReader(response))).on('error', reject);
    });
  }

  get status(): number {
    return this.#response.statusCode ?? 0;
  }

  health(): HealthStatus[] {
    return this.received.filter(({ event }) => event === 'health').map(({ data }) => JSON.parse(data) as HealthStatus);
  }

  alerts(): Alert[] {
    return this.received.filter(({ event }) => event === 'alert').map(({ data }) => JSON.parse(data) as Alert);
  }

  /** Resolves with all received events once there are at least `count`. */
  async untilCount(count: number): Promise<readonly ReceivedEvent[]> {
    await until(`${count} events were received`, () => this.received.length >= count, { describe: () => this.#summary() });
    return this.received;
  }

  /** Resolves with the first matching alert. */
  untilAlert(satisfied: (alert: Alert) => boolean): Promise<Alert> {
    return until(`an alert satisfies ${satisfied}`, () => this.alerts().find(satisfied), { describe: () => this.#summary() });
  }

  #summary(): unknown {
    return { received: this.received.length, closed: this.#response.closed, last: this.received.slice(-10) };
  }

  close(): void {
    this.#response.destroy();
  }
}
