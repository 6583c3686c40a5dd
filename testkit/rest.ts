import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { Test } from 'tap';
import type { HealthStatus } from '../src/core/health-status.ts';
import { temporaryFolder } from './folder.ts';
import { RunningService, type RunOptions } from './service.ts';

export type { StatusDocument } from '../src/http/api/schema.ts';

/** The paths of the contract, in its order. */
export const PATHS = [
  '/health',
  '/health/history',
  '/health/aggregate',
  '/alerts',
  '/status',
  '/events',
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

/** Starts a service whose every file lies in a folder that is removed at the end of the test. */
export async function startService(t: Test, options: RunOptions = {}): Promise<RunningService> {
  const folder = temporaryFolder(t);
  return startIn(t, folder, options);
}

/** As startService, in a given folder: what an earlier run left there is found again. */
export async function startIn(t: Test, folder: string, options: RunOptions = {}): Promise<RunningService> {
  const environment = { RUNTIME_DIRECTORY: join(folder, 'run'), ...options.environment };
  mkdirSync(environment.RUNTIME_DIRECTORY, { recursive: true });
  const service = await RunningService.start(folder, { ...options, environment });
  t.teardown(() => service.end());
  return service;
}

/** Resolves when the service has measured something; before that /health is a 503. */
export async function measured(service: RunningService): Promise<HealthStatus> {
  return service.until<HealthStatus>('/health', ({ cpu_percent }) => cpu_percent !== undefined);
}

/** Resolves when so many health statuses are in the history. */
export async function recorded(service: RunningService, count: number): Promise<void> {
  await service.until<{ count?: number }>('/health/history?hours=1', (body) => (body.count ?? 0) >= count);
}

export const later = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Whatever was done to the service: it answers, its log shows no failure, and it ends as asked. */
export async function stillWell(t: Test, service: RunningService): Promise<void> {
  const response = await service.get('/health');
  t.equal(response.status, 200, 'a normal client gets /health');
  await response.arrayBuffer();
  t.notMatch(service.log, /a request failed|Error\b|^\s+at /m, 'the log shows no failure');
  t.equal(await service.end(), 0, 'it ends as asked');
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** One request exactly as given, on a connection of its own; fetch would tidy up path and method. */
export function ask(
  service: RunningService,
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

export function problemOf(answer: Answer): ProblemDocument {
  return JSON.parse(answer.body) as ProblemDocument;
}

/** A bare connection on which nothing is tidied up. Collects what comes; errors only end it. */
export class RawConnection {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  #text = '';

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1').on('data', (text: string) => {
      this.#text += text;
    });
    this.closed = new Promise((resolve) => {
      socket.once('close', () => resolve());
    });
    socket.on('error', () => {
      // A reset is one way to be refused.
    });
  }

  static open(service: RunningService): Promise<RawConnection> {
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

  /** Resolves when the service has closed the connection, or with false after so many seconds. */
  async isClosedWithin(seconds: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), seconds * 1000);
    });
    const closed = await Promise.race([this.closed.then(() => true), timeout]);
    clearTimeout(timer);
    return closed;
  }

  /** Resolves once what came matches. */
  async until(pattern: RegExp, seconds = 10): Promise<string> {
    const deadline = Date.now() + seconds * 1000;
    while (!pattern.test(this.#text)) {
      if (Date.now() > deadline || this.socket.destroyed) throw new Error(`no ${pattern} in: ${this.#text.slice(0, 1000)}`);
      await later(10);
    }
    return this.#text;
  }
}

/** Sends bytes on a connection of their own; resolves with all that comes back until the service closes. */
export async function exchange(service: RunningService, bytes: string | Buffer, seconds = 5): Promise<string> {
  const connection = await RawConnection.open(service);
  connection.send(bytes);
  await connection.isClosedWithin(seconds);
  connection.socket.destroy();
  return connection.received;
}

export interface ApiOperation {
  readonly operationId: string;
  readonly parameters: readonly ApiParameter[];
  readonly responses: Readonly<Record<string, ApiResponse>>;
}

export interface ApiParameter {
  readonly name: string;
  readonly in: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly style?: string;
  readonly explode?: boolean;
}

interface ApiResponse {
  readonly content?: Readonly<Record<string, { readonly schema: Readonly<Record<string, unknown>> }>>;
}

export interface ApiDocument {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, { readonly get: ApiOperation }>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

/** The service's own OpenAPI document, to hold its answers against. */
export class Contract {
  readonly document: ApiDocument;
  readonly #ajv: Ajv2020;

  constructor(document: ApiDocument) {
    this.document = document;
    this.#ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true });
    this.#ajv.addVocabulary(['openapi', 'info', 'servers', 'paths', 'components', 'security']);
    formats.default(this.#ajv);
    this.#ajv.addSchema(document, 'api');
  }

  static async of(service: RunningService, headers: Readonly<Record<string, string>> = {}): Promise<Contract> {
    return new Contract((await (await service.get('/openapi.json', { headers })).json()) as ApiDocument);
  }

  operation(path: string): ApiOperation {
    const item = this.document.paths[path];
    if (!item) throw new Error(`the document has no ${path}`);
    return item.get;
  }

  /** What an answer has that is not in the document; nothing: it keeps to it. */
  violations(path: string, answer: Answer): string[] {
    const response = this.operation(path).responses[String(answer.status)];
    if (!response) return [`status ${answer.status} is not documented`];
    const type = (answer.headers['content-type'] ?? '').split(';')[0] as string;
    if (!response.content) return answer.body === '' ? [] : ['a body is not documented'];
    const content = response.content[type];
    if (!content) return [`content type "${type}" is not documented for ${answer.status}`];
    if (!/json$/.test(type)) return [];
    return this.schemaViolations(content.schema, JSON.parse(answer.body));
  }

  schemaViolations(schema: Readonly<Record<string, unknown>>, value: unknown): string[] {
    const validate = this.#ajv.compile(withAbsoluteReferences(schema));
    return validate(value) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  }
}

function withAbsoluteReferences(schema: Readonly<Record<string, unknown>>): object {
  const reference = schema['$ref'];
  return typeof reference === 'string' ? { $ref: `api${reference}` } : schema;
}

/** A machine whose memory is as full as the test says: the real collectors read it as /proc. */
export class PretendedMachine {
  readonly arguments: readonly string[];
  readonly #meminfo: string;

  constructor(folder: string) {
    const proc = join(folder, 'proc');
    const sys = join(folder, 'sys');
    mkdirSync(proc, { recursive: true });
    mkdirSync(sys, { recursive: true });
    writeFileSync(join(proc, 'stat'), 'cpu  100 0 100 1000 0 0 0 0 0 0\n');
    this.#meminfo = join(proc, 'meminfo');
    this.arguments = ['--proc', proc, '--sys', sys];
    this.setMemoryPercent(10);
  }

  setMemoryPercent(percent: number): void {
    writeFileSync(this.#meminfo, `MemTotal: 1000000 kB\nMemFree: 0 kB\nMemAvailable: ${Math.round((100 - percent) * 10_000)} kB\n`);
  }
}

/** Resident memory in MB. */
export function residentMegabytes(service: RunningService): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8'))?.[1]) / 1024;
}

export function openDescriptors(service: RunningService): number {
  return readdirSync(`/proc/${service.pid}/fd`).length;
}
