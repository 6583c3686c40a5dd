import { type RestClient, ServiceRefused, ServiceUnreachable } from '../../src/client/rest.ts';
import type { Alert } from '../../src/core/alert.ts';

/** Lines that are written at once, and written again after a kill in the middle at most. */
const PAGE = 500;

export interface ChangesPage {
  /** In the order in which the service recorded them. */
  readonly changes: readonly Alert[];
  /** The place after them. */
  readonly place: string;
  readonly more: boolean;
}

/** The service does not know the place: it is ahead of all that its database has, which is another one. */
export class PlaceUnknown extends Error {
  override readonly name = 'PlaceUnknown';
}

/** Changes of alerts recorded after a place. Throws PlaceUnknown, ServiceRefused or ServiceUnreachable. */
export async function changesAfter(rest: RestClient, place: string, signal: AbortSignal): Promise<ChangesPage> {
  const path = `/alerts?changes=true&after=${encodeURIComponent(place)}&limit=${PAGE}`;
  try {
    const { body, next, place: after } = await rest.page<{ data?: Alert[] } | null>(path, { signal });
    if (after === null || !Array.isArray(body?.data)) throw new ServiceUnreachable(`${rest.base}/alerts is not that of edge-health`);
    return { changes: body.data, place: after, more: next !== null };
  } catch (error) {
    if (error instanceof ServiceRefused && error.code === 'place_ahead') throw new PlaceUnknown(error.message);
    throw error;
  }
}
