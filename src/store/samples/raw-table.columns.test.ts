import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { HOUR_MS, hourOf } from '../../core/time/time.ts';
import { type Row, row, series, toColumns, toRows } from '../testing/rows.ts';
import { joinSorted, MAX_CHUNK_MS, splitIntoChunks } from './raw-table.ts';

/** Times that repeat, go back, and cross hours; the value identifies the row. */
const rows: fc.Arbitrary<Row[]> = fc
  .array(fc.oneof(fc.constant(1000), fc.integer({ min: -3, max: 3 }), fc.integer({ min: -HOUR_MS, max: HOUR_MS })), {
    maxLength: 150,
    size: 'max',
  })
  .map((steps) => {
    let at = 100 * HOUR_MS;
    return steps.map((step, i) => {
      at += step;
      return row(at, i);
    });
  });

t.test('chunks hold every sample once and in order; each is ascending, within one hour and at most a minute long', async (t) => {
  fc.assert(
    fc.property(rows, (before) => {
      const chunks = [...splitIntoChunks(toColumns(before))].map(toRows);
      t.same(chunks.flat(), before);
      for (const chunk of chunks) {
        const times = chunk.map(({ timestampMs }) => timestampMs);
        const [first = 0, last = 0] = [times[0], times.at(-1)];
        if (last - first > MAX_CHUNK_MS || hourOf(first) !== hourOf(last)) return false;
        if (times.some((at, i) => i > 0 && at < (times[i - 1] as number))) return false;
      }
      return true;
    }),
    { numRuns: runs(30, 1000), seed: SEED },
  );
});

t.test('no two chunks of sorted samples begin at the same time, even with many samples of one time', async (t) => {
  const busy = [...series(0, 10_000, 2), ...Array.from({ length: 9000 }, (_, i) => row(20_000, i)), ...series(20_001, 5000, 1)];
  const chunks = [...splitIntoChunks(toColumns(busy))];
  const starts = chunks.map(({ timestampMs }) => timestampMs[0]);
  t.equal(new Set(starts).size, starts.length);
  t.ok(starts.length > 3);
  t.same(chunks.flatMap(toRows), busy);
});

t.test('several columns are joined in order of time, rows of one time in order of arrival', async (t) => {
  fc.assert(
    fc.property(fc.array(rows, { minLength: 1, maxLength: 4 }), (list) => {
      const expected = list.flat().sort((a, b) => a.timestampMs - b.timestampMs);
      t.same(toRows(joinSorted(list.map(toColumns))), expected);
    }),
    { numRuns: runs(30, 1000), seed: SEED },
  );
});
