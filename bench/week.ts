/** Queries over a week of samples at 1 Hz, against plain SQL over a table with one row per sample. */
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { METRICS } from '../src/core/metrics.ts';
import { DAY_MS, HOUR_MS } from '../src/core/time/time.ts';
import type { AggregateDocument } from '../src/http/api/schema.ts';
import { endProcess } from '../testkit/cleanup.ts';
import { fillDataFolder, fillPlainTable } from '../testkit/weeks/week-store.ts';
import { type Answer, fetchJson, fetchTimed, keepAliveAgent } from './support/http.ts';
import type { Outcome, Row } from './support/outcome.ts';
import { type PlainAggregate, plainAggregate, plainMinutes, plainSamples } from './support/plain-queries.ts';
import { benchmark, type Context } from './support/program.ts';
import { type Server, startService } from './support/service-process.ts';
import { median, worst } from './support/statistics.ts';

const WEEK_HOURS = 168;
const PAGE_ROWS = 10_000;
const REQUESTS = 20;
const WARM_UPS = 3;
/** Number of days for the measurement of bytes written per day: long enough that each day removes the oldest day of samples. */
const DAYS_UNTIL_STEADY = 10;
/**
 * Seconds of samples that may be missing at the end, because no service ran between filling the store and the first
 * start, or between two starts.
 */
const PAUSES_SECONDS = 300;

interface Query {
  readonly figure: string;
  readonly atMost: number;
  /** Runs the query once. Returns the milliseconds of all its requests, and throws if a response is implausible. */
  readonly run: (get: (path: string) => Promise<Answer>) => Promise<number>;
  readonly runPlain: (db: DatabaseSync, fromMs: number, toMs: number) => void;
  readonly hours: number;
}

function expectCount(what: string, count: number, expected: number, tolerance: number): void {
  if (count > expected || count < expected - tolerance) throw new Error(`${what}: ${count} instead of ${expected}`);
}

const QUERIES: readonly Query[] = [
  {
    figure: '/health/aggregate over a week',
    atMost: 50,
    hours: WEEK_HOURS,
    run: async (get) => {
      const { body, milliseconds } = await get(`/health/aggregate?hours=${WEEK_HOURS}`);
      expectCount('samples_received', (JSON.parse(body) as AggregateDocument).samples_received, WEEK_HOURS * 3600 + 1, PAUSES_SECONDS);
      return milliseconds;
    },
    runPlain: plainAggregate,
  },
  {
    figure: '/health/history over a week, minute means, both pages',
    atMost: 50,
    hours: WEEK_HOURS,
    run: async (get) => {
      const first = await get(`/health/history?hours=${WEEK_HOURS}&step=1m`);
      const next = /<([^>]+)>; *rel="next"/.exec(String(first.headers['link']))?.[1];
      if (next === undefined) throw new Error('no second page');
      const second = await get(next);
      const counts = [first, second].map(({ body }) => (JSON.parse(body) as { count: number }).count);
      expectCount('rows of the first page', counts[0] as number, PAGE_ROWS, 0);
      expectCount('rows of the second page', counts[1] as number, WEEK_HOURS * 60 + 1 - PAGE_ROWS, PAUSES_SECONDS / 60);
      return first.milliseconds + second.milliseconds;
    },
    runPlain: (db, fromMs, toMs) => {
      const { rows } = plainMinutes(db, fromMs, toMs, PAGE_ROWS);
      expectCount('minutes by SQL', rows, WEEK_HOURS * 60 + 1, 10);
    },
  },
  {
    figure: '/health/history of an hour, every sample',
    atMost: 20,
    hours: 1,
    run: async (get) => {
      const { body, milliseconds } = await get('/health/history?hours=1');
      expectCount('samples of an hour', (JSON.parse(body) as { count: number }).count, 3601, PAUSES_SECONDS);
      return milliseconds;
    },
    runPlain: (db, fromMs, toMs) => expectCount('samples by SQL', plainSamples(db, fromMs, toMs).rows, 3600, 2),
  },
];

interface Times {
  readonly cold: number;
  readonly warm: readonly number[];
}

async function measureTimes(run: () => Promise<number>): Promise<Times> {
  const cold = await run();
  for (let n = 0; n < WARM_UPS; n += 1) await run();
  const warm: number[] = [];
  for (let n = 0; n < REQUESTS; n += 1) warm.push(await run());
  return { cold, warm };
}

/** Measures one query on a service that was just started on the folder. */
async function measureService({ cleanup }: Context, dataPath: string, { run }: Query): Promise<Times> {
  const service = await startService(cleanup, { dataPath });
  const agent = keepAliveAgent();
  const get = async (path: string): Promise<Answer> => {
    const answer = await fetchTimed(service.url + path, agent);
    if (answer.status !== 200) throw new Error(`${path} returned ${answer.status}: ${answer.body.slice(0, 300)}`);
    return answer;
  };
  const found = await measureTimes(() => run(get));
  agent.destroy();
  await endProcess(service.child);
  return found;
}

