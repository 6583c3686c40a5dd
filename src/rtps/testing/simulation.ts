import { type MatchedWriter, StatefulReader } from '../endpoints/reader.ts';
import { type MatchedReader, StatefulWriter } from '../endpoints/writer.ts';
import { LIMITS, OctetBudget } from '../limits.ts';
import { type MessageHandler, readMessage } from '../wire/message-reader.ts';
import { Packer } from '../wire/message-writer.ts';
import { type EntityId, type Guid, guidOf, prefixOf, VENDOR } from '../wire/protocol.ts';
import { SOURCE } from './reader-rig.ts';

export interface Channel {
  readonly random: () => number;
  /** Of 1. */
  loss: number;
  readonly duplication: number;
  readonly longestDelaySeconds: number;
}

/** Datagrams buffered for a paused machine; further ones are dropped, as by a full socket buffer. */
const SOCKET_BUFFER = 200;

/** One machine of the simulation: a state machine with its poll function. */
interface Node {
  readonly prefix: string;
  frozenUntil: number;
  readonly backlog: Buffer[];
  read(datagram: Buffer): void;
  /** Sends everything that is due; returns when to poll again. */
  poll(now: number): number;
  polledAt: number;
}

/**
 * A real stateful writer and its readers, which exchange serialised messages over a channel with losses, duplicates and delays in virtual
 * time. There are no sockets and no timers: the next due event is processed next.
 */
export class Simulation {
  now = 0;
  datagrams = 0;
  octets = 0;
  readonly writer: StatefulWriter;
  readonly #writerNode: Node;
  readonly #channel: Channel;
  readonly #events: { readonly at: number; readonly order: number; readonly action: () => void }[] = [];
  #orders = 0;
  readonly #readers = new Set<SimulatedReader>();
  #made = 0;

  constructor(channel: Channel, options: { readonly depth: number; readonly transientLocal: boolean; readonly isPeriodic?: boolean }) {
    this.#channel = channel;
    this.writer = new StatefulWriter({ entity: WRITER, ...options });
    const packer = new Packer(WRITER_PREFIX, VENDOR.UNKNOWN);
    this.#writerNode = {
      prefix: WRITER_PREFIX,
      frozenUntil: 0,
      backlog: [],
      polledAt: Number.POSITIVE_INFINITY,
      read: (datagram) =>
        readMessage(datagram, Buffer.from(WRITER_PREFIX, 'hex'), {
          ...DEAF,
          onAckNack: ({ sender, set, count, isFinal }) => this.writer.onAckNack(sender, set, count, isFinal),
          onNackFrag: ({ sender, sequenceNumber, set }) => this.writer.onNackFrag(sender, sequenceNumber, set),
        }),
      poll: (now) =>
        this.writer.poll(now, (reader, actions) => {
          const to = [...this.#readers].find(({ guid }) => guid === reader.guid);
          for (const datagram of packer.forReader(prefixOf(reader.guid), WRITER, reader, actions)) this.#send(datagram, to?.node);
        }),
    };
  }

