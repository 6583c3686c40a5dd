import { deepStrictEqual } from 'node:assert/strict';
import { deflateSync, inflateSync } from 'node:zlib';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { STATUSES } from '../../core/alerts/alert.ts';
import { HOUR_MS } from '../../core/time/time.ts';
import { type Row, toColumns } from '../testing/rows.ts';
import { addToHour, emptyHour, type HourRecord } from './summary.ts';
import { decodeHour, decodeMinutes, encodeHour, encodeMinutes } from './summary-codec.ts';

const HOUR = 500_000 * HOUR_MS;

const value = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: -5000, max: 15_000 }).map((hundredths) => hundredths / 100) },
  fc.constant(null),
  fc.double({ noNaN: true }),
  fc.constantFrom(-0, Infinity, -Infinity, 1e300),
);
const row: fc.Arbitrary<Row> = fc.record({
  timestampMs: fc.nat(HOUR_MS - 1).map((offset) => HOUR + offset),
  values: fc.array(value, { minLength: 4, maxLength: 4 }),
  status: fc.constantFrom(...STATUSES),
});
/** Realistic hours, including samples in any order of time. */
const hour: fc.Arbitrary<HourRecord> = fc.array(row, { maxLength: 80, size: 'max' }).map((rows) => {
  const record = emptyHour(HOUR);
  const columns = toColumns(rows);
  for (let i = 0; i < rows.length; i += 1) addToHour(record, columns, i, 1000, []);
  return record;
});

const isRangeError = (work: () => unknown): boolean => {
  try {
    work();
    return false;
  } catch (error) {
    return error instanceof RangeError;
  }
};

t.test('any hour is decoded exactly', async (t) => {
  fc.assert(
    fc.property(hour, ({ summary, histograms, minutes }) => {
      deepStrictEqual(decodeHour(encodeHour(summary, histograms, HOUR), HOUR), { summary, histograms });
      deepStrictEqual(decodeMinutes(encodeMinutes(minutes, HOUR), HOUR), minutes);
    }),
    { numRuns: runs(30, 700), seed: SEED },
  );
  t.pass();
});

t.test('a truncated blob, or one with trailing bytes, is damaged', async (t) => {
  fc.assert(
    fc.property(hour, ({ summary, histograms, minutes }) => {
      const blobs: [Uint8Array, (blob: Uint8Array) => unknown][] = [
        [encodeHour(summary, histograms, HOUR), (blob) => decodeHour(blob, HOUR)],
        [encodeMinutes(minutes, HOUR), (blob) => decodeMinutes(blob, HOUR)],
      ];
      return blobs.every(([blob, decode]) => {
        for (let length = 0; length < blob.length; length += 1) if (!isRangeError(() => decode(blob.subarray(0, length)))) return false;
        return isRangeError(() => decode(Uint8Array.from([...blob, 0])));
      });
    }),
    { numRuns: runs(5, 120), seed: SEED },
  );
  t.pass();
});

/** The most that zlib expands. */
const EXPANSION = 1032;

t.test('any other blob gives a RangeError or a limited number of entries', async (t) => {
  const mutated = fc
    .tuple(hour, fc.boolean(), fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 4 }))
    .map(([{ summary, histograms, minutes }, whole, changes]) => {
      const content = inflateSync(whole ? encodeHour(summary, histograms, HOUR) : encodeMinutes(minutes, HOUR));
      for (const [at, byte] of changes) content[at % content.length] = byte;
      return deflateSync(content);
    });
  const bytes = fc.uint8Array({ maxLength: 200, size: 'max' });
  let refused = 0;
  const entries = (blob: Uint8Array, decode: () => number): boolean => {
    try {
      return decode() <= blob.length * EXPANSION;
    } catch (error) {
      refused += 1;
      return error instanceof RangeError;
    }
  };
  fc.assert(
    fc.property(fc.oneof(bytes, bytes.map(deflateSync), mutated), (blob) => {
      const bins = (): number => decodeHour(blob, HOUR).histograms.reduce((sum, histogram) => sum + histogram.size, 0);
      return entries(blob, bins) && entries(blob, () => decodeMinutes(blob, HOUR).size);
    }),
    { numRuns: runs(500, 20000), seed: SEED },
  );
  t.ok(refused > 100, 'most random blobs are rejected');
});
