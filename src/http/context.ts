import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TimeRange } from '../core/ports.ts';
import { isoUtc } from '../core/time.ts';
import type { Query } from './parameters.ts';
import { Problem } from './problem.ts';
import type { ServiceView } from './view.ts';

/** One request on its way through a handler. */
export interface Context {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly query: Query;
  readonly view: ServiceView;
}

export type Handler = (context: Context) => void | Promise<void>;

/** Ends the response with a body made in one piece; HEAD gets its headers alone. */
export function sendBody(
  context: Context,
  contentType: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): void {
  const { request, response } = context;
  response.writeHead(200, {
    'Content-Type': contentType,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** As sendBody, for what a client may keep and ask about again; answers 304 when it has this very version. */
export function sendTagged(context: Context, contentType: string, body: string | Buffer, tag: string): void {
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
  sendBody(context, contentType, body, { ETag: tag, 'Cache-Control': 'no-cache' });
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

/** The store answers one after the other; more questions at once would only fill memory and the loop with answers. */
const QUESTIONS_AT_ONCE = 2;
let asking = 0;
const waiting: (() => void)[] = [];

/** Waits for leave to ask the store; the returned function gives it back, once. */
export async function leaveToAsk(): Promise<() => void> {
  if (asking >= QUESTIONS_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  else asking += 1;
  let given = true;
  return () => {
    if (!given) return;
    given = false;
    const next = waiting.shift();
    if (next) next();
    else asking -= 1;
  };
}

/** The store's answer; its failure is a 503, not an error of ours. */
export async function answered<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw new Problem('storage_unavailable', `the store cannot answer: ${(error as Error).message}`);
  }
}

/** Asks the store when it is our turn. */
export async function fromStore<T>(ask: () => Promise<T>): Promise<T> {
  const done = await leaveToAsk();
  try {
    return await answered(ask());
  } finally {
    done();
  }
}

let lastTurn: Promise<unknown> = Promise.resolve();

/** A turn of the event loop for one piece of work: of everybody who waits for one, one gets it, and samples are taken between. */
export function turn(): Promise<unknown> {
  lastTurn = lastTurn.then(() => new Promise(setImmediate));
  return lastTurn;
}

/** A reader that takes nothing for this long is dropped. */
const DRAIN_SECONDS = 20;

/** Waits until a reader has taken what was written, or is gone. False: it took nothing and was dropped. */
export function drained(response: ServerResponse): Promise<boolean> {
  if (response.destroyed || !response.writableNeedDrain) return Promise.resolve(true);
  return new Promise((resolve) => {
    const done = (): void => settle(true);
    const settle = (taken: boolean): void => {
      clearTimeout(timer);
      response.off('drain', done);
      response.off('close', done);
      resolve(taken);
    };
    const timer = setTimeout(() => {
      settle(false);
      response.destroy();
    }, DRAIN_SECONDS * 1000);
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
