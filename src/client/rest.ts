import * as http from 'node:http';
import { urlToHttpOptions } from 'node:url';
import * as v from 'valibot';
import type { Config } from '../config/schema.ts';
import { readRegularFileSync } from '../core/files/regular-file.ts';

const MAX_TOKEN_BYTES = 4096;

/** No response: the service is not running, or its address is wrong. `cause` has the error. */
export class ServiceUnreachable extends Error {
  override readonly name = 'ServiceUnreachable';
}

/** The service responded with an error; `code` is that of the problem document, if there is one. */
export class ServiceRefused extends Error {
  override readonly name = 'ServiceRefused';
  readonly status: number;
  readonly code: string | null;

  constructor(path: string, status: number, body: string) {
    const problem = problemOf(body);
    super(`${path}: ${status} ${problem?.detail ?? `${body.slice(0, 200)} (is it edge-health?)`.trim()}`);
    this.status = status;
    this.code = problem?.code ?? null;
  }
}

function problemOf(body: string): { code: string; detail: string } | null {
  try {
    const { code, detail } = JSON.parse(body) as { code?: unknown; detail?: unknown };
    return typeof code === 'string' && typeof detail === 'string' ? { code, detail } : null;
  } catch {
    return null;
  }
}

export interface RestOptions {
  /** `http://127.0.0.1:5000`, or `unix:/run/edge-health/rest.sock`; a function may throw ServiceUnreachable. */
  readonly base: string | (() => string);
  /** Sent as bearer token; null: none. */
  readonly token: string | null | (() => string | null);
}

export interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Timeout without data; default 5. */
  readonly timeoutSeconds?: number;
  readonly signal?: AbortSignal;
  /** A longer body is refused; default 32 MB. */
  readonly maxBytes?: number;
  /** Schema of the body (documents.ts). Another program may respond at an address with any JSON. */
  readonly schema?: v.GenericSchema;
}

export interface Page<T> {
  readonly body: T;
  readonly next: string | null;
  readonly cursor: string | null;
}

const TIMEOUT_SECONDS = 5;
/** Ten times the largest page. Any program may respond at the address of --url. */
const MAX_BYTES = 32e6;

/** Client of the service's REST API. It uses node:http because fetch takes 14 MB of memory. */
export class RestClient {
  readonly #base: () => string;
  readonly #token: () => string | null;

  constructor({ base, token }: RestOptions) {
    this.#base = typeof base === 'function' ? base : () => base;
    this.#token = typeof token === 'function' ? token : () => token;
  }

  /** Base URL without a slash at the end, for messages. */
  get base(): string {
    try {
      return this.#url;
    } catch {
      return 'this machine';
    }
  }

