import type { Peers } from '../discovery/peers.ts';
import type { Channel, Network } from '../net/network.ts';
import type { Packer } from '../wire/message-writer.ts';
import { type EntityId, type Guid, type GuidPrefix, prefixOf } from '../wire/protocol.ts';
import type { Endpoints } from './endpoints.ts';
import type { SendToWriter } from './reader.ts';
import type { SendToReader } from './writer.ts';

/** Polls the endpoints and sends their submessages to the locators of the matched endpoints. */
export class Outbox {
  readonly #endpoints: Endpoints;
  readonly #peers: Peers;
  readonly #packer: Packer;
  readonly #network: Network;

  constructor(endpoints: Endpoints, peers: Peers, packer: Packer, network: Network) {
    this.#endpoints = endpoints;
    this.#peers = peers;
    this.#packer = packer;
    this.#network = network;
  }

  /** Sends everything that is due. Returns when to poll again: monotonic seconds, Infinity when nothing is pending. */
  poll(nowSeconds: number): number {
    let due = Number.POSITIVE_INFINITY;
    const { busyReaders, busyWriters } = this.#endpoints;
    // Acknowledgements first: one of them may prove this participant to a peer, which then reads the data that follows.
    for (const state of busyReaders) {
      due = Math.min(due, state.poll(nowSeconds, this.#sendToWriter));
      if (state.isIdle) busyReaders.delete(state);
    }
    for (const state of busyWriters) {
      due = Math.min(due, state.poll(nowSeconds, this.#sendToReader));
      if (state.isIdle) busyWriters.delete(state);
    }
    return due;
  }

  readonly #sendToWriter: SendToWriter = (writer, actions, reader, nowSeconds) =>
    this.#send(reader, writer.guid, (destination) => this.#packer.forWriter(destination, reader, writer, actions), nowSeconds);

  readonly #sendToReader: SendToReader = (reader, actions, writer, nowSeconds) =>
    this.#send(writer, reader.guid, (destination) => this.#packer.forReader(destination, writer, reader, actions), nowSeconds);

  #send(own: EntityId, to: Guid, pack: (destination: GuidPrefix) => readonly Buffer[], nowSeconds: number): void {
    const peer = this.#peers.get(prefixOf(to));
    // The two high bits of the entity kind mark the built-in endpoints (9.3.1.2).
    const channel: Channel = (own & 0xc0) === 0xc0 ? 'meta' : 'user';
    // A peer that has moved gets nothing until it is proven at its new address.
    if (!peer?.isProven) return;
    const { address } = peer.meta;
    const port = peer.ports.get(to) ?? (channel === 'meta' ? peer.meta : peer.user)?.port;
    if (port === undefined) return;
    const mayBeUnreachable = this.#peers.mayBeUnreachable(peer, nowSeconds);
    for (const datagram of pack(peer.data.prefix)) this.#network.send(channel, datagram, address, port, mayBeUnreachable);
  }
}

/**
 * One timer for all deadlines, set to the earliest one: an idle participant causes no wake-ups.
 */
export class Agenda {
  readonly #monotonicSeconds: () => number;
  readonly #onDue: () => void;
  #timer: NodeJS.Timeout | null = null;
  #dueSeconds = Number.POSITIVE_INFINITY;

  constructor(monotonicSeconds: () => number, onDue: () => void) {
    this.#monotonicSeconds = monotonicSeconds;
    this.#onDue = onDue;
  }

  /** When the timer will fire: monotonic seconds, Infinity when it is not set. */
  get dueSeconds(): number {
    return this.#dueSeconds;
  }

  /** Sets the timer to this moment; Infinity: never. */
  set(dueSeconds: number): void {
    if (dueSeconds === this.#dueSeconds) return;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#dueSeconds = dueSeconds;
    if (!Number.isFinite(dueSeconds)) return;
    // One millisecond more, since a timer may fire slightly early and would have to be set again.
    const milliseconds = Math.max(1, Math.ceil((dueSeconds - this.#monotonicSeconds()) * 1000) + 1);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#dueSeconds = Number.POSITIVE_INFINITY;
      this.#onDue();
    }, milliseconds);
    this.#timer.unref();
  }
}
