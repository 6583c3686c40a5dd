import { type NumberSet, readFragmentNumberSet, readSequenceNumber, readSequenceNumberSet } from './number-set.ts';
import { ParameterList } from './parameters.ts';
import { type EntityId, type Guid, type GuidPrefix, guidOf, Malformed, SUBMESSAGE } from './protocol.ts';

const HEADER_OCTETS = 20;
const FLAG_LITTLE_ENDIAN = 0x01;
const NO_PREFIX = '0'.repeat(24);

/** The endpoints that a submessage is from and for. */
export interface Origin {
  readonly sender: Guid;
  /** A local endpoint; ENTITY.UNKNOWN: all local endpoints that are matched with the sender. */
  readonly receiver: EntityId;
}

export interface DataSubmessage extends Origin {
  readonly sequenceNumber: number;
  /** Serialized data or key, as a view of the datagram's memory; null: neither. */
  readonly payload: Buffer | null;
  /** The payload is only a key: the instance was disposed or unregistered. */
  readonly isKey: boolean;
  readonly inlineQos: ParameterList | null;
  /** When it was written, milliseconds since the epoch; null: unknown. */
  readonly sourceTimestampMs: number | null;
}

export interface DataFragSubmessage extends DataSubmessage {
  readonly payload: Buffer;
  /** Number of the first contained fragment, counted from 1. */
  readonly fragmentStart: number;
  readonly fragmentCount: number;
  readonly fragmentOctets: number;
  readonly sampleOctets: number;
}

export interface HeartbeatSubmessage extends Origin {
  readonly first: number;
  readonly last: number;
  readonly count: number;
  /** No response is requested. */
  readonly isFinal: boolean;
}

export interface HeartbeatFragSubmessage extends Origin {
  readonly sequenceNumber: number;
}

export interface GapSubmessage extends Origin {
  /** The irrelevant numbers are those from `start` to below the set's base, and those of the set. */
  readonly start: number;
  readonly set: NumberSet;
}

export interface AckNackSubmessage extends Origin {
  readonly set: NumberSet;
  readonly count: number;
  readonly isFinal: boolean;
}

export interface NackFragSubmessage extends Origin {
  readonly sequenceNumber: number;
  readonly set: NumberSet;
}

/** Receives the submessages of a datagram. */
export interface MessageHandler {
  /** Called at the beginning of a datagram and at a change of its source (INFO_SRC); false: the rest must not be read. */
  onMessage(sender: GuidPrefix): boolean;
  onData(data: DataSubmessage): void;
  onDataFrag(data: DataFragSubmessage): void;
  onHeartbeat(heartbeat: HeartbeatSubmessage): void;
  onHeartbeatFrag(heartbeat: HeartbeatFragSubmessage): void;
  onGap(gap: GapSubmessage): void;
  onAckNack(ackNack: AckNackSubmessage): void;
  onNackFrag(nackFrag: NackFragSubmessage): void;
}

/** Whether a datagram has the header of RTPS 2.x (9.4.4). */
export function isRtps(datagram: Buffer): boolean {
  return datagram.length >= HEADER_OCTETS && datagram.readUInt32BE(0) === 0x52545053 && datagram[4] === 2;
}

/**
 * Reads one datagram (8.3.4) and passes each submessage for this participant to the handler. Throws Malformed or RangeError at an
 * invalid submessage; the handler has received those before it.
 */
