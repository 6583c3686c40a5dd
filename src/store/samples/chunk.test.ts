import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { STATUSES } from '../../core/alerts/alert.ts';
import { METRICS } from '../../core/metrics.ts';
import { type Columns, decodeChunk, encodeChunk } from './chunk.ts';

const hundredths = fc.integer({ min: -1_000_000, max: 1_000_000 }).map((value) => value / 100);
const awkward = fc.constantFrom(Number.NaN, -0, 0, Infinity, -Infinity, 0.1 + 0.2, 1e308, 5e-324, 1.005);
const column = (length: number): fc.Arbitrary<number[]> =>
  fc.oneof(
    fc.array(hundredths, { minLength: length, maxLength: length }),
    fc.array(fc.oneof({ weight: 5, arbitrary: hundredths }, fc.constant(Number.NaN)), { minLength: length, maxLength: length }),
    fc.array(fc.oneof(fc.double(), awkward, hundredths), { minLength: length, maxLength: length }),
  );
/** Regular, with jitter, or with large jumps in both directions. */
const step = fc.oneof(
  fc.constant(1000),
  fc.integer({ min: 980, max: 1020 }),
  fc.integer({ min: -5000, max: 5000 }),
  fc.integer({ min: -(2 ** 44), max: 2 ** 44 }),
);
const times = (length: number): fc.Arbitrary<number[]> =>
  fc
    .tuple(fc.integer({ min: -(2 ** 40), max: 2 ** 42 }), fc.array(step, { minLength: length, maxLength: length }))
    .map(([first, steps]) => {
      let at = first;
      return steps.map((delta) => {
        at += delta;
        return at;
      });
    });

/** From a single node, interleaved with other nodes, or in any order as after a clock step back. */
const orders = (length: number): fc.Arbitrary<number[]> =>
  fc.oneof(
    fc
      .tuple(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 1, max: 60 }))
      .map(([first, step]) => Array.from({ length }, (_, i) => first + i * step)),
    fc.array(fc.integer({ min: 1, max: 60_000 }), { minLength: length, maxLength: length }),
  );

const columns: fc.Arbitrary<Columns> = fc.integer({ min: 0, max: 120 }).chain((count) =>
  fc
    .record({
      times: times(count),
      metrics: fc.tuple(...METRICS.map(() => column(count))),
      status: fc.array(fc.integer({ min: 0, max: STATUSES.length - 1 }), { minLength: count, maxLength: count }),
      sequence: orders(count),
    })
    .map(({ times: timestampMs, metrics, status, sequence }) => ({
      count,
      timestampMs: Float64Array.from(timestampMs),
      metrics: metrics.map((values) => Float64Array.from(values)),
      status: Uint8Array.from(status),
      sequence: Uint32Array.from(sequence),
    })),
);

const identical = (a: ArrayLike<number>, b: ArrayLike<number>): boolean =>
  a.length === b.length && Array.from(a).every((value, i) => Object.is(value, b[i]));

t.test('any samples are decoded exactly', async (t) => {
  fc.assert(
    fc.property(columns, (before) => {
      const after = decodeChunk(encodeChunk(before));
      return (
        after.count === before.count &&
        identical(after.timestampMs, before.timestampMs) &&
        identical(after.status, before.status) &&
        identical(after.sequence, before.sequence) &&
        after.metrics.every((values, m) => identical(values, before.metrics[m] as Float64Array))
      );
    }),
    { numRuns: runs(100, 3000), seed: SEED },
  );
  t.pass();
});

t.test('arrays with spare capacity are written up to the count', async (t) => {
  const roomy: Columns = {
    count: 1,
    timestampMs: Float64Array.of(5, 99),
    metrics: METRICS.map((_, m) => Float64Array.of(m, 99)),
    status: Uint8Array.of(2, 1),
    sequence: Uint32Array.of(7, 99),
  };
  const { count, timestampMs, metrics, status } = decodeChunk(encodeChunk(roomy));
  t.same(
    { count, timestampMs: [...timestampMs], metrics: metrics.map((values) => [...values]), status: [...status] },
    {
      count: 1,
      timestampMs: [5],
      metrics: [[0], [1], [2], [3]],
      status: [2],
    },
  );
});

