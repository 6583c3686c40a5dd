/** A receiver of webhooks over HTTP or HTTPS that records requests. Used by test/ops and test/system/ops. */
import { readFileSync } from 'node:fs';
import * as http from 'node:http';
import * as https from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

export interface Received {
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
  readonly ms: number;
}

/** Handles a request; `count` is the number of earlier requests. */
export type Behaviour = (response: http.ServerResponse, request: Received, count: number) => void;

export const accept: Behaviour = (response) => response.writeHead(204).end();

export interface Certificate {
  readonly file: string;
  readonly key: Buffer;
  readonly cert: Buffer;
  readonly keyFile: string;
}

const TLS = join(import.meta.dirname, '../fixtures/tls');

/** A self-signed certificate for 127.0.0.1 and localhost, valid for a century (testkit/fixtures/tls). */
export const SELF_SIGNED: Certificate = {
  file: join(TLS, 'certificate.pem'),
  keyFile: join(TLS, 'key.pem'),
  cert: readFileSync(join(TLS, 'certificate.pem')),
  key: readFileSync(join(TLS, 'key.pem')),
};

/** A real HTTP server that records requests. */
export class Receiver {
  readonly received: Received[] = [];
  behaviour: Behaviour = accept;
  readonly #server: http.Server;
  readonly #scheme: string;

  private constructor(certificate: Certificate | null) {
    const listener: http.RequestListener = (request, response) => this.#record(request, response);
    this.#server = certificate ? https.createServer(certificate, listener) : http.createServer(listener);
    this.#scheme = certificate ? 'https' : 'http';
  }

  static async start(behaviour: Behaviour = accept, certificate: Certificate | null = null): Promise<Receiver> {
    const receiver = new Receiver(certificate);
    receiver.behaviour = behaviour;
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook/secret-path`;
  }

  messages<T = Record<string, unknown>>(): T[] {
    return this.received.map(({ body }) => JSON.parse(body) as T);
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #record(request: http.IncomingMessage, response: http.ServerResponse): void {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('error', () => undefined);
    request.on('end', () => {
      const received = { path: request.url ?? '', headers: request.headers, body, ms: Date.now() };
      this.received.push(received);
      this.behaviour(response, received, this.received.length - 1);
    });
  }
}
