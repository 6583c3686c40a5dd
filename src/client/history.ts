import { isoUtc } from '../core/time/time.ts';
import { type RestClient, ServiceUnreachable } from './rest.ts';

/** The maximum page size of the service; an hour at 1 Hz fits into one page. */
const PAGE_ROWS = 10_000;
const TIMEOUT_SECONDS = 30;

export interface StoredRange {
  readonly node: string;
  readonly fromMs: number;
  /** Exclusive. */
  readonly toMs: number;
  readonly signal?: AbortSignal;
}

/**
 * The times of the samples of /health/history, including those that are still in memory; milliseconds since the epoch. They are requested
 * as CSV, which costs half as much as JSON; the time is the last cell. Throws ServiceRefused, or ServiceUnreachable also if a page is
 * incomplete.
 */
export async function* storedTimes(rest: RestClient, { fromMs, node, signal, toMs }: StoredRange): AsyncGenerator<number> {
  if (fromMs >= toMs) return;
  const query = { node, from: isoUtc(fromMs), to: isoUtc(toMs), order: 'asc', limit: String(PAGE_ROWS) };
  const options = { headers: { Accept: 'text/csv' }, timeoutSeconds: TIMEOUT_SECONDS, ...(signal ? { signal } : {}) };
  for (let path: string | null = `/health/history?${new URLSearchParams(query)}`; path !== null; ) {
    const { body, next } = await rest.textPage(path, options);
    const lines = body.split('\r\n');
    if (!lines[0]?.startsWith('cpu_percent,') || lines.pop() !== '')
      throw new ServiceUnreachable(`${rest.base}/health/history: the response was cut off, or is not CSV of health statuses`);
    for (const line of lines.slice(1)) {
      const time = line.slice(line.lastIndexOf(',') + 1);
      const ms = time.endsWith('Z') ? Date.parse(time) : Number.NaN; // Date.parse alone accepts numbers.
      if (Number.isNaN(ms)) throw new ServiceUnreachable(`${rest.base}/health/history: no time stamp ends the row "${line.slice(0, 200)}"`);
      if (ms >= fromMs && ms < toMs) yield ms;
    }
    path = next;
  }
}
