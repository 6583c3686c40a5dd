import { type NumberSet, readFragmentNumberSet, readSequenceNumber, readSequenceNumberSet, readUint32 } from './number-set.ts';
import { ParameterList } from './parameters.ts';
import { type EntityId, type Guid, type GuidPrefix, guidOf, Malformed, SUBMESSAGE } from './protocol.ts';

const HEADER_OCTETS = 20;
const FLAG_LITTLE_ENDIAN = 0x01;
const PREFIX_OCTETS = 12;
const NO_PREFIX = Buffer.alloc(PREFIX_OCTETS);

/** The endpoints that a submessage is from and for. */
export interface Origin {
  readonly sender: Guid;
  /** The entity of `sender`. */
  readonly senderEntity: EntityId;
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
  /**
   * Called at the beginning of a datagram and at a change of its source (INFO_SRC). Returns the prefix to use for the sender; null: the rest
   * must not be read.
   */
  onMessage(sender: GuidPrefix): GuidPrefix | null;
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

/** The participant that the header of a message names as its sender. */
export function senderOf(datagram: Buffer): GuidPrefix {
  return datagram.toString('hex', 8, HEADER_OCTETS);
}

/**
 * Reads one datagram (8.3.4) and passes each submessage for this participant to the handler. Throws Malformed or RangeError at an
 * invalid submessage; the handler has received those before it. `own`: the octets of this participant's GUID prefix.
 */
export function readMessage(datagram: Buffer, own: Buffer, handler: MessageHandler): void {
  if (isPrefixAt(datagram, 8, own)) return;
  let sender = handler.onMessage(senderOf(datagram));
  if (sender === null) return;
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
    if (kind === SUBMESSAGE.INFO_DST) {
      if (octets < PREFIX_OCTETS) throw new Malformed('truncated destination');
      isForUs = isPrefixAt(datagram, at, own) || isPrefixAt(datagram, at, NO_PREFIX);
    } else if (kind === SUBMESSAGE.INFO_TS) {
      const isInvalidated = (flags & 0x02) !== 0;
      if (!isInvalidated && octets < 8) throw new Malformed('truncated timestamp');
      sourceTimestampMs = isInvalidated ? null : timestampMs(datagram, at, little);
    } else if (kind === SUBMESSAGE.INFO_SRC) {
      if (octets < 8 + PREFIX_OCTETS) throw new Malformed('truncated source');
      // The rest is forwarded for another participant (8.3.7.9), to which the former timestamp does not apply.
      if (isPrefixAt(datagram, at + 8, own)) return;
      sender = handler.onMessage(datagram.toString('hex', at + 8, at + 8 + PREFIX_OCTETS));
      sourceTimestampMs = null;
      if (sender === null) return;
    } else if (isForUs) {
      readSubmessage(kind, flags, datagram.subarray(at, at + octets), little, sender, sourceTimestampMs, handler);
    }
    at += octets;
  }
}

/** Compares octets: most datagrams are for this participant, so no text is made of their destination. */
function isPrefixAt(datagram: Buffer, at: number, prefix: Buffer): boolean {
  for (let i = 0; i < PREFIX_OCTETS; i += 1) if (datagram[at + i] !== prefix[i]) return false;
  return true;
}

