import type { Peers } from '../discovery/peers.ts';
import type { Channel, Network } from '../net/network.ts';
import type { Packer } from '../wire/packer.ts';
import { type EntityId, type Guid, prefixOf } from '../wire/protocol.ts';
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

  /** Sends everything that is due. Returns when to call it again: monotonic seconds, Infinity when nothing is pending. */
  poll(nowSeconds: number): number {
    let due = Number.POSITIVE_INFINITY;
    const { busyReaders, busyWriters } = this.#endpoints;
    // Acknowledgements first: one of them may prove this participant to a peer, which then reads the data that follows.
    for (const state of busyReaders) {
      const send: SendToWriter = (writer, actions) =>
        this.#send(state.entity, writer.guid, this.#packer.forWriter(state.entity, writer, actions), nowSeconds);
      due = Math.min(due, state.poll(nowSeconds, send));
      if (state.isIdle) busyReaders.delete(state);
    }
    for (const state of busyWriters) {
      const send: SendToReader = (reader, actions) =>
        this.#send(state.entity, reader.guid, this.#packer.forReader(state.entity, reader, actions), nowSeconds);
      due = Math.min(due, state.poll(nowSeconds, send));
      if (state.isIdle) busyWriters.delete(state);
    }
    return due;
  }

  #send(own: EntityId, to: Guid, datagrams: readonly Buffer[], nowSeconds: number): void {
    const peer = this.#peers.get(prefixOf(to));
    // The two high bits of the entity kind mark the built-in endpoints (9.3.1.2).
    const channel: Channel = (own & 0xc0) === 0xc0 ? 'meta' : 'user';
    // A peer that has moved gets nothing until it is proven at its new address.
    if (!peer?.isProven) return;
    const { address } = peer.meta;
    const port = peer.ports.get(to) ?? (channel === 'meta' ? peer.meta : peer.user)?.port;
    if (port === undefined) return;
    const mayBeUnreachable = this.#peers.mayBeUnreachable(peer, nowSeconds);
    for (const datagram of datagrams) this.#network.send(channel, datagram, address, port, mayBeUnreachable);
  }
}
