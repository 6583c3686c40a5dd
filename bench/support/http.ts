import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { pause } from './statistics.ts';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** From the request to the last byte. */
  readonly milliseconds: number;
}

/** A single connection, kept open between requests. */
export function keepAliveAgent(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 1 });
}

export function fetchTimed(url: string, agent?: Agent): Promise<Answer> {
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    const request = get(url, { ...(agent && { agent }), timeout: 60_000 }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => {
        const milliseconds = performance.now() - begun;
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts).toString(), milliseconds });
      });
    });
    request.on('timeout', () => request.destroy(new Error(`${url}: no response within a minute`)));
    request.on('error', reject);
  });
}

export async function fetchJson<T>(url: string): Promise<T> {
  const { status, body } = await fetchTimed(url);
  if (status !== 200) throw new Error(`${url} returned ${status}: ${body.slice(0, 300)}`);
  return JSON.parse(body) as T;
}

const START_TIMEOUT_SECONDS = 30;

/** Polls until the response is 200. Throws if the server process ends, or after a timeout. */
export async function waitForResponse(url: string, child: ChildProcess, pollSeconds: number): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_SECONDS * 1000;
  for (;;) {
    try {
      if ((await fetchTimed(url)).status === 200) return;
    } catch {
      // The server does not listen yet.
    }
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`${url}: the server process ended (${child.signalCode ?? child.exitCode})`);
    if (performance.now() > deadline) throw new Error(`${url} did not respond with 200 within ${START_TIMEOUT_SECONDS} s`);
    await pause(pollSeconds);
  }
}

/** An unused port of the loopback address. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
