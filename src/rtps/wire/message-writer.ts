import type { NumberedWriter } from '../discovery/challenge.ts';
import type { Peer } from '../discovery/peers.ts';
import type { MatchedWriter, ReaderAction } from '../endpoints/reader.ts';
import type { Change, MatchedReader, WriterAction } from '../endpoints/writer.ts';
import { bitmapOf, MAX_SET_BITS, type NumberSet, writeSequenceNumber } from './number-set.ts';
import {
  DISCOVERY_READERS,
  ENTITY,
  type EntityId,
  entityOf,
  FRAGMENT_OCTETS,
  type GuidPrefix,
  PROTOCOL_VERSION,
  SUBMESSAGE,
} from './protocol.ts';

/** Serialization of messages: a header (9.4.4) and submessages (9.4.5), little endian. */
const FLAG_LITTLE_ENDIAN = 0x01;
/** Octets from the end of the field octetsToInlineQos to the inline QoS. */
const TO_INLINE_QOS = 16;
const TO_INLINE_QOS_FRAG = 28;

function submessage(kind: number, flags: number, octets: number): Buffer {
  // From the pool of Buffer, since an allocation of its own costs several times more than filling the submessage. It is filled because
  // padding and reserved fields are not written, and no other memory of this process may be sent.
  const buffer = Buffer.allocUnsafe(4 + octets).fill(0);
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

/** Fits into an Ethernet frame: a datagram in IP fragments is lost when any of them is. */
const DATAGRAM_OCTETS = 1400;

/** Packs submessages for one participant into as few datagrams as possible. */
export class Packer {
  readonly #head: Buffer;
  /** 8.3.7.5, 8.3.7.1: counts of HEARTBEAT and ACKNACK must increase, also towards a peer that was rediscovered. */
  #count = 0;

  constructor(prefix: GuidPrefix, vendor: number) {
    this.#head = header(prefix, vendor);
  }

  /** The datagrams for a writer's submessages to a reader of the participant `destination`, in order. */
  forReader(destination: GuidPrefix, writer: EntityId, reader: MatchedReader, actions: readonly WriterAction[]): Buffer[] {
    const to = entityOf(reader.guid);
    const { numberOffset: offset = 0 } = reader;
    const bundle = new Bundle(this.#head, destination);
    for (const action of actions) {
      if (action.kind === 'data') addData(bundle, to, writer, action.change, reader, null);
      else if (action.kind === 'fragments') addData(bundle, to, writer, action.change, reader, action.numbers);
      else if (action.kind === 'gap')
        addGaps(bundle, to, writer, offset === 0 ? action.numbers : action.numbers.map((number) => number + offset));
      else bundle.add(heartbeat(to, writer, action.first + offset, action.last + offset, this.#next(), action.isFinal === true));
    }
    return bundle.finish();
  }

  /** The datagrams for a reader's submessages to a writer of the participant `destination`. */
  forWriter(destination: GuidPrefix, reader: EntityId, writer: MatchedWriter, actions: readonly ReaderAction[]): Buffer[] {
    const to = entityOf(writer.guid);
    const bundle = new Bundle(this.#head, destination);
    for (const action of actions) {
      if (action.kind === 'ackNack') bundle.add(ackNack(reader, to, action.set, this.#next(), action.isFinal));
      else bundle.add(nackFrag(reader, to, action.sequenceNumber, action.set, this.#next()));
    }
    return bundle.finish();
  }

  /**
   * A challenge to an unproven participant, in one datagram: an announcement, acknowledgements of its own possible challenge, and
   * heartbeats of the discovery writers that begin at the numbers of the challenge.
   */
  challenge({ data: { prefix }, challenge, pendingAcks }: Peer, writers: readonly NumberedWriter[], announcement: Change | null): Buffer {
    const parts = [this.#head, infoDestination(prefix)];
    if (announcement) parts.push(infoTimestamp(announcement.timestampMs), data(0, ENTITY.SPDP_WRITER, withBuffer(announcement)));
    for (const [writer, first] of pendingAcks) {
      parts.push(ackNack(readerOf(writer), writer, { base: first, numbers: [] }, this.#next(), true));
    }
    for (const { entity, last } of writers) {
      const first = challenge.firstOf(entity);
      parts.push(heartbeat(readerOf(entity), entity, first, first - 1 + last, this.#next(), false));
    }
    return Buffer.concat(parts);
  }

  /** The disposal of this participant for another one, signed with acknowledgements of the numbers of its discovery writers. */
  disposal(destination: GuidPrefix, acknowledged: ReadonlyMap<EntityId, number>, change: Change): Buffer {
    const acks = [...acknowledged].map(([writer, base]) => ackNack(readerOf(writer), writer, { base, numbers: [] }, this.#next(), true));
    const disposal = data(0, ENTITY.SPDP_WRITER, withBuffer(change));
    return Buffer.concat([this.#head, infoDestination(destination), ...acks, infoTimestamp(change.timestampMs), disposal]);
  }

  /** A sample that is in no history, such as an announcement, to all participants or to one. */
  single(writer: EntityId, change: Change, destination: GuidPrefix | null): Buffer {
    const parts = [this.#head, infoTimestamp(change.timestampMs), data(0, writer, withBuffer(change))];
    if (destination !== null) parts.splice(1, 0, infoDestination(destination));
    return Buffer.concat(parts);
  }

  #next(): number {
    this.#count += 1;
    return this.#count;
  }
}

/** Collects submessages into datagrams to one participant. */
class Bundle {
  readonly #head: readonly Buffer[];
  readonly #datagrams: Buffer[] = [];
  #parts: Buffer[] = [];
  #octets = 0;

  constructor(head: Buffer, destination: GuidPrefix) {
    this.#head = [head, infoDestination(destination)];
  }

  /** Adds submessages that must be in the same datagram. */
  add(...parts: readonly Buffer[]): void {
    const octets = parts.reduce((sum, part) => sum + part.length, 0);
    if (this.#parts.length > 0 && this.#octets + octets > DATAGRAM_OCTETS) this.#close();
    this.#parts.push(...parts);
    this.#octets += octets;
  }

  finish(): Buffer[] {
    if (this.#parts.length > 0) this.#close();
    return this.#datagrams;
  }

  #close(): void {
    this.#datagrams.push(Buffer.concat([...this.#head, ...this.#parts]));
    this.#parts = [];
    this.#octets = 36;
  }
}

function readerOf(writer: EntityId): EntityId {
  return DISCOVERY_READERS.get(writer) ?? ENTITY.UNKNOWN;
}

/** Payloads that are in no history do not depend on the reader. */
function withBuffer(change: Change): DataContent {
  return { ...change, payload: change.payload as Buffer | null };
}

/** Adds a sample, in fragments when it is large; `only`: these fragments alone. */
function addData(
  bundle: Bundle,
  reader: EntityId,
  writer: EntityId,
  change: Change,
  matched: MatchedReader,
  only: readonly number[] | null,
): void {
  const payload = typeof change.payload === 'function' ? change.payload(matched) : change.payload;
  const sequenceNumber = change.sequenceNumber + (matched.numberOffset ?? 0);
  const { inlineQos, isKey } = change;
  const time = infoTimestamp(change.timestampMs);
  if (!payload || payload.length <= FRAGMENT_OCTETS) {
    bundle.add(time, data(reader, writer, { sequenceNumber, payload, isKey, inlineQos }));
    return;
  }
  const total = Math.ceil(payload.length / FRAGMENT_OCTETS);
  for (const number of only ?? Array.from({ length: total }, (_, i) => i + 1)) {
    if (number < 1 || number > total) continue;
    bundle.add(time, dataFrag(reader, writer, { sequenceNumber, payload, isKey, inlineQos }, number, FRAGMENT_OCTETS));
  }
}

function addGaps(bundle: Bundle, reader: EntityId, writer: EntityId, numbers: readonly number[]): void {
  let rest = numbers;
  while (rest.length > 0) {
    const next = gap(reader, writer, rest);
    bundle.add(next.message);
    rest = next.rest;
  }
}