function timestampMs(datagram: Buffer, at: number, little: boolean): number {
  return readUint32(datagram, at, little) * 1000 + (readUint32(datagram, at + 4, little) / 2 ** 32) * 1000;
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
  // All submessages name the reader first, then the writer.
  switch (kind) {
    case SUBMESSAGE.DATA:
      handler.onData(readData(flags, body, little, sender, sourceTimestampMs));
      break;
    case SUBMESSAGE.DATA_FRAG:
      handler.onDataFrag(readDataFrag(flags, body, little, sender, sourceTimestampMs));
      break;
    case SUBMESSAGE.HEARTBEAT: {
      const senderEntity = body.readUInt32BE(4);
      const first = readSequenceNumber(body, 8, little);
      const last = readSequenceNumber(body, 16, little);
      // 8.3.7.5.3: an empty writer sends last = first - 1.
      if (first < 1 || last < first - 1) throw new Malformed(`invalid heartbeat from ${first} to ${last}`);
      handler.onHeartbeat({
        receiver: body.readUInt32BE(0),
        sender: guidOf(sender, senderEntity),
        senderEntity,
        first,
        last,
        count: readUint32(body, 24, little),
        isFinal: (flags & 0x02) !== 0,
      });
      break;
    }
    case SUBMESSAGE.HEARTBEAT_FRAG: {
      const senderEntity = body.readUInt32BE(4);
      const sequenceNumber = readSequenceNumber(body, 8, little);
      handler.onHeartbeatFrag({ receiver: body.readUInt32BE(0), sender: guidOf(sender, senderEntity), senderEntity, sequenceNumber });
      break;
    }
    case SUBMESSAGE.GAP: {
      const senderEntity = body.readUInt32BE(4);
      const start = readSequenceNumber(body, 8, little);
      const { set } = readSequenceNumberSet(body, 16, little);
      if (start < 1 || set.base < start) throw new Malformed(`invalid gap from ${start} to ${set.base}`);
      handler.onGap({ receiver: body.readUInt32BE(0), sender: guidOf(sender, senderEntity), senderEntity, start, set });
      break;
    }
    case SUBMESSAGE.ACKNACK: {
      const senderEntity = body.readUInt32BE(0);
      const { set, end } = readSequenceNumberSet(body, 8, little);
      handler.onAckNack({
        receiver: body.readUInt32BE(4),
        sender: guidOf(sender, senderEntity),
        senderEntity,
        set,
        count: readUint32(body, end, little),
        isFinal: (flags & 0x02) !== 0,
      });
      break;
    }
    case SUBMESSAGE.NACK_FRAG: {
      const senderEntity = body.readUInt32BE(0);
      const sequenceNumber = readSequenceNumber(body, 8, little);
      const { set } = readFragmentNumberSet(body, 16, little);
      handler.onNackFrag({ receiver: body.readUInt32BE(4), sender: guidOf(sender, senderEntity), senderEntity, sequenceNumber, set });
      break;
    }
    default: // 8.3.4.1: unknown kinds are skipped.
  }
}

const FLAG_INLINE_QOS = 0x02;

function readData(flags: number, body: Buffer, little: boolean, sender: GuidPrefix, sourceTimestampMs: number | null): DataSubmessage {
  const hasData = (flags & 0x04) !== 0;
  const isKey = (flags & 0x08) !== 0;
  if (hasData && isKey) throw new Malformed('DATA with the data and the key flag');
  const sequenceNumber = readSequenceNumber(body, 12, little);
  if (sequenceNumber < 1) throw new Malformed(`invalid sequence number ${sequenceNumber}`);
  const { inlineQos, at } = readInlineQos(flags, body, little);
  const senderEntity = body.readUInt32BE(8);
  return {
    receiver: body.readUInt32BE(4),
    sender: guidOf(sender, senderEntity),
    senderEntity,
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
  const fragmentStart = readUint32(body, 20, little);
  const fragmentCount = little ? body.readUInt16LE(24) : body.readUInt16BE(24);
  const fragmentOctets = little ? body.readUInt16LE(26) : body.readUInt16BE(26);
  const sampleOctets = readUint32(body, 28, little);
  // 8.3.7.3.3: conditions of validity.
  const total = Math.ceil(sampleOctets / fragmentOctets);
  if (sequenceNumber < 1 || fragmentStart < 1 || fragmentCount < 1 || fragmentOctets < 1 || fragmentStart + fragmentCount - 1 > total) {
    throw new Malformed(`invalid fragments ${fragmentStart} to ${fragmentStart + fragmentCount - 1} of ${total}`);
  }
  const { inlineQos, at } = readInlineQos(flags, body, little);
  const senderEntity = body.readUInt32BE(8);
  return {
    receiver: body.readUInt32BE(4),
    sender: guidOf(sender, senderEntity),
    senderEntity,
    sequenceNumber,
    payload: body.subarray(at),
    isKey: (flags & 0x04) !== 0,
    inlineQos,
    sourceTimestampMs,
    fragmentStart,
    fragmentCount,
    fragmentOctets,
    sampleOctets,
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
