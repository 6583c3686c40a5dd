import { Malformed } from './protocol.ts';

/** 9.4.2.6 and 9.4.2.8: at most this many numbers from the base. */
export const MAX_SET_BITS = 256;

/** A set of sequence or fragment numbers: a base and a bitmap. An ACKNACK acknowledges all numbers below the base. */
export interface NumberSet {
  readonly base: number;
  /** Ascending, from `base`. */
  readonly numbers: readonly number[];
}

export function readUint32(buffer: Buffer, at: number, littleEndian: boolean): number {
  return littleEndian ? buffer.readUInt32LE(at) : buffer.readUInt32BE(at);
}

/** A sequence number (9.4.2.5): high word signed, low word unsigned. Numbers beyond 2^53 are refused; no writer reaches them. */
export function readSequenceNumber(buffer: Buffer, at: number, littleEndian: boolean): number {
  const high = littleEndian ? buffer.readInt32LE(at) : buffer.readInt32BE(at);
  const low = readUint32(buffer, at + 4, littleEndian);
  const number = high * 2 ** 32 + low;
  if (number < 0 || !Number.isSafeInteger(number + MAX_SET_BITS)) throw new Malformed(`invalid sequence number ${number}`);
  return number;
}

export function writeSequenceNumber(buffer: Buffer, at: number, number: number): void {
  buffer.writeUInt32LE(Math.floor(number / 2 ** 32), at);
  buffer.writeUInt32LE(number % 2 ** 32, at + 4);
}

/** Reads a SequenceNumberSet; `end` is the offset of its end. */
export function readSequenceNumberSet(
  buffer: Buffer,
  at: number,
  littleEndian: boolean,
): { readonly set: NumberSet; readonly end: number } {
  return readBitmap(buffer, at + 8, littleEndian, readSequenceNumber(buffer, at, littleEndian));
}

export function readFragmentNumberSet(
  buffer: Buffer,
  at: number,
  littleEndian: boolean,
): { readonly set: NumberSet; readonly end: number } {
  return readBitmap(buffer, at + 4, littleEndian, readUint32(buffer, at, littleEndian));
}

function readBitmap(buffer: Buffer, at: number, littleEndian: boolean, base: number): { set: NumberSet; end: number } {
  const bits = readUint32(buffer, at, littleEndian);
  if (bits > MAX_SET_BITS) throw new Malformed(`set of ${bits} numbers`);
  const words = (bits + 31) >> 5;
  const numbers: number[] = [];
  for (let word = 0; word < words; word += 1) {
    const mask = readUint32(buffer, at + 4 + 4 * word, littleEndian);
    for (let bit = 0; mask !== 0 && bit < 32 && 32 * word + bit < bits; bit += 1) {
      if ((mask & (1 << (31 - bit))) !== 0) numbers.push(base + 32 * word + bit);
    }
  }
  return { set: { base, numbers }, end: at + 4 + 4 * words };
}

/** Bit count and bitmap of a set, little endian; numbers beyond MAX_SET_BITS are omitted. */
export function bitmapOf({ base, numbers }: NumberSet): Buffer {
  const last = numbers.findLast((number) => number - base < MAX_SET_BITS);
  const bits = last === undefined ? 0 : last - base + 1;
  const words = (bits + 31) >> 5;
  const buffer = Buffer.alloc(4 + 4 * words);
  buffer.writeUInt32LE(bits, 0);
  for (const number of numbers) {
    const bit = number - base;
    if (bit < 0 || bit >= bits) continue;
    const at = 4 + 4 * (bit >> 5);
    buffer.writeUInt32LE((buffer.readUInt32LE(at) | (1 << (31 - (bit & 31)))) >>> 0, at);
  }
  return buffer;
}
