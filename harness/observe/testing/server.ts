import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';
import { RestClient } from '../../../src/client/rest.ts';

export interface Served {
  readonly rest: RestClient;
  /** Path and query of each request, in order. */
  readonly requests: string[];
}

/** A server on this machine's loopback that responds as the test defines; closed at its end. */
export async function serve(t: Test, answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<Served> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    answer(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { rest: new RestClient({ base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: null }), requests };
}

/** The response of a service that cannot serve the request now. */
export function refuse(response: ServerResponse, status: number, detail: string): void {
  response.writeHead(status, { 'Content-Type': 'application/problem+json' });
  response.end(JSON.stringify({ code: 'x', detail }));
}