/** Compares the statistics of a fixed range with those of SQL over the same samples. */
async function compareAnswers(service: Server, db: DatabaseSync, fromMs: number, toMs: number): Promise<void> {
  const query = `from=${new Date(fromMs).toISOString()}&to=${new Date(toMs).toISOString()}`;
  const edgeHealth = await fetchJson<AggregateDocument>(`${service.url}/health/aggregate?${query}`);
  const plain = JSON.parse(plainAggregate(db, fromMs, toMs)) as PlainAggregate;
  const compare = (what: string, a: number | null | undefined, b: number | undefined, tolerance: number): void => {
    if (a == null || b === undefined || Math.abs(a - b) > tolerance) throw new Error(`${what}: ${a}, by SQL ${b}`);
  };
  compare('samples_received', edgeHealth.samples_received, plain.samples_received, 0);
  for (const metric of METRICS) {
    const [a, b] = [edgeHealth.metrics[metric], plain.metrics[metric]];
    for (const key of ['min', 'max', 'last'] as const) compare(`${metric} ${key}`, a[key], b?.[key], 0);
    for (const key of ['mean', 'stddev'] as const) compare(`${metric} ${key}`, a[key], b?.[key], 0.001);
    for (const key of ['p50', 'p95', 'p99'] as const) compare(`${metric} ${key}`, a[key], b?.[key], 0.1);
  }
}

function rowsOf({ figure, atMost }: Query, edgeHealth: Times, plainSql: Times): Row[] {
  const name = 'SQL, one row per sample';
  const row = (what: string, a: number, b: number): Row => ({ figure: what, unit: 'ms', value: a, baseline: { name, value: b } });
  return [
    { ...row(`${figure}: median of ${REQUESTS}`, median(edgeHealth.warm), median(plainSql.warm)), atMost },
    row('the same, worst', worst(edgeHealth.warm), worst(plainSql.warm)),
    row('the same, first after a start', edgeHealth.cold, plainSql.cold),
  ];
}

await benchmark('week', async (context): Promise<Outcome> => {
  const { cleanup, progress } = context;
  const folder = cleanup.folderOnDisk();
  const dataPath = join(folder, 'data');
  // An hour more than a week, so that the range of a query starts within an hour, as in production.
  const beginMs = Date.now() - (WEEK_HOURS + 1) * HOUR_MS;
  progress('filling a plain table');
  const endMs = Date.now();
  const { db } = fillPlainTable(join(folder, 'plain.db'), beginMs, endMs);
  progress('filling a store');
  const store = fillDataFolder(dataPath, beginMs);

  const service = await startService(cleanup, { dataPath });
  progress('comparing the responses');
  await compareAnswers(service, db, endMs - WEEK_HOURS * HOUR_MS + 1234, endMs - 5678);
  await endProcess(service.child);

  const rows: Row[] = [];
  for (const query of QUERIES) {
    progress(query.figure);
    const edgeHealth = await measureService(context, dataPath, query);
    const plainSql = await measureTimes(async () => {
      const begun = performance.now();
      query.runPlain(db, endMs - query.hours * HOUR_MS, endMs);
      return performance.now() - begun;
    });
    rows.push(...rowsOf(query, edgeHealth, plainSql));
  }
  db.close();
  progress('bytes written per day');
  const steadyMs = Date.now() - DAYS_UNTIL_STEADY * DAY_MS;
  const steady = fillDataFolder(join(folder, 'steady'), steadyMs);
  const plain = fillPlainTable(join(folder, 'plain-steady.db'), steadyMs, Date.now());
  plain.db.close();
  const written: Row = {
    figure: 'written to disk per day, counted',
    unit: 'MB',
    value: steady.lastDayBytes / 1e6,
    baseline: { name: 'SQLite, one row per sample', value: plain.filled.lastDayBytes / 1e6 },
    atMost: 20,
  };
  return {
    rows: [...rows, written],
    notes: [
      `${store.samples.toLocaleString('en-US')} synthetic samples, one per second up to now, written by the store's own code in batches as in production; then a real service on that folder and a client on the same machine over a keep-alive connection, from the request to the last byte. Each query gets a service that has just started; its first response has a row of its own, then ${WARM_UPS} warm-up requests and ${REQUESTS} measured ones.`,
      'The counts of every response were checked, and the statistics of a fixed range were compared with those of SQL over the same samples.',
      'The baseline is SQL in the process of the benchmark, without HTTP, up to the JSON text of the same response: one table with the time as its primary key. Both database files were in the page cache.',
      `Written per day: write_bytes of the process over the last of ${DAYS_UNTIL_STEADY} days, when the oldest samples are removed as fast as new ones are added: a commit with a full sync each minute, 1,440 in all, and the hourly work. The baseline: the same samples as rows of one table, in the same commits, with the same retention.`,
    ],
  };
});
