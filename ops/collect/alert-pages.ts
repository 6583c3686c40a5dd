import { text } from 'node:stream/consumers';
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
    const response = await rest.stream(path, { signal });
    const next = response.headers['last-event-id'];
    const body = await bodyOf(rest, response);
    if (typeof next !== 'string' || !Array.isArray(body?.data))
      throw new ServiceUnreachable(`${rest.base}/alerts is not that of edge-health`);
    return { changes: body.data, place: next, more: /rel="next"/.test(String(response.headers['link'] ?? '')) };
  } catch (error) {
    if (error instanceof ServiceRefused && error.code === 'place_ahead') throw new PlaceUnknown(error.message);
    throw error;
  }
}

async function bodyOf(rest: RestClient, response: NodeJS.ReadableStream): Promise<{ data?: Alert[] } | null> {
  try {
    return JSON.parse(await text(response)) as { data?: Alert[] } | null;
  } catch (error) {
    throw new ServiceUnreachable(`${rest.base}/alerts: ${(error as Error).message}`, { cause: error });
  }
}
