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
export function sendBody(context: Context, contentType: string, body: string | Buffer, headers: Readonly<Record<string, string>> = {}): void {
  const { request, response } = context;
  response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body), 'Cache-Control': 'no-store', ...headers });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** As sendBody, for what a client may keep and ask about again; answers 304 when it has this very version. */
export function sendTagged(context: Context, contentType: string, body: string | Buffer, tag: string): void {
  const { request, response } = context;
  const known = request.headers['if-none-match'];
  const matches = known?.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === tag.replace(/^W\//, '') || candidate.trim() === '*');
  if (matches) {
    response.writeHead(304, { ETag: tag, 'Cache-Control': 'no-cache' });
    response.end();
    return;
  }
  sendBody(context, contentType, body, { ETag: tag, 'Cache-Control': 'no-cache' });
}

/** The node that was asked for, this machine's by default; one that was never seen is a 404. */
export function nodeOf({ query, view }: Context): string {
  const node = (query['node'] as string | undefined) ?? view.localNode;
  if (!view.nodes().includes(node)) {
    throw new Problem('unknown_node', `no node "${node.slice(0, 60)}" was ever seen; known: ${view.nodes().join(', ')}`, { parameter: 'node' });
  }
  return node;
}

/** Waits for the store; its failure is a 503, not an error of ours. */
export async function fromStore<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw new Problem('storage_unavailable', `the store cannot answer: ${(error as Error).message}`);
  }
}

/** `Link: <…>; rel="next"` with the same query, another cursor, and the range fixed so that pages do not shift with the clock. */
export function nextLink({ path, request }: Context, cursor: string, range: TimeRange | null): string {
  const search = new URLSearchParams((request.url ?? '').split('?')[1] ?? '');
  if (range) {
    search.delete('hours');
    search.set('from', isoUtc(range.fromMs));
    search.set('to', isoUtc(range.toMs));
  }
  search.set('cursor', cursor);
  return `<${path}?${search}>; rel="next"`;
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
