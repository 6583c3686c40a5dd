import type { FieldType, Layout, Message } from '../wire/cdr.ts';

/** Which representation of XTYPES 1.3, 7.6.3.1.2. */
export interface Representation {
  readonly littleEndian: boolean;
  /** 2: alignment to four at most, and a DHEADER before collections of other than primitives. */
  readonly version: 1 | 2;
}

const SIZES: Readonly<Record<string, number>> = {
  bool: 1,
  int8: 1,
  uint8: 1,
  int16: 2,
  uint16: 2,
  int32: 4,
  uint32: 4,
  float32: 4,
  int64: 8,
  uint64: 8,
  float64: 8,
};

/** A second, simple CDR encoder, with which encoder and decoder are compared. */
export function referenceEncode(layout: Layout, message: Message, { littleEndian, version }: Representation): Buffer {
  const octets: number[] = [];
  const scalar = (type: string, value: unknown): void => {
    const size = SIZES[type] as number;
    while (octets.length % Math.min(size, version === 1 ? 8 : 4) !== 0) octets.push(0);
    const view = new DataView(new ArrayBuffer(8));
    if (type === 'float32') view.setFloat32(0, value as number);
    else if (type === 'float64') view.setFloat64(0, value as number);
    else view.setBigUint64(0, BigInt.asUintN(64, BigInt(value as number | bigint | boolean)) << BigInt(64 - 8 * size));
    const big = [...new Uint8Array(view.buffer).subarray(0, size)];
    octets.push(...(littleEndian ? big.reverse() : big));
  };
  const collection = (element: FieldType, values: readonly unknown[]): void => {
    for (const value of values) write(element, value);
  };
  const headed = (element: FieldType, body: () => void): void => {
    if (version === 1 || (typeof element === 'string' && element !== 'string')) {
      body();
      return;
    }
    scalar('uint32', 0);
    const start = octets.length;
    body();
    const header = Buffer.alloc(4);
    littleEndian ? header.writeUInt32LE(octets.length - start) : header.writeUInt32BE(octets.length - start);
    octets.splice(start - 4, 4, ...header);
  };
  const write = (type: FieldType, value: unknown): void => {
    if (type === 'string') {
      const text = [...Buffer.from(value as string), 0];
      scalar('uint32', text.length);
      octets.push(...text);
    } else if (typeof type === 'string') scalar(type, value);
    else if ('fields' in type) struct(type, value as Message);
    else if ('array' in type) headed(type.array, () => collection(type.array, value as unknown[]));
    else {
      headed(type.sequence, () => {
        scalar('uint32', (value as unknown[]).length);
        collection(type.sequence, value as unknown[]);
      });
    }
  };
  const struct = ({ fields }: Layout, value: Message): void => {
    if (fields.length === 0) scalar('uint8', 0);
    for (const [name, type] of fields) write(type, value[name]);
  };
  struct(layout, message);
  return Buffer.from([0, (version === 1 ? 0 : 6) + (littleEndian ? 1 : 0), 0, 0, ...octets]);
}