t.test('a truncated blob, or one with trailing bytes, is damaged', async (t) => {
  fc.assert(
    fc.property(columns, (before) => {
      const blob = encodeChunk(before);
      for (let length = 0; length < blob.length; length += 1) {
        try {
          decodeChunk(blob.subarray(0, length));
          return false;
        } catch (error) {
          if (!(error instanceof RangeError)) throw error;
        }
      }
      try {
        decodeChunk(Uint8Array.from([...blob, 0]));
        return false;
      } catch (error) {
        return error instanceof RangeError;
      }
    }),
    { numRuns: runs(6, 250), seed: SEED },
  );
  t.pass();
});

t.test('any other blob gives a RangeError or no more samples than it has bytes', async (t) => {
  const mutated = fc
    .tuple(columns, fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 4 }))
    .map(([before, changes]) => {
      const blob = encodeChunk(before);
      for (const [at, value] of changes) blob[at % blob.length] = value;
      return blob;
    });
  let refused = 0;
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 300, size: 'max' }), mutated), (blob) => {
      try {
        const { count, status } = decodeChunk(blob);
        return count <= blob.length && status.every((value) => value < STATUSES.length);
      } catch (error) {
        refused += 1;
        return error instanceof RangeError;
      }
    }),
    { numRuns: runs(1000, 30000), seed: SEED },
  );
  t.ok(refused > 100, 'most random blobs are rejected');
});

t.test('a forged count allocates nothing', async (t) => {
  const blob = Uint8Array.from([1, 0x80, 0x80, 0x80, 0x80, 0x01, ...new Uint8Array(64)]); // 2^28 samples: 2 GB of time stamps
  const before = process.memoryUsage().arrayBuffers;
  t.throws(() => decodeChunk(blob), RangeError);
  t.ok(process.memoryUsage().arrayBuffers - before < 1_000_000);
});

t.test('an unknown format or column encoding is rejected', async (t) => {
  const blob = encodeChunk({
    count: 0,
    timestampMs: new Float64Array(0),
    metrics: METRICS.map(() => new Float64Array(0)),
    status: new Uint8Array(0),
    sequence: new Uint32Array(0),
  });
  t.doesNotThrow(() => decodeChunk(blob));
  t.throws(() => decodeChunk(blob.with(0, 3)), /format/);
  t.throws(() => decodeChunk(blob.with(blob.length - 1, 2)), /form of a column/);
});

t.test('a sample at 1 Hz takes less than 10 bytes', async (t) => {
  // Seeded, so that the size is the same in each run: a machine that idles with bursts of load, and 1 to 3 ms of jitter.
  let seed = 12_345;
  const random = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const samples = 24 * 3600;
  let bytes = 0;
  let cpu = 10;
  let temperature = 48;
  let at = 1_790_000_000_000;
  for (let minute = 0; minute < samples / 60; minute += 1) {
    const chunk: Columns = {
      count: 60,
      timestampMs: Float64Array.from({ length: 60 }, () => {
        at += 1000;
        return at + Math.round(random() * 3);
      }),
      metrics: [
        Float64Array.from({ length: 60 }, () => {
          cpu = random() < 0.02 ? random() * 100 : cpu * 0.8 + random() * 4;
          return Math.round(cpu * 100) / 100;
        }),
        Float64Array.from({ length: 60 }, () => Math.round(4200 + random() * 30) / 100),
        Float64Array.from({ length: 60 }, () => Math.round(6100 + minute / 10) / 100),
        Float64Array.from({ length: 60 }, () => {
          temperature += random() - 0.5;
          return Math.round(temperature * 1000) % 7 === 0 ? Number.NaN : Math.round(temperature * 100) / 100;
        }),
      ],
      status: new Uint8Array(60),
      sequence: Uint32Array.from({ length: 60 }, (_, i) => i + 1),
    };
    bytes += encodeChunk(chunk).length;
  }
  t.ok(bytes / samples < 10, `${(bytes / samples).toFixed(2)} bytes a sample`);
});
