import type { Endpoints } from '../endpoints/endpoints.ts';
import { LIMITS } from '../limits.ts';
import type { Logger } from '../log.ts';
import type { AmplificationLimit } from '../net/amplification.ts';
import type { Network, Source } from '../net/network.ts';
import type { DataSubmessage } from '../wire/message-reader.ts';
import { ParameterList } from '../wire/parameters.ts';
import { type EntityId, type Locator, prefixOf, VENDOR } from '../wire/protocol.ts';
import type { Announcer } from './announcer.ts';
import { Challenge } from './challenge.ts';
import { isEnd, type ParticipantData, readParticipant } from './discovery-data.ts';
import { type Peer, type Peers, usableLocators } from './peers.ts';

export interface DetectorOptions {
  readonly domain: number;
  readonly peers: Peers;
  readonly endpoints: Endpoints;
  readonly announcer: Announcer;
  readonly limit: AmplificationLimit;
  readonly network: Network;
  readonly log: Logger;
  readonly monotonicSeconds: () => number;
  /** An announcement contains no usable address. */
  readonly onUnusable: () => void;
}

/** The source of a datagram. */
export interface Arrival {
  readonly source: Source;
  readonly viaMulticast: boolean;
  /** Octets not yet credited to an address in the amplification limit. */
  octets: number;
}

/** Upper bounds of challenge numbers. Fast DDS iterates over all numbers below the first one, which would block it for seconds. */
const MAX_NUMBER = 2 ** 50;
const MAX_NUMBER_FAST_DDS = 2 ** 23;

/** Adds, updates and removes participants as they announce themselves, leave, or let their lease expire (8.5.3, SPDP). */
export class Detector {
  readonly #options: DetectorOptions;

  constructor(options: DetectorOptions) {
    this.#options = options;
  }

  /** `isAddressMismatch`: the announcement did not come from an address of its participant. Throws Malformed. */
  onAnnouncement({ sender, payload, isKey, inlineQos }: DataSubmessage, arrival: Arrival, isAddressMismatch: boolean): void {
    const { announcer, domain, monotonicSeconds, network, onUnusable, peers } = this.#options;
    const prefix = prefixOf(sender);
    const known = peers.get(prefix);
    const now = monotonicSeconds();
    if (isKey || isEnd(inlineQos)) {
      // Only the participant itself may announce that it leaves.
      if (known && !isAddressMismatch) this.#remove(known, 'left');
      return;
    }
    // A participant that is being proven keeps its GUID against claims from other addresses for a while.
    if (!payload || (known && isAddressMismatch && (known.wasProven || now - known.foundSeconds < LIMITS.claimSeconds))) return;
    const peer = isAddressMismatch ? undefined : known;
    if (peer && arrival.viaMulticast) peer.isInGroup = true;
    if (peer?.announcement.equals(payload)) return;
    const list = ParameterList.ofPayload(payload);
    const read = list && readParticipant(list, domain);
    if (!read || read.prefix !== prefix) return;
    const usable = (locators: readonly Locator[]): Locator[] =>
      usableLocators(locators, arrival.source.address, announcer.interfaces, (address) => network.isOwn(address));
    const data = { ...read, metaUnicast: usable(read.metaUnicast), userUnicast: usable(read.userUnicast) };
    if (data.metaUnicast.length === 0) {
      onUnusable();
      return;
    }
    if (peer) {
      peers.update(peer, data, payload, arrival.source.address, announcer.interfaces, now);
      peer.isLocal = network.isOwn(peer.meta.address);
      return;
    }
    if (known) this.#remove(known, 'claimed from another address');
    this.#add(data, payload, arrival, now);
  }

  /** An unproven participant has acknowledged all numbers of a discovery writer below `base`. */
  onAcknowledgement(peer: Peer, writer: EntityId, base: number, address: string): void {
    const { endpoints, limit, log, peers } = this.#options;
    if (!this.#isAnnounced(peer, address) || !peer.challenge.acknowledge(writer, base)) return;
    peers.prove(peer);
    limit.restart(peer.meta.address);
    log('debug', 'participant proven', { peer: peer.data.name || peer.data.prefix, address: peer.meta.address });
    endpoints.addPeer(peer);
  }

  /** Whether the participant announces the address, or the challenge was sent there: being a source address is not enough. */
  #isAnnounced({ data, meta, isLocal }: Peer, address: string): boolean {
    return (
      address === meta.address ||
      [...data.metaUnicast, ...data.userUnicast].some((locator) => locator.address === address) ||
      (isLocal && this.#options.network.isOwn(address))
    );
  }

  /** Removes the participants whose lease has ended. */
  expire(nowSeconds: number): void {
    for (const peer of this.#options.peers.expired(nowSeconds)) this.#remove(peer, 'lease expired');
  }

  #add(data: ParticipantData, announcement: Buffer, arrival: Arrival, now: number): void {
    const { announcer, endpoints, limit, log, network, peers } = this.#options;
    const { address } = arrival.source;
    const challenge = new Challenge(endpoints.discoveryWriters, data.vendor === VENDOR.FAST_DDS ? MAX_NUMBER_FAST_DDS : MAX_NUMBER);
    const { peer, evicted } = peers.add(data, challenge, announcement, address, announcer.interfaces, now);
    if (evicted) endpoints.removePeer(evicted);
    if (!peer) {
      log('warning', 'too many participants, participant ignored', { limit: LIMITS.participants, from: address });
      return;
    }
    peer.isInGroup = arrival.viaMulticast;
    peer.isLocal = network.isOwn(peer.meta.address);
    log('debug', 'participant found', { peer: data.name || data.prefix, address });
    limit.receive(peer.meta.address, arrival.octets);
    arrival.octets = 0;
  }

  #remove(peer: Peer, why: 'left' | 'lease expired' | 'claimed from another address'): void {
    const { endpoints, log, peers } = this.#options;
    peers.remove(peer.data.prefix);
    endpoints.removePeer(peer, why === 'left');
    log('debug', 'participant gone', { peer: peer.data.name || peer.data.prefix, why });
  }
}
