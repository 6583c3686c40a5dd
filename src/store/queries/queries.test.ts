import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { STATUSES } from '../../core/alerts/alert.ts';
import { METRICS } from '../../core/metrics.ts';
import { type Aggregate, type AggregateQuery, type HistoryQuery, STEP_VALUES } from '../../core/ports.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time.ts';
import { endOfPage, queryAfter } from '../../http/handlers/history.ts';
import type { Archive } from '../database/archive.ts';
import { TestArchive } from '../testing/archive.ts';
import { type ExpectedAggregate, expectedAggregate, expectedHistory, expectedPercentile } from '../testing/oracle.ts';
import { type Row, series, toRows } from '../testing/rows.ts';
import { aggregate, history } from './queries.ts';

// Compares the archive, with some hours written, one open and some samples pending, with an oracle that has no hours. Both must agree for
// any samples and any query.

const NODE = 'a';
const START = Date.parse('2026-03-04T10:00:00Z');

const folder = temporaryFolder(t);
let databases = 0;

interface Scenario {
  readonly rows: readonly Row[];
  /** Numbers of rows that arrive late, and after how many later ones. */
  readonly late: readonly (readonly [row: number, by: number])[];
  /** Row numbers at which a segment ends; a commit or a restart follows some of them. */
  readonly cuts: readonly { readonly length: number; readonly after: 'nothing' | 'query' | 'commit' | 'restart' }[];
  readonly hertz: number;
  readonly idleMs: number;
}

const value = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 10_000 }).map((hundredths) => hundredths / 100) },
  { weight: 1, arbitrary: fc.integer({ min: -4000, max: 15_000 }).map((hundredths) => hundredths / 100) },
  { weight: 2, arbitrary: fc.constant(null) },
  { weight: 2, arbitrary: fc.constantFrom(50, 50.01, 0) },
);
const gap = fc.oneof(
  { weight: 30, arbitrary: fc.constant(1000) },
  { weight: 10, arbitrary: fc.integer({ min: 900, max: 1100 }) },
  { weight: 3, arbitrary: fc.constantFrom(0, 1, 3000, 3001, 7000) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 10 * MINUTE_MS }) },
  { weight: 1, arbitrary: fc.integer({ min: HOUR_MS / 4, max: 3 * HOUR_MS }) },
);
const rows: fc.Arbitrary<Row[]> = fc
  .tuple(
    fc.integer({ min: 0, max: HOUR_MS }),
    fc.array(fc.tuple(gap, fc.tuple(value, value, value, value), fc.constantFrom(...STATUSES)), {
      minLength: 1,
      maxLength: 250,
      size: 'max',
    }),
  )
  .map(([offset, list]) => {
    let at = START + offset;
    return list.map(([before, values, status]) => {
      at += before;
      return { timestampMs: at, values, status };
    });
  });
const scenario: fc.Arbitrary<Scenario> = fc.record({
  rows,
  late: fc.array(fc.tuple(fc.nat(250), fc.integer({ min: 1, max: 100 })), { maxLength: 3 }),
  cuts: fc.array(
    fc.record({
      length: fc.integer({ min: 1, max: 60 }),
      after: fc.constantFrom('nothing' as const, 'query' as const, 'commit' as const, 'commit' as const, 'restart' as const),
    }),
    { maxLength: 8 },
  ),
  hertz: fc.constantFrom(1, 1, 2, 0.1),
  idleMs: fc.constantFrom(1, 500, 30_000, 2 * HOUR_MS),
});

interface Played {
  readonly archive: Archive;
  readonly nowMs: number;
}

/** Rows in the order in which they arrive. Rows of one time keep their order, which is all that distinguishes them. */
function arrivals(rows: readonly Row[], late: Scenario['late']): readonly Row[] {
  const order = [...rows];
  for (const [at, by] of late) {
    const row = order[at];
    if (!row || rows.filter(({ timestampMs }) => timestampMs === row.timestampMs).length > 1) continue;
    order.splice(at, 1);
    order.splice(at + by, 0, row);
  }
  return order;
}

/** Runs the scenario with samples of another node in between. */
function withScenario({ rows, late, cuts, hertz, idleMs }: Scenario, use: (played: Played) => void): void {
  databases += 1;
  const opened = new TestArchive(join(folder, `${databases}.db`), START);
  try {
    opened.archive.setRate(NODE, hertz);
    const all = arrivals(rows, late);
    let done = 0;
    for (const { length, after } of [...cuts, { length: all.length, after: 'nothing' as const }]) {
      const next = all.slice(done, done + length);
      done += length;
      if (next.length === 0) break;
      opened.nowMs = Math.max(opened.nowMs, ...next.map(({ timestampMs }) => timestampMs));
      opened.add('other', series((next[0] as Row).timestampMs, 3, 400));
      opened.add(NODE, next, 17);
      if (after !== 'nothing') opened.commit();
      if (after === 'restart') opened.restart();
      if (after === 'query') aggregate(opened.archive, { node: NODE, fromMs: START, toMs: opened.nowMs, by: null }, opened.nowMs);
    }
    opened.nowMs += idleMs;
    use({ archive: opened.archive, nowMs: opened.nowMs });
  } finally {
    opened.close();
  }
}

