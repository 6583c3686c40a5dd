import { spawnSync } from 'node:child_process';
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

/** What to do with a request; `count` is how many came before. */
export type Behaviour = (response: http.ServerResponse, request: Received, count: number) => void;

export const accept: Behaviour = (response) => response.writeHead(204).end();

export interface Certificate {
  readonly file: string;
  readonly key: Buffer;
  readonly cert: Buffer;
  readonly keyFile: string;
}

/** A certificate for 127.0.0.1 and localhost that is signed by itself. */
export function selfSigned(folder: string): Certificate {
  const [keyFile, file] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'];
  const made = spawnSync('openssl', [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '2',
    '-keyout',
    keyFile,
    '-out',
    file,
    ...subject,
  ]);
  if (made.status !== 0) throw new Error(`openssl: ${made.error ?? made.stderr}`);
  return { file, keyFile, key: readFileSync(keyFile), cert: readFileSync(file) };
}

/** A real HTTP server that keeps what it is sent. */
export class Receiver {
  readonly received: Received[] = [];
  behaviour: Behaviour = accept;
  readonly #server: http.Server;
  readonly #scheme: string;

  private constructor(certificate: Certificate | null) {
    const listener: http.RequestListener = (request, response) => this.#take(request, response);
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

  #take(request: http.IncomingMessage, response: http.ServerResponse): void {
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

/** Waits until a condition holds; throws with what `describe` says otherwise. */
export async function until(condition: () => boolean, describe: () => string, seconds = 20): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`still not after ${seconds} s: ${describe()}`);
    await new Promise((later) => setTimeout(later, 20));
  }
}
