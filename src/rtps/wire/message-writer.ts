import { bitmapOf, MAX_SET_BITS, type NumberSet, writeSequenceNumber } from './number-set.ts';
import { type EntityId, type GuidPrefix, PROTOCOL_VERSION, SUBMESSAGE } from './protocol.ts';

/** Serialisation of messages: a header (9.4.4) and submessages (9.4.5), little endian. */
const FLAG_LITTLE_ENDIAN = 0x01;
/** Octets from the end of the field octetsToInlineQos to the inline QoS. */
const TO_INLINE_QOS = 16;
const TO_INLINE_QOS_FRAG = 28;

function submessage(kind: number, flags: number, octets: number): Buffer {
  const buffer = Buffer.alloc(4 + octets);
  buffer[0] = kind;
  buffer[1] = flags | FLAG_LITTLE_ENDIAN;
  // Length 0 means up to the end of the datagram, for lengths that do not fit.
  buffer.writeUInt16LE(octets > 0xffff ? 0 : octets, 2);
  return buffer;
}

/** The header of a message (9.4.4). */
export function header(prefix: GuidPrefix, vendor: number): Buffer {
  const buffer = Buffer.alloc(20);
  buffer.write('RTPS', 'latin1');
  buffer.set(PROTOCOL_VERSION, 4);
  buffer.writeUInt16BE(vendor, 6);
  buffer.write(prefix, 8, 'hex');
  return buffer;
}

export function infoDestination(prefix: GuidPrefix): Buffer {
  const buffer = submessage(SUBMESSAGE.INFO_DST, 0, 12);
  buffer.write(prefix, 4, 'hex');
  return buffer;
}

export function infoTimestamp(milliseconds: number): Buffer {
  const buffer = submessage(SUBMESSAGE.INFO_TS, 0, 8);
  buffer.writeUInt32LE(Math.floor(milliseconds / 1000) >>> 0, 4);
  buffer.writeUInt32LE(Math.floor(((milliseconds % 1000) / 1000) * 2 ** 32) >>> 0, 8);
  return buffer;
}

export interface DataContent {
  readonly sequenceNumber: number;
  readonly payload: Buffer | null;
  readonly isKey: boolean;
  /** A parameter list with its sentinel. */
  readonly inlineQos: Buffer | null;
}

export function data(reader: EntityId, writer: EntityId, { sequenceNumber, payload, isKey, inlineQos }: DataContent): Buffer {
  const inlineOctets = inlineQos?.length ?? 0;
  const payloadOctets = payload?.length ?? 0;
  const padding = -payloadOctets & 3;
  const flags = (inlineQos ? 0x02 : 0) | (payload ? (isKey ? 0x08 : 0x04) : 0);
  const buffer = submessage(SUBMESSAGE.DATA, flags, 20 + inlineOctets + payloadOctets + padding);
  buffer.writeUInt16LE(TO_INLINE_QOS, 6);
  buffer.writeUInt32BE(reader, 8);
  buffer.writeUInt32BE(writer, 12);
  writeSequenceNumber(buffer, 16, sequenceNumber);
  inlineQos?.copy(buffer, 24);
  payload?.copy(buffer, 24 + inlineOctets);
  return buffer;
}

/** One fragment of a sample; `number` counts from 1. */
export function dataFrag(
  reader: EntityId,
  writer: EntityId,
  { sequenceNumber, payload, inlineQos }: DataContent & { readonly payload: Buffer },
  number: number,
  fragmentOctets: number,
): Buffer {
  const part = payload.subarray((number - 1) * fragmentOctets, number * fragmentOctets);
  // Only the first fragment carries the inline QoS.
  const inline = number === 1 ? inlineQos : null;
  const inlineOctets = inline?.length ?? 0;
  const buffer = submessage(SUBMESSAGE.DATA_FRAG, inline ? 0x02 : 0, 32 + inlineOctets + part.length + (-part.length & 3));
  buffer.writeUInt16LE(TO_INLINE_QOS_FRAG, 6);
  buffer.writeUInt32BE(reader, 8);
  buffer.writeUInt32BE(writer, 12);
  writeSequenceNumber(buffer, 16, sequenceNumber);
  buffer.writeUInt32LE(number, 24);
  buffer.writeUInt16LE(1, 28);
  buffer.writeUInt16LE(fragmentOctets, 30);
  buffer.writeUInt32LE(payload.length, 32);
  inline?.copy(buffer, 36);
  part.copy(buffer, 36 + inlineOctets);
  return buffer;
}

export function heartbeat(reader: EntityId, writer: EntityId, first: number, last: number, count: number, isFinal: boolean): Buffer {
  const buffer = submessage(SUBMESSAGE.HEARTBEAT, isFinal ? 0x02 : 0, 28);
  buffer.writeUInt32BE(reader, 4);
  buffer.writeUInt32BE(writer, 8);
  writeSequenceNumber(buffer, 12, first);
  writeSequenceNumber(buffer, 20, last);
  buffer.writeUInt32LE(count >>> 0, 28);
  return buffer;
}

export function ackNack(reader: EntityId, writer: EntityId, set: NumberSet, count: number, isFinal: boolean): Buffer {
  const bitmap = bitmapOf(set);
  const buffer = submessage(SUBMESSAGE.ACKNACK, isFinal ? 0x02 : 0, 20 + bitmap.length);
  buffer.writeUInt32BE(reader, 4);
  buffer.writeUInt32BE(writer, 8);
  writeSequenceNumber(buffer, 12, set.base);
  bitmap.copy(buffer, 20);
  buffer.writeUInt32LE(count >>> 0, 20 + bitmap.length);
  return buffer;
}

export function nackFrag(reader: EntityId, writer: EntityId, sequenceNumber: number, set: NumberSet, count: number): Buffer {
  const bitmap = bitmapOf(set);
  const buffer = submessage(SUBMESSAGE.NACK_FRAG, 0, 24 + bitmap.length);
  buffer.writeUInt32BE(reader, 4);
  buffer.writeUInt32BE(writer, 8);
  writeSequenceNumber(buffer, 12, sequenceNumber);
  buffer.writeUInt32LE(set.base, 20);
  bitmap.copy(buffer, 24);
  buffer.writeUInt32LE(count >>> 0, 24 + bitmap.length);
  return buffer;
}

/** Declares numbers irrelevant: the first run as a range, others as a set. `numbers` ascend; `rest` are those that did not fit. */
export function gap(
  reader: EntityId,
  writer: EntityId,
  numbers: readonly number[],
): { readonly message: Buffer; readonly rest: readonly number[] } {
  const start = numbers[0] as number;
  let run = 1;
  while (run < numbers.length && numbers[run] === start + run) run += 1;
  const base = start + run;
  const inSet = numbers.slice(run).filter((number) => number - base < MAX_SET_BITS);
  const bitmap = bitmapOf({ base, numbers: inSet });
  const buffer = submessage(SUBMESSAGE.GAP, 0, 24 + bitmap.length);
  buffer.writeUInt32BE(reader, 4);
  buffer.writeUInt32BE(writer, 8);
  writeSequenceNumber(buffer, 12, start);
  writeSequenceNumber(buffer, 20, base);
  bitmap.copy(buffer, 28);
  return { message: buffer, rest: numbers.slice(run + inSet.length) };
}