/** Ranges around the samples: wide, narrow, aligned to hours or minutes, cut at a sample, before and after all of them. */
function ranges({ rows: all }: Scenario): fc.Arbitrary<{ fromMs: number; toMs: number }> {
  const first = (all[0] as Row).timestampMs;
  const last = (all.at(-1) as Row).timestampMs;
  const edge = fc.oneof(
    fc.integer({ min: first - 2 * HOUR_MS, max: last + 2 * HOUR_MS }),
    fc.constantFrom(...all.map(({ timestampMs }) => timestampMs)),
    fc.integer({ min: -2, max: 14 }).map((hours) => START + hours * HOUR_MS),
    fc.integer({ min: -5, max: 200 }).map((minutes) => START + minutes * MINUTE_MS),
  );
  return fc
    .tuple(edge, edge)
    .filter(([a, b]) => a !== b)
    .map(([a, b]) => ({ fromMs: Math.min(a, b), toMs: Math.max(a, b) }));
}

const withRanges = scenario.chain((one) =>
  fc.record({ scenario: fc.constant(one), ranges: fc.array(ranges(one), { minLength: 1, maxLength: 5 }) }),
);

/** Follows the pages as REST does: the next one begins after the last row's time. */
function allPages(archive: Archive, query: HistoryQuery): Row[] {
  const found: Row[] = [];
  for (let asked = query; asked.fromMs < asked.toMs; ) {
    const page = history(archive, asked);
    if (page.count > query.limit) throw new Error('a page beyond its limit');
    found.push(...toRows(page));
    if (!page.more) return found;
    asked = queryAfter(asked, endOfPage(page, asked));
  }
  return found;
}

function near(actual: number | null | undefined, expected: number | null, tolerance: number): boolean {
  if (actual === null || actual === undefined || expected === null) return actual === expected;
  return Math.abs(actual - expected) <= tolerance + 1e-9;
}

function sameRows(t: Test, found: readonly Row[], expected: readonly Row[], what: unknown, tolerance: number): void {
  const equal =
    found.length === expected.length &&
    found.every(({ timestampMs, status, values }, i) => {
      const other = expected[i] as Row;
      return (
        timestampMs === other.timestampMs &&
        status === other.status &&
        values.every((one, m) => near(one, other.values[m] ?? null, tolerance))
      );
    });
  if (!equal) t.same(found, expected, JSON.stringify(what));
}

t.test('history of any range, raw or in steps, in pages, agrees with the oracle', async (t) => {
  fc.assert(
    fc.property(
      withRanges,
      fc.array(
        fc.record({
          step: fc.constantFrom(null, 1, 7, 60, 300, 3600),
          order: fc.constantFrom('asc' as const, 'desc' as const),
          value: fc.constantFrom(...STEP_VALUES),
        }),
        { minLength: 1, maxLength: 4 },
      ),
      fc.oneof(fc.integer({ min: 12, max: 300 }), fc.integer({ min: 2, max: 12 })),
      ({ scenario: one, ranges: asked }, forms, limit) => {
        withScenario(one, ({ archive }) => {
          for (const range of asked) {
            for (const { step, ...form } of forms) {
              const query = { node: NODE, ...range, stepMs: step === null ? null : step * 1000, ...form, limit };
              // The mean of a tie may round either way: sums of floating-point numbers depend on their order.
              sameRows(t, allPages(archive, query), expectedHistory(one.rows, query), query, step === null ? 0 : 0.01);
            }
          }
        });
      },
    ),
    { numRuns: runs(30, 800), seed: SEED },
  );
  t.pass();
});

function differences(actual: Aggregate, expected: ExpectedAggregate): string[] {
  const wrong: string[] = [];
  const check = (what: string, fine: boolean, a: unknown, b: unknown): void => {
    if (!fine) wrong.push(`${what}: ${a} instead of ${b}`);
  };
  check('from', actual.from === expected.from, actual.from, expected.from);
  check('to', actual.to === expected.to, actual.to, expected.to);
  check('received', actual.samples_received === expected.received, actual.samples_received, expected.received);
  check('expected', actual.samples_expected === expected.expected, actual.samples_expected, expected.expected);
  const { longestGapSeconds } = expected;
  check('gap', near(actual.longest_gap_seconds, longestGapSeconds, 0.001), actual.longest_gap_seconds, longestGapSeconds);
  for (const status of STATUSES) {
    const [a, b] = [actual.status_seconds[status], expected.statusSeconds[status]];
    check(status, near(a, b, 0.001), a, b);
  }
  METRICS.forEach((metric, m) => {
    const { min, max, mean, stddev, p50, p95, p99, last } = actual.metrics[metric];
    const { sorted, last: lastExpected } = expected.values[m] as ExpectedAggregate['values'][number];
    const average = sorted.length === 0 ? null : sorted.reduce((a, b) => a + b, 0) / sorted.length;
    const deviation = average === null ? null : Math.sqrt(sorted.reduce((sum, one) => sum + (one - average) ** 2, 0) / sorted.length);
    check(`${metric} min`, min === (sorted[0] ?? null), min, sorted[0]);
    check(`${metric} max`, max === (sorted.at(-1) ?? null), max, sorted.at(-1));
    check(`${metric} last`, last === lastExpected, last, lastExpected);
    check(`${metric} mean`, near(mean, average, 1e-4), mean, average);
    check(`${metric} stddev`, near(stddev, deviation, 1e-3), stddev, deviation);
    for (const [quantile, actualValue] of [
      [0.5, p50],
      [0.95, p95],
      [0.99, p99],
    ] as const) {
      const exact = expectedPercentile(sorted, quantile);
      check(`${metric} p${quantile * 100}`, near(actualValue, exact, 0.1), actualValue, exact);
    }
  });
  return wrong;
}

