import { Malformed } from './protocol.ts';

/**
 * Common Data Representation (OMG CORBA 3.3 part 2, 9.3, encapsulated as of RTPS 10): primitives are aligned to their own size, counted
 * from the end of the four-octet encapsulation header. XCDR2 (DDS-XTYPES 1.3, 7.4.3) aligns to at most four, and puts a size before
 * collections of non-primitive types. XCDR2 is read, for final types, but not written.
 */
const CDR_BE = 0x0000;
const CDR_LE = 0x0001;
const PLAIN_CDR2_BE = 0x0006;
const PLAIN_CDR2_LE = 0x0007;
export const HEADER_OCTETS = 4;

export type Primitive =
  | 'bool'
  | 'int8'
  | 'uint8'
  | 'int16'
  | 'uint16'
  | 'int32'
  | 'uint32'
  | 'int64'
  | 'uint64'
  | 'float32'
  | 'float64'
  | 'string';

/** The serialized form of a message: its fields in order. */
export interface Layout {
  readonly fields: readonly (readonly [name: string, type: FieldType])[];
}

export type FieldType = Primitive | Layout | { readonly sequence: FieldType } | { readonly array: FieldType; readonly length: number };

/** A message as a plain object with the fields of its layout. 64-bit integers are bigint. */
export type Message = { readonly [field: string]: unknown };

const SIZE: Readonly<Record<Exclude<Primitive, 'string'>, number>> = {
  bool: 1,
  int8: 1,
  uint8: 1,
  int16: 2,
  uint16: 2,
  int32: 4,
  uint32: 4,
  int64: 8,
  uint64: 8,
  float32: 4,
  float64: 8,
};

/** Serializes a message as little-endian CDR with its encapsulation header. */
export function encode(layout: Layout, message: Message): Buffer {
  const encoder = new Encoder();
  encoder.struct(layout, message);
  return encoder.finish();
}

/**
 * Reads a message with its encapsulation header, in either endianness. `skip`: octets between the header and the message, which count
 * for alignment. Throws Malformed on a truncated message, an invalid length, or an unsupported representation.
 */
export function decode(layout: Layout, payload: Buffer, skip = 0): Message {
  const decoder = new Decoder(payload, skip);
  return decoder.struct(layout);
}

class Encoder {
  #buffer = Buffer.allocUnsafe(512);
  #length = HEADER_OCTETS;

  constructor() {
    this.#buffer.writeUInt32BE(CDR_LE << 16, 0);
  }

  finish(): Buffer {
    // A copy without spare capacity, since it may stay in a writer's history.
    return Buffer.from(this.#buffer.subarray(0, this.#length));
  }

  struct(layout: Layout, message: Message): void {
    // An empty structure takes one octet, because ROS 2 adds a member to empty messages.
    if (layout.fields.length === 0) this.#primitive('uint8', 0);
    for (const [name, type] of layout.fields) this.#value(type, message[name]);
  }

  #value(type: FieldType, value: unknown): void {
    if (type === 'string') this.#string(String(value ?? ''));
    else if (typeof type === 'string') this.#primitive(type, value);
    else if ('fields' in type) this.struct(type, (value ?? {}) as Message);
    else {
      const list = (value ?? []) as ArrayLike<unknown>;
      if ('sequence' in type) this.#primitive('uint32', list.length);
      const count = 'sequence' in type ? list.length : type.length;
      const element = 'sequence' in type ? type.sequence : type.array;
      for (let i = 0; i < count; i += 1) this.#value(element, list[i]);
    }
  }

