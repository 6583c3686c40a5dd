import { ackNack, data, dataFrag, gap, header, heartbeat, infoDestination, infoTimestamp, nackFrag } from './message-writer.ts';
import { type EntityId, entityOf, FRAGMENT_OCTETS, type GuidPrefix, prefixOf } from './protocol.ts';
import type { MatchedWriter, ReaderAction } from './reader.ts';
import type { Change, MatchedReader, WriterAction } from './writer.ts';

/** A datagram that passes Ethernet whole: IP fragments are lost altogether when one of them is. */
const DATAGRAM_OCTETS = 1400;

/** Puts submessages for one participant into as few datagrams as they take. */
export class Packer {
  readonly #head: Buffer;
  /** 8.3.7.5, 8.3.7.1: counts of heartbeats and acknowledgements only ever go up, also towards a peer that comes back. */
  #count = 0;

  constructor(prefix: GuidPrefix, vendor: number) {
    this.#head = header(prefix, vendor);
  }

  /** What a writer has for a reader, in order, as datagrams. */
  forReader(writer: EntityId, reader: MatchedReader, actions: readonly WriterAction[]): Buffer[] {
    const to = entityOf(reader.guid);
    const bundle = new Bundle(this.#head, prefixOf(reader.guid));
    for (const action of actions) {
      if (action.kind === 'data') addData(bundle, to, writer, action.change, reader, null);
      else if (action.kind === 'fragments') addData(bundle, to, writer, action.change, reader, action.numbers);
      else if (action.kind === 'gap') addGaps(bundle, to, writer, action.numbers);
      else bundle.add(heartbeat(to, writer, action.first, action.last, this.#next(), false));
    }
    return bundle.finish();
  }

  /** What a reader has for a writer. */
  forWriter(reader: EntityId, writer: MatchedWriter, actions: readonly ReaderAction[]): Buffer[] {
    const to = entityOf(writer.guid);
    const bundle = new Bundle(this.#head, prefixOf(writer.guid));
    for (const action of actions) {
      if (action.kind === 'ackNack') bundle.add(ackNack(reader, to, action.set, this.#next(), action.isFinal));
      else bundle.add(nackFrag(reader, to, action.sequenceNumber, action.set, this.#next()));
    }
    return bundle.finish();
  }

  /** A sample outside of any history, such as an announcement: to everybody, or to one participant. */
  single(writer: EntityId, change: Change, destination: GuidPrefix | null): Buffer {
    const payload = change.payload as Buffer | null;
    const parts = [this.#head, infoTimestamp(change.timestampMs), data(0, writer, { ...change, payload })];
    if (destination !== null) parts.splice(1, 0, infoDestination(destination));
    return Buffer.concat(parts);
  }

  #next(): number {
    this.#count += 1;
    return this.#count;
  }
}

/** Datagrams to one participant, each with its head. */
class Bundle {
  readonly #head: readonly Buffer[];
  readonly #datagrams: Buffer[] = [];
  #parts: Buffer[] = [];
  #octets = 0;

  constructor(head: Buffer, destination: GuidPrefix) {
    this.#head = [head, infoDestination(destination)];
  }

  /** Adds submessages that belong into one datagram. */
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

/** A sample, in fragments when it is large; `only`: just these fragments. */
function addData(
  bundle: Bundle,
  reader: EntityId,
  writer: EntityId,
  change: Change,
  matched: MatchedReader,
  only: readonly number[] | null,
): void {
  const payload = typeof change.payload === 'function' ? change.payload(matched) : change.payload;
  const time = infoTimestamp(change.timestampMs);
  if (!payload || payload.length <= FRAGMENT_OCTETS) {
    bundle.add(time, data(reader, writer, { ...change, payload }));
    return;
  }
  const total = Math.ceil(payload.length / FRAGMENT_OCTETS);
  for (const number of only ?? Array.from({ length: total }, (_, i) => i + 1)) {
    if (number < 1 || number > total) continue;
    bundle.add(time, dataFrag(reader, writer, { ...change, payload }, number, FRAGMENT_OCTETS));
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
