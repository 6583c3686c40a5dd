import type { RestClient } from '../../src/client/rest.ts';
import { quantile } from '../../src/core/statistics/quantile.ts';
import { DAY_MS, isoUtc } from '../../src/core/time/time.ts';

export interface EndpointResult {
  readonly path: string;
  readonly requests: number;
  readonly failed: number;
  /** Milliseconds from the request to the last byte of the response. */
  readonly medianMs: number | null;
  readonly p99Ms: number | null;
  readonly maxMs: number | null;
}

interface Endpoint {
  /** Title in the report. */
  readonly title: string;
  readonly path: () => string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly isValid: (body: string) => boolean;
}

const isJson = (body: string): boolean => {
  JSON.parse(body);
  return true;
};
const json = (path: string): Endpoint => ({ title: path, path: () => path, isValid: isJson });
/** At 200 Hz a minute has as many samples as three hours at 1 Hz. */
const latest = (title: string, seconds: number, path: string): Endpoint => ({
  title: `${path} of the last ${title}`,
  path: () => `${path}${path.includes('?') ? '&' : '?'}from=${isoUtc(Date.now() - seconds * 1000)}`,
  isValid: isJson,
});

/** At 200 Hz a response may be of any size. */
const ANY_SIZE = { maxBytes: Number.POSITIVE_INFINITY };

/** Every endpoint except /events, to which the harness subscribes, and /snapshot, which writes the whole database once more. */
const USUAL: readonly Endpoint[] = [
  json('/health'),
  json('/health/history?limit=200'),
  latest('minute', 60, '/health/history?step=1s'),
  latest('minute', 60, '/health/aggregate'),
  {
    title: '/health/history?limit=2000 as CSV',
    path: () => '/health/history?limit=2000',
    headers: { Accept: 'text/csv' },
    isValid: (body) => body.startsWith('cpu_percent,'),
  },
  json('/alerts'),
  json('/alerts?resolved=false'),
  json('/status'),
  { title: '/metrics', path: () => '/metrics', isValid: (body) => body.includes('# TYPE ') },
  json('/openapi.json'),
  { title: '/', path: () => '/', isValid: (body) => /<!doctype html>/i.test(body) },
];
/** Requests of up to a million samples, as rare as a view of the chart of a week. */
const LARGE: readonly Endpoint[] = [
  json('/health/aggregate?hours=1'),
  json('/health/history?hours=1&step=10s'),
  json('/health/aggregate?hours=168&by=day'),
  json('/health/history?hours=168&step=1h'),
];
const EVERY_MS = 1000;
/** Every thirtieth request is a large one. */
const LARGE_EVERY = 30;
const WARM_UP = { pages: 100, days: 8 };
const MAX_FAILURES = 20;

/** Makes one request a second, to each endpoint in turn. */
export class RequestLoad {
  /** The first failures, for display. */
  readonly failures: string[] = [];
  readonly #rest: RestClient;
  readonly #latencies = new Map<string, number[]>([...USUAL, ...LARGE].map(({ title }) => [title, []]));
  readonly #failed = new Map<string, number>();
  #timer: NodeJS.Timeout | null = null;
  #count = 0;
  #current: Promise<void> = Promise.resolve();

  constructor(rest: RestClient) {
    this.#rest = rest;
  }

  /**
   * Requests a million samples. An allocator keeps the memory of large responses, so this makes it grow before the
   * run instead of during it.
   */
  async warmUp(): Promise<void> {
    const path = `/health/history?order=asc&limit=10000&from=${isoUtc(Date.now() - WARM_UP.days * DAY_MS)}`;
    for (let i = 0; i < WARM_UP.pages; i += 1) await this.#rest.text(path, { ...ANY_SIZE, headers: { Accept: 'text/csv' } });
    for (const endpoint of [...LARGE, ...LARGE]) await this.#rest.text(endpoint.path(), ANY_SIZE);
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#count += 1;
      const isLarge = this.#count % LARGE_EVERY === 0;
      const list = isLarge ? LARGE : USUAL;
      this.#current = this.#request(list[(isLarge ? this.#count / LARGE_EVERY : this.#count) % list.length] as Endpoint);
    }, EVERY_MS);
  }

  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    await this.#current;
  }

  results(): EndpointResult[] {
    return [...USUAL, ...LARGE].map(({ title: path }) => {
      const latencies = this.#latencies.get(path) ?? [];
      const failed = this.#failed.get(path) ?? 0;
      const at = (share: number): number | null => (latencies.length === 0 ? null : quantile(latencies, share));
      return { path, requests: latencies.length + failed, failed, medianMs: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
    });
  }

  async #request({ headers = {}, isValid, path, title }: Endpoint): Promise<void> {
    const begun = performance.now();
    try {
      const body = await this.#rest.text(path(), { ...ANY_SIZE, headers });
      const ms = performance.now() - begun;
      if (!isValid(body)) throw new Error(`unexpected response: ${body.slice(0, 100)}`);
      this.#latencies.get(title)?.push(ms);
    } catch (error) {
      this.#failed.set(title, (this.#failed.get(title) ?? 0) + 1);
      if (this.failures.length < MAX_FAILURES) this.failures.push(`${title}: ${(error as Error).message}`);
    }
  }
}
