import type { StatusDocument } from '../api/schema.ts';
import { type Handler, sendBody } from '../context.ts';

/** GET /status: the summary of everything. */
export function status(restCounts: () => StatusDocument['rest']): Handler {
  return async (context) => {
    const document: StatusDocument = { ...(await context.view.status()), rest: restCounts() };
    sendBody(context, 'application/json', JSON.stringify(document));
  };
}