  /** Adds a reader that is matched by the writer, and matches the writer slightly earlier or later. */
  join(options: { readonly reliable: boolean; readonly transientLocal: boolean }, apartSeconds: number): SimulatedReader {
    this.#made += 1;
    const prefix = `02${this.#made.toString(16).padStart(22, '0')}`;
    const packer = new Packer(prefix, VENDOR.UNKNOWN);
    const received: number[] = [];
    const state = new StatefulReader({
      entity: READER,
      reliable: options.reliable,
      budget: new OctetBudget(LIMITS.bufferedOctets),
      deliver: ({ data }) => received.push(data.payload?.readUInt32LE(0) ?? -1),
    });
    // Like Cyclone DDS: a volatile reader begins behind the first heartbeat it receives, and ignores earlier data.
    let hasBegun = !options.reliable || options.transientLocal;
    const node: Node = {
      prefix,
      frozenUntil: 0,
      backlog: [],
      polledAt: Number.POSITIVE_INFINITY,
      read: (datagram) =>
        readMessage(datagram, Buffer.from(prefix, 'hex'), {
          ...DEAF,
          onData: (data) => {
            if (hasBegun) state.onData(data, SOURCE, this.now);
          },
          onDataFrag: (data) => {
            if (hasBegun) state.onDataFrag(data, SOURCE, this.now);
          },
          onHeartbeat: (heartbeat) => {
            if (!hasBegun && state.writerCount > 0) {
              const { last } = heartbeat;
              state.onGap({ ...heartbeat, start: 1, set: { base: last + 1, numbers: [] } }, this.now);
              hasBegun = true;
            }
            state.onHeartbeat(heartbeat, this.now);
          },
          onGap: (gap) => {
            if (hasBegun) state.onGap(gap, this.now);
          },
        }),
      poll: (now) =>
        state.poll(now, (writer, actions) => {
          for (const datagram of packer.forWriter(prefixOf(writer.guid), READER, writer, actions)) this.#send(datagram, this.#writerNode);
        }),
    };
    const reader: SimulatedReader = {
      ...options,
      guid: guidOf(prefix, READER),
      node,
      state,
      received,
      joinedAfter: this.#lastWritten,
      written: [],
    };
    this.#readers.add(reader);
    const matched: MatchedReader = { guid: reader.guid, reliable: options.reliable, transientLocal: options.transientLocal, userData: '' };
    const writer: MatchedWriter = {
      guid: guidOf(WRITER_PREFIX, WRITER),
      reliable: true,
      transientLocal: true,
      vendor: VENDOR.UNKNOWN,
      userData: '',
    };
    this.writer.match(matched, this.now);
    this.#poll(this.#writerNode);
    this.at(this.now + apartSeconds, () => {
      if (!this.#readers.has(reader)) return;
      state.match(writer, this.now);
      this.#poll(node);
    });
    return reader;
  }

  /** Ends a reader without a message; the writer unmatches it. */
  leave(reader: SimulatedReader): void {
    this.#readers.delete(reader);
    reader.node.frozenUntil = Number.POSITIVE_INFINITY;
    this.writer.unmatch(reader.guid);
    this.#poll(this.#writerNode);
  }

  #lastWritten = 0;

  /** Writes a sample that begins with its number. */
  write(octets: number, only: Guid | null): number {
    const payload = Buffer.alloc(Math.max(4, octets), 'x');
    payload.writeUInt32LE(this.#lastWritten + 1);
    this.#lastWritten = this.writer.write({ payload, isKey: false, inlineQos: null, timestampMs: 0, only, instance: null });
    for (const reader of this.#readers) if (only === null || only === reader.guid) reader.written.push(this.#lastWritten);
    this.#poll(this.#writerNode);
    return this.#lastWritten;
  }

  freeze(who: SimulatedReader | 'writer', seconds: number): void {
    const node = who === 'writer' ? this.#writerNode : who.node;
    node.frozenUntil = this.now + seconds;
    this.at(node.frozenUntil, () => {
      for (const datagram of node.backlog.splice(0)) node.read(datagram);
      this.#poll(node);
    });
  }

  at(seconds: number, action: () => void): void {
    this.#orders += 1;
    this.#events.push({ at: seconds, order: this.#orders, action });
  }

  /** Processes all events up to this time. True: no further event is pending. */
  runUntil(end: number): boolean {
    for (;;) {
      this.#events.sort((a, b) => b.at - a.at || b.order - a.order);
      const next = this.#events.at(-1);
      if (!next || next.at > end) {
        this.now = end;
        return !next;
      }
      this.#events.pop();
      this.now = Math.max(this.now, next.at);
      next.action();
    }
  }

  /** Sends what a reader has to send after it was called directly. */
  poll({ node }: SimulatedReader): void {
    this.#poll(node);
  }

  #poll(node: Node): void {
    if (this.now < node.frozenUntil) return;
    const due = node.poll(this.now);
    if (!Number.isFinite(due)) {
      node.polledAt = due;
      return;
    }
    // Timers have a resolution of one millisecond.
    const at = Math.max(due, this.now + 0.001);
    if (at >= node.polledAt && node.polledAt > this.now) return;
    node.polledAt = at;
    this.at(at, () => {
      if (node.polledAt !== at) return;
      node.polledAt = Number.POSITIVE_INFINITY;
      this.#poll(node);
    });
  }

  #send(datagram: Buffer, to: Node | undefined): void {
    this.datagrams += 1;
    this.octets += datagram.length;
    const { random, loss, duplication, longestDelaySeconds } = this.#channel;
    if (!to) return;
    for (let copies = random() < duplication ? 2 : 1; copies > 0; copies -= 1) {
      if (random() >= loss) this.at(this.now + 0.0001 + random() * longestDelaySeconds, () => this.#arrive(datagram, to));
    }
  }

  #arrive(datagram: Buffer, to: Node): void {
    if (this.now < to.frozenUntil) {
      if (to.backlog.length < SOCKET_BUFFER) to.backlog.push(datagram);
      return;
    }
    to.read(datagram);
    this.#poll(to);
  }
}

export interface SimulatedReader {
  readonly reliable: boolean;
  readonly transientLocal: boolean;
  readonly guid: Guid;
  readonly node: Node;
  readonly state: StatefulReader;
  /** Numbers of the delivered samples. */
  readonly received: number[];
  /** The last number written before it was matched. */
  readonly joinedAfter: number;
  /** Numbers written for it while it was matched. */
  readonly written: number[];
}

const WRITER_PREFIX = `01${'0'.repeat(22)}`;
const WRITER: EntityId = 0x103;
const READER: EntityId = 0x104;
const DEAF: MessageHandler = {
  onMessage: (sender: string) => sender,
  onData: () => {},
  onDataFrag: () => {},
  onHeartbeat: () => {},
  onHeartbeatFrag: () => {},
  onGap: () => {},
  onAckNack: () => {},
  onNackFrag: () => {},
};
