import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time.ts';
import { standInDatabase } from '../database/database.ts';
import { row, series, toColumns } from '../testing/rows.ts';
import { RawTable } from './raw-table.ts';

// Rows are stored in order of arrival and searched by time.

const NODE = 7;
const START = 1_790_000_000_000;

interface Part {
  readonly segment: number;
  readonly nodeId: number;
  readonly times: readonly number[];
  readonly restarts: boolean;
  readonly rollsBack: boolean;
}

/** What two nodes send while their clocks are wrong or set, also within a segment. */
const arrivals: fc.Arbitrary<Part[]> = fc
  .array(
    fc.record({
      pause: fc.constantFrom(1, MINUTE_MS, MINUTE_MS, MINUTE_MS, HOUR_MS, 3 * DAY_MS),
      nodeId: fc.constantFrom(NODE, NODE, NODE + 1),
      offsets: fc.array(fc.constantFrom(0, 0, 2000, -1000, 4 * MINUTE_MS, -HOUR_MS, 2 * HOUR_MS, -9 * DAY_MS, 300 * DAY_MS), {
        minLength: 1,
        maxLength: 4,
      }),
      restarts: fc.boolean(),
      rollsBack: fc.boolean(),
    }),
    { minLength: 1, maxLength: 40 },
  )
  .map((parts) => {
    let segment = START;
    return parts.map(({ pause, nodeId, offsets, restarts, rollsBack }) => {
      segment += pause;
      return { segment, nodeId, times: offsets.map((offset, i) => segment + i * 1000 + offset), restarts, rollsBack };
    });
  });

function timesOf(table: RawTable, fromMs: number, toMs: number, order: 'asc' | 'desc'): number[] {
  const chunks: number[][] = [];
  for (const { count, timestampMs } of table.chunks(NODE, [], fromMs, toMs, order)) chunks.push([...timestampMs.subarray(0, count)]);
  return (order === 'asc' ? chunks : chunks.reverse()).flat().filter((at) => at >= fromMs && at < toMs);
}

t.test('whatever the clocks did, all samples of a range are found by time, also in a later run and after a rollback', async (t) => {
  fc.assert(
    fc.property(arrivals, fc.nat(), fc.nat(3 * DAY_MS), (parts, pick, length) => {
      const db = standInDatabase();
      let table = new RawTable(db);
      for (const { segment, nodeId, times, restarts, rollsBack } of parts) {
        for (const ends of rollsBack ? ['ROLLBACK', 'COMMIT'] : ['COMMIT']) {
          db.exec('BEGIN');
          table.write(nodeId, segment, [toColumns(times.map((at) => row(at)))]);
          table.endCommit(segment);
          db.exec(ends);
          if (ends === 'ROLLBACK') table.reload();
        }
        if (restarts) table = new RawTable(db);
      }
      const wanted = parts
        .filter(({ nodeId }) => nodeId === NODE)
        .flatMap(({ times }) => times)
        .toSorted((a, b) => a - b);
      const fromMs = wanted[pick % (wanted.length + 1)] ?? START;
      const inRange = wanted.filter((at) => at >= fromMs && at < fromMs + length);
      for (const order of ['asc', 'desc'] as const) {
        deepStrictEqual(timesOf(table, 0, Number.MAX_SAFE_INTEGER, order), wanted);
        deepStrictEqual(timesOf(table, fromMs, fromMs + length, order), inRange);
      }
      deepStrictEqual(table.firstMs(NODE), wanted[0] ?? null);
      const segments = parts.filter(({ nodeId }) => nodeId === NODE).map(({ segment }) => segment);
      const span = segments.length === 0 ? undefined : { first: segments[0], last: segments.at(-1) };
      deepStrictEqual(table.spans().get(NODE), span);
      deepStrictEqual(table.lastSegment(), parts.at(-1)?.segment);
      db.close();
    }),
    { numRuns: runs(120, 3000), seed: SEED },
  );
  t.pass();
});

t.test('an hour takes two writes of its row, and one row of the table per node', async (t) => {
  const db = standInDatabase();
  t.teardown(() => db.close());
  const table = new RawTable(db);
  const hourMs = Math.ceil(START / HOUR_MS) * HOUR_MS;
  const changes = (): number => (db.prepare('SELECT total_changes() AS n').get() as { n: number }).n;
  const minute = (n: number): void => table.write(NODE, hourMs + n * MINUTE_MS, [toColumns(series(hourMs + n * MINUTE_MS, 60))]);
  for (let n = 0; n < 60; n += 1) minute(n);
  const before = changes();
  t.equal(before, 60 + 1, 'the hour begins');
  minute(60);
  t.equal(changes() - before, 1 + 2, 'it ends, and the next one begins');
  t.same(
    (db.prepare('SELECT hour_ms, last_segment FROM raw_hour').all() as object[]).map((found) => ({ ...found })),
    [
      { hour_ms: hourMs, last_segment: hourMs + 59 * MINUTE_MS },
      { hour_ms: hourMs + HOUR_MS, last_segment: null },
    ],
  );
});

t.test('a chunk that would waste the rest of a page is divided', async (t) => {
  const db = standInDatabase();
  t.teardown(() => db.close());
  const table = new RawTable(db);
  // Doubles are stored as they are.
  const noisy = Array.from({ length: 60 }, (_, i) => row(START + i * 1000, Math.sin(i)));
  table.write(NODE, START, [toColumns(noisy)]);
  const lengths = (db.prepare('SELECT length(samples) AS length FROM raw').all() as { length: number }[]).map(({ length }) => length);
  t.ok(lengths.length > 1);
  t.ok(
    lengths.every((length) => length <= 488),
    `${lengths}`,
  );
  t.same(
    timesOf(table, 0, Number.MAX_SAFE_INTEGER, 'asc'),
    noisy.map(({ timestampMs }) => timestampMs),
  );
});
