import type { Announcer } from './announcer.ts';
import { isEnd, type ParticipantData, readParticipant } from './discovery-data.ts';
import type { Endpoints } from './endpoints.ts';
import { LIMITS } from './limits.ts';
import type { Logger } from './log.ts';
import type { DataSubmessage } from './message-reader.ts';
import type { Source } from './network.ts';
import { ParameterList } from './parameters.ts';
import type { Peer, Peers } from './peers.ts';
import { prefixOf } from './protocol.ts';

export interface DetectorOptions {
  readonly domain: number;
  readonly peers: Peers;
  readonly endpoints: Endpoints;
  readonly announcer: Announcer;
  readonly log: Logger;
  readonly monotonicSeconds: () => number;
}

/** Where a datagram came from. */
export interface Arrival {
  readonly source: Source;
  readonly viaMulticast: boolean;
}

/** Takes note of participants as they announce themselves, leave and fall silent (8.5.3, SPDP). */
export class Detector {
  readonly #options: DetectorOptions;

  constructor(options: DetectorOptions) {
    this.#options = options;
  }

  /** Throws Malformed. */
  onAnnouncement({ sender, payload, isKey, inlineQos }: DataSubmessage, arrival: Arrival): void {
    const { announcer, domain, peers } = this.#options;
    const prefix = prefixOf(sender);
    const peer = peers.get(prefix);
    if (isKey || isEnd(inlineQos)) {
      // Only itself can say that it leaves.
      if (peer) this.#remove(peer, 'left');
      return;
    }
    if (!payload) return;
    if (peer && arrival.viaMulticast) peer.isInGroup = true;
    if (peer?.announcement.equals(payload)) return;
    const list = ParameterList.ofPayload(payload);
    const data = list && readParticipant(list, domain);
    if (!data || data.prefix !== prefix) return;
    if (peer) peers.update(peer, data, payload, arrival.source.address, announcer.interfaces);
    else this.#add(data, payload, arrival);
  }

  /** Forgets those whose lease has ended. */
  expire(nowSeconds: number): void {
    for (const peer of this.#options.peers.expired(nowSeconds)) this.#remove(peer, 'lease expired');
  }

  #add(data: ParticipantData, announcement: Buffer, { source, viaMulticast }: Arrival): void {
    const { announcer, endpoints, log, monotonicSeconds, peers } = this.#options;
    const now = monotonicSeconds();
    const { peer, evicted } = peers.add(data, announcement, source.address, announcer.interfaces, now);
    if (evicted) endpoints.removePeer(evicted);
    if (!peer) {
      log('warning', 'too many participants: another one is not taken in', { most: LIMITS.participants, from: source.address });
      return;
    }
    peer.isInGroup = viaMulticast;
    log('debug', 'participant found', { peer: data.name || data.prefix, address: source.address });
    announcer.greet(peer, now);
    endpoints.addPeer(peer);
  }

  #remove(peer: Peer, why: 'left' | 'lease expired'): void {
    const { endpoints, log, peers } = this.#options;
    peers.remove(peer.data.prefix);
    endpoints.removePeer(peer, why === 'left');
    log('debug', 'participant gone', { peer: peer.data.name || peer.data.prefix, why });
  }
}
