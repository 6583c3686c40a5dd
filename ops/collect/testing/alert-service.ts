import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';
import type { Alert } from '../../../src/core/alerts/alert.ts';

/** Cursors of each database; a later database does not accept those of an earlier one. */
const PLACES = 1_000_000_000;
const DATABASES = 1_000_000;

/** Serves GET /alerts?changes=true&after=… of the service from a list of changes, in small pages. */
export class AlertService {
  changes: readonly Alert[] = [];
  #database = DATABASES;
  /** Called before each page is returned. */
  beforePage: () => void = () => undefined;
  readonly #server: Server;
  readonly #pageSize: number;

  private constructor(pageSize: number) {
    this.#pageSize = pageSize;
    this.#server = createServer((request, response) => {
      this.beforePage();
      const after = Number(new URL(request.url ?? '', 'http://localhost').searchParams.get('after'));
      const base = this.#database * PLACES;
      if (after > base + this.changes.length) {
        response.writeHead(410, { 'Content-Type': 'application/problem+json' });
        response.end(JSON.stringify({ code: 'cursor_ahead', detail: 'go on with after=0' }));
        return;
      }
      const from = Math.max(0, after - base);
      const data = this.changes.slice(from, from + this.#pageSize);
      const place = base + from + data.length;
      const more = from + data.length < this.changes.length ? { Link: `</alerts?after=${place}>; rel="next"` } : {};
      response.writeHead(200, { 'Content-Type': 'application/json', 'Last-Event-ID': String(place), ...more });
      response.end(JSON.stringify({ data, count: data.length }));
    });
  }

  static async start(t: Test, pageSize: number): Promise<AlertService> {
    const service = new AlertService(pageSize);
    service.#server.listen(0, '127.0.0.1');
    await once(service.#server, 'listening');
    t.teardown(() => service.#server.close());
    return service;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Replaces the database by another one. */
  replace(changes: readonly Alert[]): void {
    this.#database -= 1;
    this.changes = changes;
  }
}
