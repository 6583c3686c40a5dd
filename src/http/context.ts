import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TimeRange } from '../core/ports.ts';
import { isoUtc } from '../core/time.ts';
import { isForThisMachine } from './clients.ts';
import type { Query } from './parameters.ts';
import { Problem } from './problem.ts';
import type { Semaphore, TurnQueue } from './queues.ts';
import type { ServiceView } from './view.ts';

/** What the requests of a server share. */
export interface Shared {
  readonly view: ServiceView;
  /** Leave to ask the store, which answers one question after the other; more at once would only fill memory and the loop with answers. */
  readonly store: Semaphore;
  readonly turns: TurnQueue;
}

/** Questions to the store under way at once. */
export const QUESTIONS_AT_ONCE = 2;

/** One request on its way through a handler. */
export interface Context extends Shared {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly query: Query;
  /** Counts what the response keeps in memory until it is sent. */
  readonly hold: (body: object, bytes: number) => void;
}

/** What a question to the store is asked for. */
export type Asking = Pick<Context, 'request' | 'response' | 'store'>;

export type Handler = (context: Context) => void | Promise<void>;

/** A body is written in pieces of this size, so that no more of it waits for a slow reader: as much as a socket takes before it wants to be drained. */
export const PIECE_BYTES = 64 * 1024;

/** Ends the response with a body made in one piece; HEAD gets its headers alone. */
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
    await drained(response);
  }
  response.end();
}

/** As sendBody, for what a client may keep and ask about again; answers 304 when it has this very version. */
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

/** Of a hundred robots a few names are enough to see how they are written. */
const NAMES_TOLD = 20;

/** The node that was asked for, this machine's by default; one that was never seen is a 404. */
export function nodeOf({ query, view }: Context): string {
  const node = (query['node'] as string | undefined) ?? view.localNode;
  if (!view.knows(node)) {
    const names = view.nodes();
    const told = `${names.slice(0, NAMES_TOLD).join(', ')}${names.length > NAMES_TOLD ? ', …' : ''}`;
    throw new Problem('unknown_node', `no node "${node.slice(0, 60)}" was ever seen; known: ${told}`, {
      parameter: 'node',
    });
  }
  return node;
}

/**
 * Waits for leave to ask the store; the returned function gives it back. Programs of this machine get it before remote clients do. Rejects
 * when the client has left meanwhile.
 */
export async function leaveToAsk({ request, response, store }: Asking): Promise<() => void> {
  const leave = await store.acquire(isForThisMachine(request));
  if (!response.destroyed) return leave;
  leave();
  throw new Error('the client has left');
}

/** The store's answer; its failure is a 503, not an error of ours. */
export async function answered<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw new Problem('storage_unavailable', `the store cannot answer: ${(error as Error).message}`);
  }
}

/** Asks the store once it is this request's turn. */
export async function fromStore<T>(asking: Asking, ask: () => Promise<T>): Promise<T> {
  const done = await leaveToAsk(asking);
  try {
    return await answered(ask());
  } finally {
    done();
  }
}

/** Waits until a reader has taken what was written, or is gone: one that takes nothing is dropped (connections.ts). */
export function drained(response: ServerResponse): Promise<void> {
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
 * The headers of a page: whether elements follow it, and where. `Link: <…>; rel="next"` has the same query, another cursor (or other place),
 * and the range fixed so that pages do not shift with the clock. `cursor` null: nothing follows.
 */
export function pageHeaders(
  { path, request }: Context,
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
  return { Truncated: 'true', Link: `<${path}?${search}>; rel="next"` };
}

/** Whether the client would rather have `type` than JSON, by the q-values of its Accept header. */
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
