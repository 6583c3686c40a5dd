import { alertListSchema } from '../../src/client/documents.ts';
import { type RestClient, ServiceRefused, ServiceUnreachable } from '../../src/client/rest.ts';
import type { Alert } from '../../src/core/alerts/alert.ts';

/** The cursor before all records of the database. */
export const BEGINNING = '0';
/** Lines per write, and the most that can be repeated after SIGKILL. */
const PAGE = 500;

export interface ChangesPage {
  /** Changes in the order in which the service recorded them. */
  readonly changes: readonly Alert[];
  /** The cursor after them. */
  readonly cursor: string;
  readonly more: boolean;
}

/** The cursor is ahead of all records in the service's database, so it comes from another database. */
export class CursorUnknown extends Error {
  override readonly name = 'CursorUnknown';
}

/** The alert changes recorded after a cursor. Throws CursorUnknown, ServiceRefused or ServiceUnreachable. */
export async function changesAfter(rest: RestClient, cursor: string, signal: AbortSignal): Promise<ChangesPage> {
  const path = `/alerts?changes=true&after=${encodeURIComponent(cursor)}&limit=${PAGE}`;
  try {
    const { body, next, cursor: after } = await rest.page<{ data: Alert[] }>(path, { signal, schema: alertListSchema });
    if (after === null) throw new ServiceUnreachable(`${rest.base}/alerts is not that of edge-health`);
    return { changes: body.data, cursor: after, more: next !== null };
  } catch (error) {
    if (error instanceof ServiceRefused && error.code === 'cursor_ahead') throw new CursorUnknown(error.message);
    throw error;
  }
}
