import type { NumberedWriter } from '../discovery/challenge.ts';
import type { Peer } from '../discovery/peers.ts';
import type { MatchedWriter, ReaderAction } from '../endpoints/reader.ts';
import type { Change, MatchedReader, WriterAction } from '../endpoints/writer.ts';
import {
  ackNack,
  type DataContent,
  data,
  dataFrag,
  gap,
  header,
  heartbeat,
  infoDestination,
  infoTimestamp,
  nackFrag,
} from './message-writer.ts';
import { DISCOVERY_READERS, ENTITY, type EntityId, entityOf, FRAGMENT_OCTETS, type GuidPrefix, prefixOf } from './protocol.ts';

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

  /** The datagrams for a writer's submessages to a reader, in order. */
  forReader(writer: EntityId, reader: MatchedReader, actions: readonly WriterAction[]): Buffer[] {
    const to = entityOf(reader.guid);
    const { numberOffset: offset = 0 } = reader;
    const bundle = new Bundle(this.#head, prefixOf(reader.guid));
    for (const action of actions) {
      if (action.kind === 'data') addData(bundle, to, writer, action.change, reader, null);
      else if (action.kind === 'fragments') addData(bundle, to, writer, action.change, reader, action.numbers);
      else if (action.kind === 'gap')
        addGaps(bundle, to, writer, offset === 0 ? action.numbers : action.numbers.map((number) => number + offset));
      else bundle.add(heartbeat(to, writer, action.first + offset, action.last + offset, this.#next(), action.isFinal === true));
    }
    return bundle.finish();
  }

  /** The datagrams for a reader's submessages to a writer. */
  forWriter(reader: EntityId, writer: MatchedWriter, actions: readonly ReaderAction[]): Buffer[] {
    const to = entityOf(writer.guid);
    const bundle = new Bundle(this.#head, prefixOf(writer.guid));
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
  const time = infoTimestamp(change.timestampMs);
  if (!payload || payload.length <= FRAGMENT_OCTETS) {
    bundle.add(time, data(reader, writer, { ...change, sequenceNumber, payload }));
    return;
  }
  const total = Math.ceil(payload.length / FRAGMENT_OCTETS);
  for (const number of only ?? Array.from({ length: total }, (_, i) => i + 1)) {
    if (number < 1 || number > total) continue;
    bundle.add(time, dataFrag(reader, writer, { ...change, sequenceNumber, payload }, number, FRAGMENT_OCTETS));
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