  #string(text: string): void {
    const octets = Buffer.byteLength(text);
    this.#primitive('uint32', octets + 1);
    this.#reserve(octets + 1);
    this.#buffer.write(text, this.#length);
    this.#buffer[this.#length + octets] = 0;
    this.#length += octets + 1;
  }

  #primitive(type: Exclude<Primitive, 'string'>, value: unknown): void {
    const size = SIZE[type];
    const padding = -(this.#length - HEADER_OCTETS) & (size - 1);
    this.#reserve(padding + size);
    this.#buffer.fill(0, this.#length, this.#length + padding);
    const at = this.#length + padding;
    this.#length = at + size;
    const buffer = this.#buffer;
    switch (type) {
      case 'bool':
        buffer[at] = value ? 1 : 0;
        break;
      case 'int8':
        buffer.writeInt8(Number(value ?? 0), at);
        break;
      case 'uint8':
        buffer[at] = Number(value ?? 0);
        break;
      case 'int16':
        buffer.writeInt16LE(Number(value ?? 0), at);
        break;
      case 'uint16':
        buffer.writeUInt16LE(Number(value ?? 0), at);
        break;
      case 'int32':
        buffer.writeInt32LE(Number(value ?? 0), at);
        break;
      case 'uint32':
        buffer.writeUInt32LE(Number(value ?? 0), at);
        break;
      case 'int64':
        buffer.writeBigInt64LE(BigInt((value as bigint | undefined) ?? 0), at);
        break;
      case 'uint64':
        buffer.writeBigUInt64LE(BigInt((value as bigint | undefined) ?? 0), at);
        break;
      case 'float32':
        buffer.writeFloatLE(Number(value ?? 0), at);
        break;
      case 'float64':
        buffer.writeDoubleLE(Number(value ?? 0), at);
        break;
    }
  }

  #reserve(octets: number): void {
    if (this.#length + octets <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + octets));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}

class Decoder {
  readonly #buffer: Buffer;
  readonly #littleEndian: boolean;
  readonly #largestAlignment: number;
  #at: number;

  constructor(payload: Buffer, skip: number) {
    if (payload.length < HEADER_OCTETS) throw new Malformed('sample without encapsulation header');
    const representation = payload.readUInt16BE(0);
    if (representation !== CDR_LE && representation !== CDR_BE && representation !== PLAIN_CDR2_LE && representation !== PLAIN_CDR2_BE) {
      throw new Malformed(`unsupported representation 0x${representation.toString(16)}`);
    }
    this.#buffer = payload;
    this.#littleEndian = (representation & 1) === 1;
    this.#largestAlignment = representation >= PLAIN_CDR2_BE ? 4 : 8;
    this.#at = HEADER_OCTETS + skip;
  }

  struct(layout: Layout): Message {
    const message: Record<string, unknown> = {};
    if (layout.fields.length === 0) this.#primitive('uint8');
    for (const [name, type] of layout.fields) message[name] = this.#value(type);
    return message;
  }

  #value(type: FieldType): unknown {
    if (type === 'string') return this.#string();
    if (typeof type === 'string') return this.#primitive(type);
    if ('fields' in type) return this.struct(type);
    const element = 'sequence' in type ? type.sequence : type.array;
    // The DHEADER is redundant: an inconsistent size makes the following reads fail.
    if (this.#largestAlignment === 4 && (typeof element !== 'string' || element === 'string')) this.#primitive('uint32');
    const count = 'sequence' in type ? this.#count() : type.length;
    const list: unknown[] = [];
    for (let i = 0; i < count; i += 1) list.push(this.#value(element));
    return list;
  }

  /** Reads and checks a count before memory is allocated for it: each element takes at least one octet. */
  #count(): number {
    const count = this.#primitive('uint32') as number;
    if (count > this.#buffer.length - this.#at) throw new Malformed(`sequence of ${count} elements in ${this.#buffer.length} octets`);
    return count;
  }

  #string(): string {
    const octets = this.#primitive('uint32') as number;
    if (octets > this.#buffer.length - this.#at) throw new Malformed(`string of ${octets} octets in ${this.#buffer.length}`);
    const start = this.#at;
    this.#at += octets;
    // The length includes the terminating zero; some writers omit both for an empty string.
    const end = octets > 0 && this.#buffer[this.#at - 1] === 0 ? this.#at - 1 : this.#at;
    return this.#buffer.toString('utf8', start, end);
  }

  #primitive(type: Exclude<Primitive, 'string'>): number | bigint | boolean {
    const size = SIZE[type];
    const at = this.#at + (-(this.#at - HEADER_OCTETS) & (Math.min(size, this.#largestAlignment) - 1));
    if (at + size > this.#buffer.length) throw new Malformed(`sample of ${this.#buffer.length} octets ends within a field`);
    this.#at = at + size;
    const buffer = this.#buffer;
    const little = this.#littleEndian;
    switch (type) {
      case 'bool':
        return buffer[at] !== 0;
      case 'int8':
        return buffer.readInt8(at);
      case 'uint8':
        return buffer[at] as number;
      case 'int16':
        return little ? buffer.readInt16LE(at) : buffer.readInt16BE(at);
      case 'uint16':
        return little ? buffer.readUInt16LE(at) : buffer.readUInt16BE(at);
      case 'int32':
        return little ? buffer.readInt32LE(at) : buffer.readInt32BE(at);
      case 'uint32':
        return little ? buffer.readUInt32LE(at) : buffer.readUInt32BE(at);
      case 'int64':
        return little ? buffer.readBigInt64LE(at) : buffer.readBigInt64BE(at);
      case 'uint64':
        return little ? buffer.readBigUInt64LE(at) : buffer.readBigUInt64BE(at);
      case 'float32':
        return little ? buffer.readFloatLE(at) : buffer.readFloatBE(at);
      case 'float64':
        return little ? buffer.readDoubleLE(at) : buffer.readDoubleBE(at);
    }
  }
}
