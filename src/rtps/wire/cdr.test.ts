import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { type Representation, referenceEncode } from '../testing/reference-cdr.ts';
import { decode, encode, type FieldType, type Layout, type Message, type Primitive } from './cdr.ts';
import { Malformed } from './protocol.ts';

// With EDGE_HEALTH_LONG=1 it takes minutes.
t.setTimeout(900_000);

const REPRESENTATIONS: readonly Representation[] = [
  { littleEndian: true, version: 1 },
  { littleEndian: false, version: 1 },
  { littleEndian: true, version: 2 },
  { littleEndian: false, version: 2 },
];

const VALUES: Readonly<Record<Primitive, fc.Arbitrary<unknown>>> = {
  bool: fc.boolean(),
  int8: fc.integer({ min: -128, max: 127 }),
  uint8: fc.integer({ min: 0, max: 255 }),
  int16: fc.integer({ min: -32768, max: 32767 }),
  uint16: fc.integer({ min: 0, max: 65535 }),
  int32: fc.integer(),
  uint32: fc.integer({ min: 0, max: 0xffffffff }),
  int64: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  uint64: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  float32: fc.float(),
  float64: fc.double(),
  string: fc.string({ unit: 'grapheme', maxLength: 20 }),
};

interface Typed {
  readonly type: FieldType;
  readonly value: fc.Arbitrary<unknown>;
}

const primitive: fc.Arbitrary<Typed> = fc
  .constantFrom(...(Object.keys(VALUES) as Primitive[]))
  .map((type) => ({ type, value: VALUES[type] }));

/** A type, and values of it: structures, sequences and arrays of one another, four deep. */
const { typed } = fc.letrec<{ typed: Typed; struct: Typed; sequence: Typed; array: Typed }>((tie) => ({
  typed: fc.oneof({ maxDepth: 4, depthSize: 'small' }, primitive, tie('struct'), tie('sequence'), tie('array')),
  struct: fc.array(tie('typed'), { maxLength: 4 }).map((members) => ({
    type: { fields: members.map(({ type }, i) => [`f${i}`, type] as const) },
    value: fc.record(Object.fromEntries(members.map(({ value }, i) => [`f${i}`, value]))),
  })),
  sequence: tie('typed').map(({ type, value }) => ({ type: { sequence: type }, value: fc.array(value, { maxLength: 4 }) })),
  array: fc.tuple(tie('typed'), fc.integer({ min: 1, max: 4 })).map(([{ type, value }, length]) => ({
    type: { array: type, length },
    value: fc.array(value, { minLength: length, maxLength: length }),
  })),
}));

const layoutAndMessage = typed.chain(({ type, value }) =>
  fc.tuple(
    fc.constant<Layout>({
      fields: [
        ['first', 'uint8'],
        ['it', type],
      ],
    }),
    fc.record({ first: fc.nat(255), it: value }),
  ),
);

t.test('encoding and decoding are inverse, in every representation', async () => {
  fc.assert(
    fc.property(layoutAndMessage, ([layout, message]) => {
      const written = encode(layout, message);
      assert.deepEqual(written, referenceEncode(layout, message, { littleEndian: true, version: 1 }));
      for (const representation of REPRESENTATIONS) {
        assert.deepEqual(
          plain(decode(layout, referenceEncode(layout, message, representation))),
          plain(message),
          JSON.stringify(representation),
        );
      }
    }),
    { numRuns: runs(200, 5000), seed: SEED },
  );
});