t.test('aggregates of any range, whole or by minute, hour or day, agree with the oracle', async (t) => {
  fc.assert(
    fc.property(
      withRanges,
      fc.array(fc.constantFrom(null, 'minute' as const, 'hour' as const, 'day' as const), { minLength: 1, maxLength: 3 }),
      ({ scenario: one, ranges: asked }, forms) => {
        withScenario(one, ({ archive, nowMs }) => {
          for (const range of [...asked, { fromMs: START, toMs: START + 2 * HOUR_MS }]) {
            for (const by of forms) {
              const query: AggregateQuery = { node: NODE, ...range, by };
              const found = aggregate(archive, query, nowMs);
              const expected = expectedAggregate(one.rows, query, nowMs, one.hertz);
              if (found.length !== expected.length) t.equal(found.length, expected.length, JSON.stringify(query));
              found.forEach((bucket, i) => {
                const wrong = differences(bucket, expected[i] as ExpectedAggregate);
                if (wrong.length > 0) t.fail(`${JSON.stringify(query)} ${bucket.from}: ${wrong.join('; ')}`);
              });
            }
          }
        });
        return t.passing();
      },
    ),
    { numRuns: runs(30, 800), seed: SEED },
  );
  t.pass();
});

t.test('the first rate of a node also applies to samples that arrived before it', async (t) => {
  const opened = new TestArchive(join(folder, 'rate.db'), START);
  t.teardown(() => opened.close());
  const okSeconds = (): number | undefined =>
    aggregate(opened.archive, { node: NODE, fromMs: START, toMs: START + HOUR_MS, by: null }, START + 2000)[0]?.status_seconds.OK;
  opened.add(NODE, series(START, 10, 100));
  t.equal(okSeconds(), 10, 'at 1 Hz until it is known');
  opened.archive.setRate(NODE, 10, START + 1000);
  opened.add(NODE, series(START + 1000, 10, 100));
  t.equal(okSeconds(), 2);
});

t.test('an unknown node has no data', async (t) => {
  withScenario({ rows: series(START, 10), late: [], cuts: [], hertz: 1, idleMs: 1 }, ({ archive, nowMs }) => {
    const range = { node: 'nobody', fromMs: START, toMs: START + DAY_MS };
    t.equal(history(archive, { ...range, stepMs: null, order: 'asc', limit: 10 }).count, 0);
    t.equal(history(archive, { ...range, stepMs: MINUTE_MS, order: 'asc', limit: 10 }).count, 0);
    const [whole] = aggregate(archive, { ...range, by: null }, nowMs);
    t.match(whole, {
      samples_received: 0,
      samples_expected: 0,
      longest_gap_seconds: 0,
      metrics: { cpu_percent: { mean: null, p50: null } },
    });
  });
});

t.test('rows of one time are returned once each, also across a page boundary', async (t) => {
  const busy = [0, 1, 1, 1, 2, 3, 3].map((ms, i) => ({ ...(series(START + ms, 1)[0] as Row), values: [i, i, i, i] }));
  withScenario({ rows: busy, late: [], cuts: [{ length: 3, after: 'commit' }], hertz: 1, idleMs: 1 }, ({ archive }) => {
    for (const order of ['asc', 'desc'] as const) {
      for (const limit of [1, 2, 3, 7]) {
        const query = { node: NODE, fromMs: START, toMs: START + 10, stepMs: null, order, limit };
        t.same(allPages(archive, query), expectedHistory(busy, query), `${order}, in pages of ${limit}`);
      }
    }
  });
});

t.test('an average is the same in both orders, although sums of doubles are not', async (t) => {
  // (92.69 + 76.23 + 93.13 + 62.29) / 4 is slightly above 81.085 as a double, but not in reverse order.
  const rows = [92.69, 76.23, 93.13, 62.29].map((value, i) => ({
    ...(series(START + 100 * i, 1)[0] as Row),
    values: [value, value, value, value],
  }));
  withScenario({ rows, late: [], cuts: [], hertz: 10, idleMs: 1 }, ({ archive }) => {
    const inOrder = (order: 'asc' | 'desc') =>
      allPages(archive, { node: NODE, fromMs: START, toMs: START + 1000, stepMs: 1000, order, limit: 10 });
    t.same(inOrder('asc'), inOrder('desc'));
    t.same(inOrder('asc')[0]?.values, [81.09, 81.09, 81.09, 81.09]);
  });
});
