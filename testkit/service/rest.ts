/**
 * For tests of the REST API: services that end with the test (`startService`, `startIn`) and requests exactly as given (`ask`,
 * `RawConnection`). openapi.ts validates responses against the OpenAPI document, testkit/machine/machine-tree.ts causes alerts.
 */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { temporaryFolder } from '../folder.ts';
import { until } from '../wait.ts';
import { RunningService, type RunOptions } from './service.ts';

export type { StatusDocument } from '../../src/http/api/schema.ts';

/** The paths of the OpenAPI document, in its order. */
export const PATHS = [
  '/health',
  '/health/history',
  '/health/aggregate',
  '/alerts',
  '/alerts/{alert_id}',
  '/status',
  '/events',
  '/reports',
  '/metrics',
  '/snapshot',
  '/openapi.json',
] as const;

export interface ProblemDocument {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly parameter?: string;
  readonly allowed?: string;
}

/** Prevents disk alerts: the data folder is on the file system of the machine, which may be nearly full. */
const NO_DISK_ALERT = { disk: { warning: 99.98, critical: 99.99 } };

/** Starts a service with all its files in a folder that is removed at the end of the test. */
export async function startService(t: Test, options: RunOptions = {}): Promise<RunningService> {
  const folder = temporaryFolder(t);
  return startIn(t, folder, options);
}

/** Like startService, but in a given folder, which may have data of an earlier run. */
export async function startIn(t: Test, folder: string, options: RunOptions = {}): Promise<RunningService> {
  const environment = { RUNTIME_DIRECTORY: join(folder, 'run'), ...options.environment };
  mkdirSync(environment.RUNTIME_DIRECTORY, { recursive: true });
  const config = { thresholds: NO_DISK_ALERT, ...options.config };
  const service = await RunningService.start(folder, { ...options, config, environment });
  t.teardown(() => service.end());
  return service;
}

/** Resolves with the first health status. Until then, /health returns 503. */
export async function measured(service: RunningService): Promise<HealthStatus> {
  return service.until<HealthStatus>('/health', ({ cpu_percent }) => cpu_percent !== undefined);
}

/** Resolves when the history has at least `count` health statuses. */
export async function recorded(service: RunningService, count: number): Promise<void> {
  await service.until<{ count?: number }>('/health/history?hours=1', (body) => (body.count ?? 0) >= count);
}

export const later = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Asserts that the service responds, that its log has no failure, and that it exits on SIGTERM. */
export async function stillWell(t: Test, service: RunningService): Promise<void> {
  const response = await service.get('/health');
  t.equal(response.status, 200, 'a normal client gets /health');
  await response.arrayBuffer();
  t.notMatch(service.log, /request failed|Error\b|^\s+at /m, 'the log shows no failure');
  t.equal(await service.end(), 0, 'it exits with 0 on SIGTERM');
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends one request exactly as given, on a new connection; fetch would normalise path and method. */
export function sendRequest(
  service: Pick<RunningService, 'url'>,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const { hostname, port } = new URL(service.url);
  return new Promise((resolve, reject) => {
    const outgoing = request({ hostname, port, method, path, headers, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response.once('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
      response.once('error', reject);
    });
    outgoing.once('error', reject);
    outgoing.end();
  });
}

/** The target of the next page after `target`, from its Link header; undefined: there is none. Throws if it is not a relative reference. */
export function nextPage(target: string, link: string | null | undefined): string | undefined {
  if (link === null || link === undefined) return undefined;
  const search = /^<(\?[^>]*)>; rel="next"$/.exec(link)?.[1];
  if (search === undefined) throw new Error(`no relative reference to a next page: ${link}`);
  return `${target.split('?')[0]}${search}`;
}

export function problemOf(answer: Answer): ProblemDocument {
  return JSON.parse(answer.body) as ProblemDocument;
}

/** A TCP connection without HTTP processing. Collects the received text; errors only close it. */
export class RawConnection {
  readonly socket: Socket;
  readonly #closed: Promise<void>;
  #text = '';

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1').on('data', (text: string) => {
      this.#text += text;
    });
    this.#closed = new Promise((resolve) => {
      socket.once('close', () => resolve());
    });
    socket.on('error', () => {
      // The service may reset the connection of a client that it refuses.
    });
  }

  static open(service: Pick<RunningService, 'url'>): Promise<RawConnection> {
    const { hostname, port } = new URL(service.url);
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => resolve(new RawConnection(socket)));
      socket.once('error', reject);
    });
  }

  get received(): string {
    return this.#text;
  }

  send(text: string | Buffer): this {
    this.socket.write(text);
    return this;
  }

  /** Resolves when the service has closed the connection. */
  async untilClosed(): Promise<void> {
    const limit = until('the connection is closed', () => this.socket.closed, { describe: () => this.#text.slice(-1000) });
    await Promise.race([this.#closed, limit]);
  }

  /** Resolves with the received text once it matches. */
  async until(pattern: RegExp): Promise<string> {
    const describe = (): string => this.#text.slice(-1000);
    await until(`${pattern} was received`, () => pattern.test(this.#text) || this.socket.closed, { describe });
    if (!pattern.test(this.#text)) throw new Error(`closed before ${pattern} was received: ${describe()}`);
    return this.#text;
  }
}

/** Sends bytes on a new connection; resolves with the text received until the service closes it. */
export async function exchange(service: RunningService, bytes: string | Buffer): Promise<string> {
  const connection = await RawConnection.open(service);
  connection.send(bytes);
  await connection.untilClosed();
  return connection.received;
}

/** Resident memory in MB. */
export function residentMegabytes(service: RunningService): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8'))?.[1]) / 1024;
}

export function openDescriptors(service: RunningService): number {
  return readdirSync(`/proc/${service.pid}/fd`).length;
}