/** fast-check's records have no prototype. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
}

function valuesIn(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, inner) => sum + valuesIn(inner), 1);
  return typeof value === 'object' && value !== null ? valuesIn(Object.values(value)) : 1;
}

t.test('arbitrary octets decode to a message of at most their size, or throw Malformed', async () => {
  const octets = fc
    .tuple(fc.constantFrom(0, 1, 6, 7), fc.uint8Array({ maxLength: 200 }))
    .map(([kind, rest]) => Buffer.from([0, kind, 0, 0, ...rest]));
  fc.assert(
    fc.property(typed, octets, ({ type }, payload) => {
      const layout: Layout = { fields: [['it', { sequence: type }]] };
      try {
        const message = decode(layout, payload);
        const perElement = 4 ** 6 * 8;
        assert.ok(valuesIn(message) <= 8 + payload.length * perElement);
      } catch (error) {
        assert.ok(error instanceof Malformed || error instanceof RangeError, String(error));
      }
    }),
    { numRuns: runs(500, 20_000), seed: SEED },
  );
});

t.test('exact octets of a message', async (t) => {
  const layout: Layout = {
    fields: [
      ['flag', 'bool'],
      ['small', 'int16'],
      ['text', 'string'],
      ['number', 'float64'],
      ['texts', { sequence: 'string' }],
    ],
  };
  const message = { flag: true, small: -2, text: 'é', number: 1, texts: ['', 'a'] };
  const expected = [
    ...[0, 1, 0, 0], // CDR_LE, no options
    ...[1, 0, 0xfe, 0xff], // flag, padding, small
    ...[3, 0, 0, 0, 0xc3, 0xa9, 0, 0], // two octets of UTF-8 and the zero, padding
    ...[0, 0, 0, 0], // to a multiple of 8
    ...[0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
    ...[2, 0, 0, 0],
    ...[1, 0, 0, 0, 0, 0, 0, 0], // '' is its zero
    ...[2, 0, 0, 0, 0x61, 0],
  ];
  t.same([...encode(layout, message)], expected);
  t.same(decode(layout, Buffer.from(expected)), message);
});

t.test('numbers that JSON cannot represent', async () => {
  const layout: Layout = { fields: ['a', 'b', 'c', 'd'].map((name) => [name, 'float64'] as const) };
  const message = { a: Number.NaN, b: Number.POSITIVE_INFINITY, c: Number.NEGATIVE_INFINITY, d: -0 };
  assert.deepEqual(decode(layout, encode(layout, message)), message);
});

t.test('missing fields are zero, empty and false', async (t) => {
  const layout: Layout = {
    fields: [
      ['n', 'int64'],
      ['s', 'string'],
      ['b', 'bool'],
      ['l', { sequence: 'uint8' }],
      ['a', { array: 'float32', length: 2 }],
      ['o', { fields: [['x', 'uint16']] }],
    ],
  };
  t.same(decode(layout, encode(layout, {})), { n: 0n, s: '', b: false, l: [], a: [0, 0], o: { x: 0 } });
});

t.test('strings in the variants of other implementations', async (t) => {
  const layout: Layout = {
    fields: [
      ['s', 'string'],
      ['end', 'uint8'],
    ],
  };
  const of = (...octets: number[]): Message => decode(layout, Buffer.from([0, 1, 0, 0, ...octets]));
  t.same(of(0, 0, 0, 0, 7), { s: '', end: 7 }, 'no terminating zero for an empty one');
  t.same(of(2, 0, 0, 0, 0x68, 0x69, 7), { s: 'hi', end: 7 }, 'none for any');
  t.same(of(2, 0, 0, 0, 0xff, 0, 7), { s: '\ufffd', end: 7 }, 'not UTF-8');
});

t.test('invalid lengths', async (t) => {
  const sequences: Layout = { fields: [['l', { sequence: { sequence: { fields: [] } } }]] };
  const huge = Buffer.from([0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff]);
  t.throws(() => decode(sequences, huge), Malformed, 'sequence');
  t.throws(() => decode({ fields: [['s', 'string']] }, huge), Malformed, 'string');
  t.throws(() => decode({ fields: [['a', { array: 'uint8', length: 2 ** 31 }]] }, huge), Malformed, 'array');
  const many = Buffer.concat([Buffer.from([0, 1, 0, 0]), Buffer.alloc(1 << 20)]);
  many.writeUInt32LE((1 << 20) - 4, 4);
  const empty: Layout = { fields: [['l', { sequence: { fields: [] } }]] };
  t.equal((decode(empty, many)['l'] as unknown[]).length, (1 << 20) - 4, 'empty structures take an octet each');
  many.writeUInt32LE((1 << 20) - 3, 4);
  t.throws(() => decode(empty, many), Malformed, 'and no fewer');
});

t.test('payloads that are not CDR', async (t) => {
  const layout: Layout = { fields: [['n', 'uint8']] };
  for (const head of [[], [0], [0, 1, 0], [0, 3, 0, 0, 1], [1, 1, 0, 0, 1], [0, 8, 0, 0, 1]]) {
    t.throws(() => decode(layout, Buffer.from(head)), Malformed, JSON.stringify(head));
  }
  t.same(decode(layout, Buffer.from([0, 1, 0, 3, 9, 0, 0, 0])), { n: 9 }, 'the options contain the number of padding octets');
});

t.test('a header before the message counts for alignment', async (t) => {
  const layout: Layout = { fields: [['n', 'float64']] };
  const header = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
  const payload = Buffer.from([0, 1, 0, 0, ...header, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
  t.same(decode(layout, payload, header.length), { n: 1 });
  t.throws(() => decode(layout, payload, 30), Malformed);
});
