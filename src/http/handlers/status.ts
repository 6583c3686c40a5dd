import type { StatusDocument } from '../api/schema.ts';
import { type Handler, sendBody } from '../context.ts';
import { RenderCache } from '../render-cache.ts';
import type { ServiceView } from '../view.ts';

/** GET /status: the state of this service, its nodes and its machine in one document. */
export function status(view: ServiceView, restCounts: () => StatusDocument['rest']): Handler {
  const rendered = new RenderCache(async () => {
    const document: StatusDocument = { ...(await view.status()), rest: restCounts() };
    return JSON.stringify(document);
  });
  return async (context) => sendBody(context, 'application/json', await rendered.get());
}
