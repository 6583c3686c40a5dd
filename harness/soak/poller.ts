import type { RestClient } from '../../src/client/rest.ts';
import { quantile } from '../../src/core/quantile.ts';
import { DAY_MS, isoUtc } from '../../src/core/time.ts';
import type { PathLatency } from './findings.ts';

interface Asked {
  /** For the report. */
  readonly title: string;
  readonly path: () => string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the body is what it should be. */
  readonly isGood: (body: string) => boolean;
}

const isJson = (body: string): boolean => {
  JSON.parse(body);
  return true;
};
const json = (path: string): Asked => ({ title: path, path: () => path, isGood: isJson });
/** About the last stretch: at 200 Hz a minute has as many samples as three hours at 1 Hz. */
const lately = (title: string, seconds: number, path: string): Asked => ({
  title: `${path} of the last ${title}`,
  path: () => `${path}${path.includes('?') ? '&' : '?'}from=${isoUtc(Date.now() - seconds * 1000)}`,
  isGood: isJson,
});

/** At 200 Hz an answer may be of any size. */
const WHOLE = { maxBytes: Number.POSITIVE_INFINITY };

/** Every endpoint but /events, which is open all the time, and /snapshot, which writes the whole database once more. */
const USUAL: readonly Asked[] = [
  json('/health'),
  json('/health/history?limit=200'),
  lately('minute', 60, '/health/history?step=1s'),
  lately('minute', 60, '/health/aggregate'),
  {
    title: '/health/history?limit=2000 as CSV',
    path: () => '/health/history?limit=2000',
    headers: { Accept: 'text/csv' },
    isGood: (body) => body.startsWith('cpu_percent,'),
  },
  json('/alerts'),
  json('/alerts?resolved=false'),
  json('/status'),
  { title: '/metrics', path: () => '/metrics', isGood: (body) => body.includes('# TYPE ') },
  json('/openapi.json'),
  { title: '/', path: () => '/', isGood: (body) => /<!doctype html>/i.test(body) },
];
/** About all that there is, up to a million samples: rarely, as somebody who looks at a week's chart does. */
const LARGE: readonly Asked[] = [
  json('/health/aggregate?hours=1'),
  json('/health/history?hours=1&step=10s'),
  json('/health/aggregate?hours=168&by=day'),
  json('/health/history?hours=168&step=1h'),
];
const EVERY_MS = 1000;
/** Every so many turns a large one instead. */
const LARGE_EVERY = 30;
const SETTLING = { times: 100, days: 8 };
const MOST_FAILURES = 20;

/** Asks one endpoint a second, in turn, each over a connection of its own. */
export class Poller {
  readonly #rest: RestClient;
  readonly #latencies = new Map<string, number[]>([...USUAL, ...LARGE].map(({ title }) => [title, []]));
  readonly #failed = new Map<string, number>();
  readonly #failures: string[] = [];
  #timer: NodeJS.Timeout | null = null;
  #turn = 0;
  #asking: Promise<void> = Promise.resolve();

  constructor(rest: RestClient) {
    this.#rest = rest;
  }

  /**
   * Asks much at once, before anything is counted: what answering leaves in memory (an allocator keeps what it once had) is there then
   * from the begin, as it is after hours of usual questions.
   */
  async settle(): Promise<void> {
    const path = `/health/history?order=asc&limit=10000&from=${isoUtc(Date.now() - SETTLING.days * DAY_MS)}`;
    for (let i = 0; i < SETTLING.times; i += 1) await this.#rest.text(path, { ...WHOLE, headers: { Accept: 'text/csv' } });
    for (const { headers, path } of [...LARGE, ...LARGE]) await this.#rest.text(path(), { ...WHOLE, ...(headers ? { headers } : {}) });
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#turn += 1;
      const isLarge = this.#turn % LARGE_EVERY === 0;
      const list = isLarge ? LARGE : USUAL;
      this.#asking = this.#ask(list[(isLarge ? this.#turn / LARGE_EVERY : this.#turn) % list.length] as Asked);
    }, EVERY_MS);
  }

  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    await this.#asking;
  }

  /** What went wrong, the first ones. */
  get failures(): readonly string[] {
    return this.#failures;
  }

  results(): PathLatency[] {
    return [...USUAL, ...LARGE].map(({ title: path }) => {
      const latencies = this.#latencies.get(path) ?? [];
      const failed = this.#failed.get(path) ?? 0;
      const at = (share: number): number | null => (latencies.length === 0 ? null : quantile(latencies, share));
      return { path, asked: latencies.length + failed, failed, medianMs: at(0.5), p99Ms: at(0.99), mostMs: at(1) };
    });
  }

  async #ask({ headers, isGood, path, title }: Asked): Promise<void> {
    const begun = performance.now();
    try {
      const body = await this.#rest.text(path(), { ...WHOLE, ...(headers ? { headers } : {}) });
      const ms = performance.now() - begun;
      if (!isGood(body)) throw new Error(`${title} answers with ${body.slice(0, 100)}`);
      this.#latencies.get(title)?.push(ms);
    } catch (error) {
      this.#failed.set(title, (this.#failed.get(title) ?? 0) + 1);
      if (this.#failures.length < MOST_FAILURES) this.#failures.push((error as Error).message);
    }
  }
}
