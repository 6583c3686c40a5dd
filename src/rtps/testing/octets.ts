import type { EntityId, GuidPrefix } from '../wire/protocol.ts';

/** A part of a submessage: a number with its size, or raw octets. */
export type Part = readonly [octets: 2 | 4 | 8, number: number] | Uint8Array;

export const u16 = (number: number): Part => [2, number];
export const u32 = (number: number): Part => [4, number];
/** A sequence number: two words, the high one first. */
export const sn = (number: number): Part => [8, number];
/** Entities are octets, in any endianness. */
export const entity = (id: EntityId): Part => Buffer.from(id.toString(16).padStart(8, '0'), 'hex');

function octetsOf(part: Part, little: boolean): Buffer {
  if (part instanceof Uint8Array) return Buffer.from(part);
  const [octets, number] = part;
  const buffer = Buffer.alloc(octets);
  if (octets === 2) little ? buffer.writeUInt16LE(number) : buffer.writeUInt16BE(number);
  else {
    const words = octets === 8 ? [Math.floor(number / 2 ** 32), number % 2 ** 32] : [number];
    words.forEach((word, i) => {
      little ? buffer.writeUInt32LE(word >>> 0, 4 * i) : buffer.writeUInt32BE(word >>> 0, 4 * i);
    });
  }
  return buffer;
}

export interface SubmessageOptions {
  readonly flags?: number;
  readonly little?: boolean;
  /** A false value of octetsToNextHeader. */
  readonly says?: number;
}

/** A submessage composed field by field as in 9.4.5, independent of the code under test. */
export function submessage(kind: number, parts: readonly Part[], { flags = 0, little = true, says }: SubmessageOptions = {}): Buffer {
  const body = Buffer.concat(parts.map((part) => octetsOf(part, little)));
  return Buffer.concat([Buffer.from([kind, flags | (little ? 1 : 0)]), octetsOf(u16(says ?? body.length), little), body]);
}

/** A whole message of a sender, RTPS 2.2. */
export function message(sender: GuidPrefix, ...submessages: readonly Uint8Array[]): Buffer {
  return Buffer.concat([Buffer.from('RTPS\x02\x02\x01\x10', 'latin1'), Buffer.from(sender, 'hex'), ...submessages]);
}
