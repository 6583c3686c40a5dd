import { type RestClient, ServiceRefused, ServiceUnreachable } from '../../src/client/rest.ts';
import { isoUtc } from '../../src/core/time.ts';
import { type Scanner, StampCounter } from './coverage.ts';

/** The greatest page of the service: at 1 Hz an hour fits into one. */
const LIMIT = 10_000;
const TIMEOUT_SECONDS = 30;
const LINE_END = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/** `2026-03-04T05:06:07.089Z` */
const STAMP_LENGTH = 24;
/** More than any line of a node with a name of the greatest length. */
const MAX_LINE_BYTES = 4096;
const HEAD = Buffer.from('cpu_percent,');

/**
 * Scans the samples of /health/history, including those of the last minute that are still in memory. As CSV: half the size of JSON, and
 * only the end of each row is parsed. Null: the service or its store does not respond now.
 */
export function storedScanner({ node, rest }: { readonly rest: RestClient; readonly node: string }): Scanner {
  return async (fromMs, toMs) => {
    const count = new StampCounter('stored', fromMs, toMs);
    if (fromMs >= toMs) return count.result();
    const query = { node, from: isoUtc(fromMs), to: isoUtc(toMs), order: 'asc', limit: String(LIMIT) };
    let path: string | null = `/health/history?${new URLSearchParams(query)}`;
    try {
      while (path !== null) path = await readPage(rest, path, count);
    } catch (error) {
      if (error instanceof ServiceUnreachable || error instanceof ServiceRefused) return null;
      throw error;
    }
    return count.result();
  };
}

/** Returns the path of the next page; null: it was the last. Throws ServiceUnreachable if the response is incomplete. */
async function readPage(rest: RestClient, path: string, count: StampCounter): Promise<string | null> {
  const response = await rest.stream(path, { headers: { Accept: 'text/csv' }, timeoutSeconds: TIMEOUT_SECONDS });
  const rows = new StampRows((ms) => count.add(ms));
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) rows.take(chunk);
    rows.end();
  } catch (error) {
    throw new ServiceUnreachable(`${rest.base}/health/history: ${(error as Error).message}`, { cause: error });
  }
  return /<([^>]+)>;\s*rel="next"/.exec(String(response.headers['link'] ?? ''))?.[1] ?? null;
}

/** Parses the time stamps, the last cells, of a CSV file in pieces of any size. Throws if it is another kind of file. */
export class StampRows {
  readonly #onStamp: (ms: number) => void;
  #rest: Buffer = Buffer.alloc(0);
  #hasHead = false;

  constructor(onStamp: (ms: number) => void) {
    this.#onStamp = onStamp;
  }

  take(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let from = 0;
    for (let end = bytes.indexOf(LINE_END); end >= 0; end = bytes.indexOf(LINE_END, from)) {
      this.#row(bytes, from, bytes[end - 1] === CARRIAGE_RETURN ? end - 1 : end);
      from = end + 1;
    }
    this.#rest = bytes.subarray(from);
    if (this.#rest.length > MAX_LINE_BYTES) throw new Error('a row without an end');
  }

  end(): void {
    if (!this.#hasHead || this.#rest.length > 0) throw new Error('the answer was cut off');
  }

  #row(bytes: Buffer, from: number, to: number): void {
    if (!this.#hasHead) {
      if (bytes.subarray(from, from + HEAD.length).compare(HEAD) !== 0) throw new Error('the answer is no CSV of health statuses');
      this.#hasHead = true;
      return;
    }
    const stamp = bytes.toString('latin1', Math.max(from, to - STAMP_LENGTH), to);
    // Date.parse alone accepts too many formats.
    const ms = stamp[10] === 'T' && stamp.endsWith('Z') ? Date.parse(stamp) : Number.NaN;
    if (Number.isNaN(ms)) throw new Error(`no time stamp ends the row "${bytes.toString('utf8', from, to).slice(0, 200)}"`);
    this.#onStamp(ms);
  }
}
