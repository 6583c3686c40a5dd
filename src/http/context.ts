import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TimeRange } from '../core/ports.ts';
import { isoUtc } from '../core/time/time.ts';
import type { Query } from './parameters.ts';
import { Problem } from './problem.ts';
import type { ServiceView } from './view.ts';

/** State shared by all requests of a server. */
export interface Shared {
  readonly view: ServiceView;
  /** Limits the concurrent store queries. The store runs one after the other; more would only fill memory with results. */
  readonly store: Semaphore;
  readonly turns: TurnQueue;
}

/** Maximum number of concurrent store queries. */
export const MAX_STORE_QUERIES = 2;

/** A request and everything that its handler needs. */
export interface Context extends Shared {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly query: Query;
  /** Records the data that the response keeps in memory until it is sent. */
  readonly hold: (body: object, bytes: number) => void;
}

/** The parts of a request that a store query needs. */
export type StoreAccess = Pick<Context, 'request' | 'response' | 'store'>;

export type Handler = (context: Context) => void | Promise<void>;

/** A body is written in chunks of this size, so that a slow client leaves at most one of them in the socket's buffer. */
export const PIECE_BYTES = 64 * 1024;

/** Ends the response with a complete body; HEAD gets only its headers. */
export function sendBody(
  context: Context,
  contentType: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): void | Promise<void> {
  const { request, response } = context;
  const length = Buffer.byteLength(body);
  response.writeHead(200, {
    'Content-Type': contentType,
    'Content-Length': length,
    'Cache-Control': 'no-store',
    ...headers,
  });
  if (request.method === 'HEAD') response.end();
  else if (length <= PIECE_BYTES) response.end(body);
  else return sendInPieces(context, typeof body === 'string' ? Buffer.from(body) : body);
}

async function sendInPieces({ hold, response }: Context, body: Buffer): Promise<void> {
  hold(body, body.length);
  for (let offset = 0; offset < body.length && !response.destroyed; offset += PIECE_BYTES) {
    response.write(body.subarray(offset, offset + PIECE_BYTES));
    await waitForDrain(response);
  }
  response.end();
}

/** As sendBody, for bodies that a client may cache; responds with 304 if the client has the current version. */
export function sendTagged(context: Context, contentType: string, body: string | Buffer, tag: string): void | Promise<void> {
  const { request, response } = context;
  const known = request.headers['if-none-match'];
  const matches = known
    ?.split(',')
    .some((candidate) => candidate.trim().replace(/^W\//, '') === tag.replace(/^W\//, '') || candidate.trim() === '*');
  if (matches) {
    response.writeHead(304, { ETag: tag, 'Cache-Control': 'no-cache' });
    response.end();
    return;
  }
  return sendBody(context, contentType, body, { ETag: tag, 'Cache-Control': 'no-cache' });
}

/** Limits the length of the error message; a few names are enough to show how they are spelled. */
const MAX_NAMES_SHOWN = 20;

/** The node named in the query, by default this machine's; throws a 404 for a node that was never seen. */
export function nodeOf({ query, view }: Context): string {
  const node = (query['node'] as string | undefined) ?? view.localNode;
  if (!view.isKnownNode(node)) {
    const names = view.nodes();
    const shown = `${names.slice(0, MAX_NAMES_SHOWN).join(', ')}${names.length > MAX_NAMES_SHOWN ? ', …' : ''}`;
    throw new Problem('unknown_node', `no node "${node.slice(0, 60)}" is known; known nodes: ${shown}`, {
      parameter: 'node',
    });
  }
  return node;
}

/**
 * Waits until the store may be queried; the returned function releases it again. Programs on this machine are served before remote
 * clients. Rejects if the client has disconnected meanwhile.
 */
export async function acquireStore({ request, response, store }: StoreAccess): Promise<() => void> {
  const release = await store.acquire(isForThisMachine(request));
  if (!response.destroyed) return release;
  release();
  throw new Error('the client has disconnected');
}

/** Waits for the store's result. A failure becomes a 503, because neither the request nor the HTTP server is at fault. */
export async function awaitAnswer<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw new Problem('storage_unavailable', `the query of the store failed: ${(error as Error).message}`);
  }
}

