import { type Handler, nodeOf } from '../context.ts';
import type { EventHub, EventKind } from '../events.ts';

/** GET /events: server-sent events, resumed by Last-Event-ID. */
export function events(hub: EventHub): Handler {
  return async (context) => {
    const { query, request, response } = context;
    const filter = {
      kinds: (query['events'] as EventKind[] | undefined) ?? (['health', 'alert', 'shutdown'] as const),
      node: query['node'] === undefined ? null : nodeOf(context),
    };
    if (request.method === 'HEAD') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-store' });
      response.end();
      return;
    }
    const last = request.headers['last-event-id'];
    await hub.open(context, filter, typeof last === 'string' && last !== '' ? last : null);
  };
}