export function readMessage(datagram: Buffer, own: GuidPrefix, handler: MessageHandler): void {
  let sender = datagram.toString('hex', 8, HEADER_OCTETS);
  if (sender === own || !handler.onMessage(sender)) return;
  let isForUs = true;
  let sourceTimestampMs: number | null = null;
  let at = HEADER_OCTETS;
  while (at + 4 <= datagram.length) {
    const kind = datagram[at] as number;
    const flags = datagram[at + 1] as number;
    const little = (flags & FLAG_LITTLE_ENDIAN) !== 0;
    const length = little ? datagram.readUInt16LE(at + 2) : datagram.readUInt16BE(at + 2);
    at += 4;
    // 9.4.5.1.3: length 0 means up to the end of the datagram, except for submessages that may be empty.
    const octets = length === 0 && kind !== SUBMESSAGE.PAD && kind !== SUBMESSAGE.INFO_TS ? datagram.length - at : length;
    if (at + octets > datagram.length)
      throw new Malformed(`submessage 0x${kind.toString(16)} of ${octets} octets, ${datagram.length - at} present`);
    const body = datagram.subarray(at, at + octets);
    at += octets;
    if (kind === SUBMESSAGE.INFO_DST) {
      const prefix = prefixAt(body, 0);
      isForUs = prefix === own || prefix === NO_PREFIX;
    } else if (kind === SUBMESSAGE.INFO_TS) {
      sourceTimestampMs = (flags & 0x02) !== 0 ? null : timestampMs(body, little);
    } else if (kind === SUBMESSAGE.INFO_SRC) {
      // The rest is forwarded for another participant (8.3.7.9), to which the former timestamp does not apply.
      sender = prefixAt(body, 8);
      sourceTimestampMs = null;
      if (sender === own || !handler.onMessage(sender)) return;
    } else if (isForUs) {
      readSubmessage(kind, flags, body, little, sender, sourceTimestampMs, handler);
    }
  }
}

function prefixAt(body: Buffer, at: number): GuidPrefix {
  if (body.length < at + 12) throw new Malformed('truncated GUID prefix');
  return body.toString('hex', at, at + 12);
}

function timestampMs(body: Buffer, little: boolean): number {
  const seconds = little ? body.readUInt32LE(0) : body.readUInt32BE(0);
  const fraction = little ? body.readUInt32LE(4) : body.readUInt32BE(4);
  return seconds * 1000 + (fraction / 2 ** 32) * 1000;
}

function readSubmessage(
  kind: number,
  flags: number,
  body: Buffer,
  little: boolean,
  sender: GuidPrefix,
  sourceTimestampMs: number | null,
  handler: MessageHandler,
): void {
  const uint32 = (at: number): number => (little ? body.readUInt32LE(at) : body.readUInt32BE(at));
  // All submessages name the reader first, then the writer.
  switch (kind) {
    case SUBMESSAGE.DATA:
      handler.onData(readData(flags, body, little, sender, sourceTimestampMs));
      break;
    case SUBMESSAGE.DATA_FRAG:
      handler.onDataFrag(readDataFrag(flags, body, little, sender, sourceTimestampMs));
      break;
    case SUBMESSAGE.HEARTBEAT: {
      const first = readSequenceNumber(body, 8, little);
      const last = readSequenceNumber(body, 16, little);
      // 8.3.7.5.3: an empty writer sends last = first - 1.
      if (first < 1 || last < first - 1) throw new Malformed(`invalid heartbeat from ${first} to ${last}`);
      handler.onHeartbeat({ ...fromWriter(body, sender), first, last, count: uint32(24), isFinal: (flags & 0x02) !== 0 });
      break;
    }
    case SUBMESSAGE.HEARTBEAT_FRAG:
      handler.onHeartbeatFrag({
        ...fromWriter(body, sender),
        sequenceNumber: readSequenceNumber(body, 8, little),
      });
      break;
    case SUBMESSAGE.GAP: {
      const start = readSequenceNumber(body, 8, little);
      const { set } = readSequenceNumberSet(body, 16, little);
      if (start < 1 || set.base < start) throw new Malformed(`invalid gap from ${start} to ${set.base}`);
      handler.onGap({ ...fromWriter(body, sender), start, set });
      break;
    }
    case SUBMESSAGE.ACKNACK: {
      const { set, end } = readSequenceNumberSet(body, 8, little);
      handler.onAckNack({ ...fromReader(body, sender), set, count: uint32(end), isFinal: (flags & 0x02) !== 0 });
      break;
    }
    case SUBMESSAGE.NACK_FRAG: {
      const { set } = readFragmentNumberSet(body, 16, little);
      handler.onNackFrag({ ...fromReader(body, sender), sequenceNumber: readSequenceNumber(body, 8, little), set });
      break;
    }
    default: // 8.3.4.1: unknown kinds are skipped.
  }
}