  get #url(): string {
    return this.#base().replace(/\/$/, '');
  }

  /** Whether it is reached over its Unix socket, where no other user's program can respond. */
  get isLocal(): boolean {
    return !/^https?:/.test(this.base);
  }

  /** The parsed body of a 2xx response. Throws ServiceUnreachable or ServiceRefused. */
  async json<T>(path: string, options: RequestOptions = {}): Promise<T> {
    return (await this.page<T>(path, options)).body;
  }

  /** The parsed body, the path of the next page, and the cursor after this one (Last-Event-ID); null if the response has none. */
  async page<T>(path: string, options: RequestOptions = {}): Promise<Page<T>> {
    const { body: text, ...page } = await this.textPage(path, options);
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      throw new ServiceUnreachable(`${this.base}${path} does not answer with JSON: is it edge-health?`);
    }
    const member = options.schema && unexpectedMember(body, options.schema);
    if (member != null) throw new ServiceUnreachable(`${this.base}${path} is not a response of edge-health: ${member} is missing or wrong`);
    return { ...page, body: body as T };
  }

  /** The same, with the unparsed body. */
  async textPage(path: string, options: RequestOptions = {}): Promise<Page<string>> {
    const response = await this.stream(path, options);
    const body = await this.#text(path, response, options);
    const { 'last-event-id': cursor, link } = response.headers;
    const reference = /<([^>]+)>;\s*rel="next"/.exec(String(link ?? ''))?.[1];
    // Relative to the path of the request: the base may have a path of its own.
    const next = reference === undefined ? null : URL.parse(reference, `http://service${path}`);
    return { body, next: next && next.pathname + next.search, cursor: typeof cursor === 'string' ? cursor : null };
  }

  async text(path: string, options: RequestOptions = {}): Promise<string> {
    return this.#text(path, await this.stream(path, options), options);
  }

  async #text(path: string, response: http.IncomingMessage, { maxBytes = MAX_BYTES }: RequestOptions): Promise<string> {
    const pieces: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const piece of response as AsyncIterable<Buffer>) {
        pieces.push(piece);
        bytes += piece.length;
        if (bytes > maxBytes) throw new Error(`more than ${maxBytes / 1e6} MB`); // Leaving the loop also closes the connection.
      }
      return Buffer.concat(pieces).toString('utf8');
    } catch (error) {
      throw this.#unreachable(path, error as NodeJS.ErrnoException);
    }
  }

  /** A 2xx response whose body has not been read. Throws ServiceUnreachable or ServiceRefused. */
  async stream(
    path: string,
    { headers = {}, signal, timeoutSeconds = TIMEOUT_SECONDS }: RequestOptions = {},
  ): Promise<http.IncomingMessage> {
    const base = this.#url;
    const target = base.startsWith('unix:') ? { socketPath: base.slice('unix:'.length), path } : urlToHttpOptions(new URL(base + path));
    // Loaded on demand: node:https loads TLS, which takes 3 MB that the service itself does not need.
    const { request } = base.startsWith('https:') ? process.getBuiltinModule('node:https') : http;
    const token = this.#token();
    const authorization = token === null ? {} : { Authorization: `Bearer ${token}` };
    let response: http.IncomingMessage;
    try {
      response = await new Promise<http.IncomingMessage>((resolve, reject) => {
        const outgoing = request(
          { ...target, headers: { ...authorization, ...headers }, agent: false, ...(signal ? { signal } : {}) },
          resolve,
        );
        outgoing.setTimeout(timeoutSeconds * 1000, () => outgoing.destroy(new Error(`no response within ${timeoutSeconds} s`)));
        outgoing.once('error', reject);
        outgoing.end();
      });
    } catch (error) {
      throw this.#unreachable(path, error as NodeJS.ErrnoException);
    }
    const status = response.statusCode ?? 0;
    if (status < 200 || status > 299) throw new ServiceRefused(path, status, await this.#text(path, response, {}));
    return response;
  }

  #unreachable(path: string, error: NodeJS.ErrnoException): ServiceUnreachable {
    return new ServiceUnreachable(`${this.base}${path}: ${error.code ?? error.message}`, { cause: error });
  }
}

/** The first member of a body that is missing or of another type; null: none. Further members are allowed: a later version may have them. */
function unexpectedMember(body: unknown, schema: v.GenericSchema): string | null {
  const issue = v.safeParse(schema, body).issues?.find(({ expected, kind }) => kind === 'schema' && expected !== 'never');
  return issue ? (v.getDotPath(issue) ?? 'its content') : null;
}

/** A client for a service, with the token of a configuration. `base`: as in RestOptions. Throws if the token cannot be read. */
export function serviceOf(rest: Config['rest'], base: RestOptions['base']): RestClient {
  const { token_file } = rest;
  const read = (): string | null => (token_file === null ? null : readRegularFileSync(token_file, MAX_TOKEN_BYTES).toString().trim());
  let token = read();
  // The token is read again for each request, so that a long-running program uses a rotated token.
  const current = (): string | null => {
    try {
      token = read();
    } catch {
      // The file is being replaced; the previous token is used.
    }
    return token;
  };
  return new RestClient({ base, token: current });
}
