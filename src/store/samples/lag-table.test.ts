import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time.ts';
import { standInDatabase } from '../database/database.ts';
import { LAG_SLACK_MS, LagTable } from './lag-table.ts';

const NODE = 7;
const START = 1_790_000_000_000;

interface Chunk {
  readonly segment: number;
  readonly fromMs: number;
}

/** A node's clock: its offset from each segment on. It is set occasionally, also more than once within a segment. */
const chunks: fc.Arbitrary<Chunk[]> = fc
  .array(
    fc.record({
      pause: fc.constantFrom(1, MINUTE_MS, MINUTE_MS, MINUTE_MS, HOUR_MS, 3 * DAY_MS),
      offsets: fc.array(fc.constantFrom(0, 0, 2000, -1000, 4 * MINUTE_MS, -HOUR_MS, 2 * HOUR_MS, -9 * DAY_MS, 300 * DAY_MS), {
        minLength: 1,
        maxLength: 3,
      }),
    }),
    { minLength: 1, maxLength: 40 },
  )
  .map((segments) => {
    let segment = START;
    return segments.flatMap(({ pause, offsets }) => {
      segment += pause;
      const at = segment;
      return offsets.map((offset, i) => ({ segment: at, fromMs: at + i * 10_000 + offset }));
    });
  });

t.test('whatever the clock did, every chunk of the requested segments lies in the ranges, also in a later run', async (t) => {
  fc.assert(
    fc.property(chunks, fc.nat(), fc.nat(), fc.boolean(), fc.nat(), (written, from, length, restarts, swapped) => {
      const db = standInDatabase();
      let table = new LagTable(db);
      // A segment may be written after a later one if its write was delayed.
      const order = [...written];
      const late = order.splice(swapped % order.length, 1);
      order.push(...late);
      order.forEach(({ segment, fromMs }, i) => {
        if (restarts && late.length === 0 && i % 7 === 6) table = new LagTable(db);
        table.record(NODE, segment, fromMs);
        table.record(NODE + 1, segment, segment);
      });
      const first = (written[from % written.length] as Chunk).segment;
      const to = length % 3 === 0 ? Number.POSITIVE_INFINITY : first + length;
      const ranges = new LagTable(db).ranges(NODE, first, to);
      const missed = written
        .filter(({ segment }) => segment >= first && segment < to)
        .filter(({ fromMs }) => !ranges.some((range) => fromMs >= range.fromMs && fromMs <= range.toMs));
      const apart = ranges.every((range, i) => i === 0 || range.fromMs > (ranges[i - 1]?.toMs as number));
      db.close();
      return missed.length === 0 && apart;
    }),
    { numRuns: runs(120, 4000), seed: SEED },
  );
  t.pass();
});

t.test('a clock that agrees or drifts slowly is never recorded; one that is set is recorded once', async (t) => {
  const db = standInDatabase();
  t.teardown(() => db.close());
  const table = new LagTable(db);
  const count = (): number => (db.prepare('SELECT count(*) AS count FROM lag').get() as { count: number }).count;
  for (let i = 0; i < 1000; i += 1) table.record(NODE, START + i * MINUTE_MS, START + i * MINUTE_MS + (i % 60) * 1000 - i * 100);
  t.equal(count(), 0);
  for (let i = 1000; i < 2000; i += 1) table.record(NODE, START + i * MINUTE_MS, START + i * MINUTE_MS - HOUR_MS);
  t.equal(count(), 1);
  const [range, ...more] = table.ranges(NODE, START + 1500 * MINUTE_MS, START + 1510 * MINUTE_MS);
  t.same(more, []);
  t.equal((range?.toMs as number) - (range?.fromMs as number), 10 * MINUTE_MS + 2 * LAG_SLACK_MS, 'the searched ranges are short');
});

t.test('a lag recorded in a transaction that was rolled back is discarded', async (t) => {
  const db = standInDatabase();
  t.teardown(() => db.close());
  const table = new LagTable(db);
  db.exec('BEGIN');
  table.record(NODE, START, START - HOUR_MS);
  db.exec('ROLLBACK');
  table.reload();
  table.record(NODE, START, START - HOUR_MS);
  t.equal(
    db.prepare('SELECT 1 FROM lag WHERE node_id = ? AND segment = ? AND lag_ms = ?').all(NODE, START, HOUR_MS).length,
    1,
    'the lag is recorded again',
  );
});