function fromWriter(body: Buffer, sender: GuidPrefix): Origin {
  return { receiver: body.readUInt32BE(0), sender: guidOf(sender, body.readUInt32BE(4)) };
}

function fromReader(body: Buffer, sender: GuidPrefix): Origin {
  return { receiver: body.readUInt32BE(4), sender: guidOf(sender, body.readUInt32BE(0)) };
}

const FLAG_INLINE_QOS = 0x02;

function readData(flags: number, body: Buffer, little: boolean, sender: GuidPrefix, sourceTimestampMs: number | null): DataSubmessage {
  const hasData = (flags & 0x04) !== 0;
  const isKey = (flags & 0x08) !== 0;
  if (hasData && isKey) throw new Malformed('DATA with the data and the key flag');
  const sequenceNumber = readSequenceNumber(body, 12, little);
  if (sequenceNumber < 1) throw new Malformed(`invalid sequence number ${sequenceNumber}`);
  const { inlineQos, at } = readInlineQos(flags, body, little);
  return {
    receiver: body.readUInt32BE(4),
    sender: guidOf(sender, body.readUInt32BE(8)),
    sequenceNumber,
    payload: hasData || isKey ? body.subarray(at) : null,
    isKey,
    inlineQos,
    sourceTimestampMs,
  };
}

function readDataFrag(
  flags: number,
  body: Buffer,
  little: boolean,
  sender: GuidPrefix,
  sourceTimestampMs: number | null,
): DataFragSubmessage {
  const sequenceNumber = readSequenceNumber(body, 12, little);
  const uint32 = (offset: number): number => (little ? body.readUInt32LE(offset) : body.readUInt32BE(offset));
  const uint16 = (offset: number): number => (little ? body.readUInt16LE(offset) : body.readUInt16BE(offset));
  const fragment = { fragmentStart: uint32(20), fragmentCount: uint16(24), fragmentOctets: uint16(26), sampleOctets: uint32(28) };
  const { fragmentStart, fragmentCount, fragmentOctets, sampleOctets } = fragment;
  // 8.3.7.3.3: conditions of validity.
  const total = Math.ceil(sampleOctets / fragmentOctets);
  if (sequenceNumber < 1 || fragmentStart < 1 || fragmentCount < 1 || fragmentOctets < 1 || fragmentStart + fragmentCount - 1 > total) {
    throw new Malformed(`invalid fragments ${fragmentStart} to ${fragmentStart + fragmentCount - 1} of ${total}`);
  }
  const { inlineQos, at } = readInlineQos(flags, body, little);
  return {
    receiver: body.readUInt32BE(4),
    sender: guidOf(sender, body.readUInt32BE(8)),
    sequenceNumber,
    payload: body.subarray(at),
    isKey: (flags & 0x04) !== 0,
    inlineQos,
    sourceTimestampMs,
    ...fragment,
  };
}

/** 9.4.5.3.3: the inline QoS is located by octetsToInlineQos, because later versions may add fields before it. */
function readInlineQos(flags: number, body: Buffer, little: boolean): { inlineQos: ParameterList | null; at: number } {
  const at = 4 + (little ? body.readUInt16LE(2) : body.readUInt16BE(2));
  if (at > body.length) throw new Malformed('inline QoS beyond the end of the submessage');
  if ((flags & FLAG_INLINE_QOS) === 0) return { inlineQos: null, at };
  const { list, end } = ParameterList.read(body, at, little);
  return { inlineQos: list, at: end };
}
