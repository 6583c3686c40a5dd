import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import {
  bitmapOf,
  MAX_SET_BITS,
  readFragmentNumberSet,
  readSequenceNumber,
  readSequenceNumberSet,
  writeSequenceNumber,
} from './number-set.ts';
import { Malformed } from './protocol.ts';

const LARGEST = Number.MAX_SAFE_INTEGER - MAX_SET_BITS;

/** A SequenceNumberSet as octets, in either endianness, word by word. */
function setOctets(base: number, bits: number, words: readonly number[], little: boolean): Buffer {
  const buffer = Buffer.alloc(12 + 4 * words.length);
  [Math.floor(base / 2 ** 32), base % 2 ** 32, bits, ...words].forEach((word, i) => {
    if (little) buffer.writeUInt32LE(word, 4 * i);
    else buffer.writeUInt32BE(word, 4 * i);
  });
  return buffer;
}

t.test('a sequence number is written and read', async () => {
  fc.assert(
    fc.property(fc.nat(LARGEST), fc.nat(9), (number, at) => {
      const buffer = Buffer.alloc(at + 8);
      writeSequenceNumber(buffer, at, number);
      assert.equal(readSequenceNumber(buffer, at, true), number);
      buffer.subarray(at, at + 4).swap32();
      buffer.subarray(at + 4, at + 8).swap32();
      assert.equal(readSequenceNumber(buffer, at, false), number);
    }),
    { numRuns: runs(100, 5000), seed: SEED },
  );
});

t.test('sequence numbers out of range', async (t) => {
  for (const words of [
    [-1, 0],
    [-(2 ** 31), 0],
    [0x00200000, 0],
    [0x001fffff, 0xffffffff],
    [0x7fffffff, 0xffffffff],
  ]) {
    const buffer = Buffer.alloc(8);
    buffer.writeInt32LE(words[0] as number, 0);
    buffer.writeUInt32LE(words[1] as number, 4);
    t.throws(() => readSequenceNumber(buffer, 0, true), Malformed, words.join(' '));
  }
  t.throws(() => readSequenceNumber(Buffer.alloc(7), 0, true), RangeError, 'cut short');
});

t.test('a set is written and read, numbers beyond 256 left out', async () => {
  const bases = fc.oneof(fc.nat(3), fc.nat(2 ** 32 + 5), fc.constant(2 ** 32 - 100), fc.constant(LARGEST));
  const offsets = fc.uniqueArray(fc.nat(600), { maxLength: 300 }).map((list) => list.sort((a, b) => a - b));
  fc.assert(
    fc.property(bases, offsets, (base, list) => {
      const numbers = list.map((offset) => base + offset);
      const buffer = Buffer.alloc(8);
      writeSequenceNumber(buffer, 0, base);
      const octets = Buffer.concat([buffer, bitmapOf({ base, numbers })]);
      const { set, end } = readSequenceNumberSet(octets, 0, true);
      assert.deepEqual(set, { base, numbers: numbers.filter((number) => number - base < MAX_SET_BITS) });
      assert.equal(end, octets.length);
    }),
    { numRuns: runs(100, 5000), seed: SEED },
  );
});

t.test('the bits of a set, first number first', async (t) => {
  for (const little of [true, false]) {
    const read = (...set: [number, number, number[]]) => readSequenceNumberSet(setOctets(...set, little), 0, little).set.numbers;
    t.same(read(1, 0, []), [], 'none');
    t.same(read(0, 1, [0x80000000]), [0], 'base 0');
    t.same(read(10, 33, [0x80000001, 0xffffffff]), [10, 41, 42], 'bits behind the last are nothing');
    t.same(read(10, 4, [0x0fffffff]), [], 'nor are those of the only word');
    t.equal(read(1, 256, Array<number>(8).fill(0xffffffff)).length, 256, 'all');
  }
});

t.test('invalid sets', async (t) => {
  t.throws(() => readSequenceNumberSet(setOctets(1, 257, Array<number>(9).fill(0), true), 0, true), Malformed, 'more than 256');
  t.throws(() => readSequenceNumberSet(setOctets(1, 0xffffffff, [], true), 0, true), Malformed, 'many more');
  t.throws(() => readSequenceNumberSet(setOctets(1, 256, [1], true), 0, true), RangeError, 'fewer words than bits');
});

t.test('a set of fragments', async (t) => {
  const octets = Buffer.from([5, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0xa0]);
  t.same(readFragmentNumberSet(octets, 0, true), { set: { base: 5, numbers: [5, 7] }, end: 12 });
});