/** Runs a store query as soon as one of the concurrent queries has ended. */
export async function queryStore<T>(access: StoreAccess, query: () => Promise<T>): Promise<T> {
  const release = await acquireStore(access);
  try {
    return await awaitAnswer(query());
  } finally {
    release();
  }
}

/** Waits until the client has read the written data or has disconnected. connections.ts drops a client that does not read. */
export function waitForDrain(response: ServerResponse): Promise<void> {
  if (response.destroyed || !response.writableNeedDrain) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}

/**
 * The headers Truncated and Link of a page. `Link: <?…>; rel="next"` has the same query with the next cursor and a fixed range, so that
 * pages do not shift as time passes. It is relative to the URL of the request, to which a reverse proxy may add a path. `cursor` null: this is
 * the last page.
 */
export function pageHeaders(
  { request }: Context,
  cursor: string | null,
  range: TimeRange | null,
  parameter = 'cursor',
): Record<string, string> {
  if (cursor === null) return { Truncated: 'false' };
  const search = new URLSearchParams((request.url ?? '').split('?').slice(1).join('?'));
  if (range) {
    search.delete('hours');
    search.set('from', isoUtc(range.fromMs));
    search.set('to', isoUtc(range.toMs));
  }
  search.set(parameter, cursor);
  return { Truncated: 'true', Link: `<?${search}>; rel="next"` };
}

/** Whether the client prefers `type` to JSON, according to the q-values of its Accept header. */
export function prefers(request: IncomingMessage, type: string): boolean {
  const quality = (wanted: string): number => {
    let best = 0;
    for (const part of (request.headers.accept ?? '*/*').split(',')) {
      const [name = '', ...options] = part.split(';').map((piece) => piece.trim().toLowerCase());
      if (name !== wanted) continue;
      const q = options.find((option) => option.startsWith('q='));
      best = Math.max(best, q ? Number(q.slice(2)) || 0 : 1);
    }
    return best;
  };
  return quality(type) > quality('application/json');
}

type Ends = Pick<Socket, 'localAddress' | 'remoteAddress'>;

export const withoutMapping = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');

/** Connections to the Unix socket. They have no address, like a TCP connection that was closed. */
const unixConnections = new WeakSet<object>();

export function markAsUnix(socket: Socket): void {
  unixConnections.add(socket);
}

export const isUnix = (socket: object): boolean => unixConnections.has(socket);

/**
 * Whether a connection comes from this machine: over the Unix socket, from a loopback address, or from the same address that it was
 * made to.
 */
export function isLocal(socket: Ends): boolean {
  if (isUnix(socket)) return true;
  const { localAddress, remoteAddress } = socket;
  if (remoteAddress === undefined) return false;
  const address = withoutMapping(remoteAddress);
  return address === '::1' || address.startsWith('127.') || remoteAddress === localAddress;
}

/** Whether the client is a program on this machine, and not a proxy that forwards a request. */
export function isForThisMachine({ headers, socket }: IncomingMessage): boolean {
  return isLocal(socket) && headers['forwarded'] === undefined && headers['x-forwarded-for'] === undefined;
}

/** Limits the number of concurrent operations. Waiting operations with `isFirst` run before those without. */
export class Semaphore {
  #free: number;
  readonly #first: (() => void)[] = [];
  readonly #others: (() => void)[] = [];

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  /** Resolves with the function that releases the semaphore; further calls of it have no effect. */
  async acquire(isFirst: boolean): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => (isFirst ? this.#first : this.#others).push(resolve));
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const next = this.#first.shift() ?? this.#others.shift();
      if (next) next();
      else this.#free += 1;
    };
  }
}

/** Runs at most one piece of queued work per turn of the event loop, so that samples are taken in between. */
export class TurnQueue {
  #last: Promise<unknown> = Promise.resolve();

  next(): Promise<unknown> {
    this.#last = this.#last.then(() => new Promise(setImmediate));
    return this.#last;
  }
}
