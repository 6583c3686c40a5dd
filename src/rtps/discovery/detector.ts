import type { Endpoints } from '../endpoints/endpoints.ts';
import { LIMITS } from '../limits.ts';
import type { Logger } from '../log.ts';
import type { AmplificationLimit } from '../net/amplification.ts';
import type { Network, Source } from '../net/network.ts';
import type { DataSubmessage } from '../wire/message-reader.ts';
import { ParameterList } from '../wire/parameters.ts';
import { type EntityId, type GuidPrefix, type Locator, VENDOR } from '../wire/protocol.ts';
import type { Announcer } from './announcer.ts';
import { Challenge, Confirmation, type Presence } from './challenge.ts';
import { isEnd, type ParticipantData, readParticipant } from './discovery-data.ts';
import { copyForComparison, type Peer, type Peers, usableLocators } from './peers.ts';

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

/**
 * Upper bound of challenge numbers. Fast DDS iterates over all numbers below the first one, which would block it for seconds. It holds for all
 * implementations: an announcement that names another one, and the acknowledgement of a high number, may be forged.
 */
const MAX_NUMBER = 2 ** 23;

/** After this time without a datagram, a disposal does not prove that the participant has left: it may have been lost before. */
const FRESH_SECONDS = 3;
/** Shortest time between confirmations of one participant because of datagrams from other addresses. */
const CONFIRMATION_PAUSE_SECONDS = 1;
/** How often a participant is confirmed in whose name something false was sent. */
const WATCH_MS = 5000;
/** Timeout of the response at another address that is needed for a request. */
const MOVE_MS = 500;
/** For this long, an equal announcement from another announced address does not add a second participant. */
const SAME_SECONDS = 1;

/**
 * Adds, updates and removes participants as they announce themselves, leave, or let their lease expire (8.5.3, SPDP). What is sent in the
 * name of a proven participant (its disposal, other addresses, its GUID at another address) is believed only if the participant does not
 * respond at its former address.
 */
export class Detector {
  readonly #options: DetectorOptions;
  readonly #confirmations = new Map<Peer, Confirmation>();
  /** When participants may be confirmed again because of a datagram from another address. */
  readonly #confirmAgain = new WeakMap<Peer, number>();

  /** Participants that are moved on request, and what to call when they respond at the new address. */
  readonly #moves = new Map<Peer, () => void>();

  constructor(options: DetectorOptions) {
    this.#options = options;
  }

  /**
   * `peer`: the participant that sends from the address of the datagram; undefined: none. `isSigned`: the datagram also acknowledges numbers
   * that only this participant knows. Throws Malformed.
   */
  onAnnouncement(
    { payload, isKey, inlineQos }: DataSubmessage,
    prefix: GuidPrefix,
    peer: Peer | undefined,
    isSigned: boolean,
    arrival: Arrival,
  ): void {
    if (isKey || isEnd(inlineQos)) {
      if (peer?.wasProven) this.#onDisposal(peer, isSigned);
      return;
    }
    if (!payload) return;
    if (peer && arrival.viaMulticast) peer.isInGroup = true;
    if (peer?.announcement.equals(payload)) {
      peer.change = null;
      return;
    }
    const { announcer, domain, monotonicSeconds, network, onUnusable, peers } = this.#options;
    const { address } = arrival.source;
    const list = ParameterList.ofPayload(payload);
    const read = list && readParticipant(list, domain);
    if (!read || read.prefix !== prefix) return;
    const usable = (locators: readonly Locator[]): Locator[] =>
      usableLocators(locators, address, announcer.interfaces, (own) => network.isOwn(own));
    const data = { ...read, metaUnicast: usable(read.metaUnicast), userUnicast: usable(read.userUnicast) };
    if (data.metaUnicast.length === 0) {
      onUnusable();
      return;
    }
    if (!peer || isOtherParticipant(peer, data, address)) this.#onOther(data, payload, arrival);
    else if (peer.wasProven && !peer.isLocal) this.#onChange(peer, data, payload, address);
    // While the response to a challenge is awaited, the announcement that caused it counts: others from this address may be forged.
    else if (peer.isLocal || monotonicSeconds() >= peer.retryUntilSeconds) peers.update(peer, data, payload, address, monotonicSeconds());
  }

  /** An unproven participant has acknowledged all numbers of a discovery writer below `base`. */
  onAcknowledgement(peer: Peer, writer: EntityId, base: number, address: string): void {
    if (peer.challenge.acknowledge(writer, base)) void this.#onProven(peer, address);
  }

  /**
   * A datagram with the GUID of a proven participant came from another address. If the participant responds from there to what is sent to its
   * path, the address is its own. If it does not respond, an announced address becomes its path. The numbers of the path are sent nowhere
   * else, since the announcement may be forged.
   */
  onOtherAddress(peer: Peer, address: string): void {
    const { monotonicSeconds, peers } = this.#options;
    const now = monotonicSeconds();
    if (!peer.isProven || now < (this.#confirmAgain.get(peer) ?? 0)) return;
    this.#confirmAgain.set(peer, now + CONFIRMATION_PAUSE_SECONDS);
    const announced = peer.data.metaUnicast.find((locator) => locator.address === address);
    void this.confirm(peer).then((presence) => {
      if (presence === 'silent' && announced && peer.isProven) peers.setPath(peer, announced, monotonicSeconds());
    });
  }

  /** An acknowledgement in the name of a proven participant, from any address. */
  onConfirmation(peer: Peer, writer: EntityId, base: number, address: string): void {
    if (this.#confirmations.get(peer)?.acknowledge(writer, base)) this.#options.peers.vouch(peer, address);
  }

  /** Asks a proven participant whether it is present; a participant that was removed meanwhile counts as silent. */
  confirm(peer: Peer): Promise<Presence> {
    const { announcer, endpoints, monotonicSeconds } = this.#options;
    // The path was found silent before.
    if (!peer.isProven) return Promise.resolve('silent');
    const running = this.#confirmations.get(peer);
    if (running) return running.result;
    const send = (): void => announcer.askForPresence(peer, peer.meta, monotonicSeconds());
    const confirmation = new Confirmation({ peer, writers: endpoints.discoveryWriters, send, monotonicSeconds });
    this.#confirmations.set(peer, confirmation);
    return confirmation.result.finally(() => this.#confirmations.delete(peer));
  }

  /**
   * Moves the path of a proven participant to another of its addresses, from which it sends, if it responds there; resolves within half a
   * second to whether it does. Otherwise the path remains as it was.
   */
  moveTo(peer: Peer, address: string): Promise<boolean> {
    const { announcer, monotonicSeconds, peers } = this.#options;
    const locator = peer.data.metaUnicast.find((one) => one.address === address);
    if (!locator || !peer.sources.has(address) || this.#moves.has(peer)) return Promise.resolve(false);
    const former = peer.meta;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#moves.set(peer, () => resolve(true));
    peers.setPath(peer, locator, monotonicSeconds());
    const ask = (): void => announcer.askForPresence(peer, locator, monotonicSeconds());
    ask();
    // Again, since either datagram may be lost.
    setTimeout(() => !peer.isProven && ask(), MOVE_MS / 2).unref();
    setTimeout(() => {
      if (this.#moves.has(peer) && this.#isPresent(peer)) peers.setPath(peer, former, monotonicSeconds());
      resolve(false);
    }, MOVE_MS).unref();
    return promise.finally(() => this.#moves.delete(peer));
  }

  /** Removes the participants whose lease has ended. */
  expire(nowSeconds: number): void {
    for (const peer of this.#options.peers.expired(nowSeconds)) this.#remove(peer, 'lease expired');
  }

  /** Ends all confirmations. */
  stop(): void {
    for (const confirmation of this.#confirmations.values()) confirmation.end('silent');
  }

  #isPresent(peer: Peer): boolean {
    return this.#options.peers.get(peer.key) === peer;
  }

  /** An announcement from an address from which no participant with its GUID sends. */
  #onOther(data: ParticipantData, payload: Buffer, arrival: Arrival): void {
    const { monotonicSeconds, peers } = this.#options;
    const { address } = arrival.source;
    const now = monotonicSeconds();
    const same = peers.withPrefix(data.prefix).find((other) => isSameParticipant(other, data, address));
    // A participant announces itself from all of its addresses. It is challenged at the first one, and reached there while that works.
    if (same?.wasProven) {
      if (!peers.isPathConfirmed(same, now)) this.onOtherAddress(same, address);
    } else if (!same || now - same.foundSeconds >= SAME_SECONDS) this.#add(data, payload, arrival, now);
  }

  #add(data: ParticipantData, announcement: Buffer, arrival: Arrival, now: number): void {
    const { endpoints, limit, log, network, peers } = this.#options;
    const { address } = arrival.source;
    const rivals = peers.withPrefix(data.prefix).map((rival) => rival.challenge);
    const challenge = new Challenge(endpoints.discoveryWriters, MAX_NUMBER, rivals);
    const peer = peers.add(data, challenge, announcement, address, network.isOwn(address), now);
    if (!peer) {
      log('warning', 'too many participants, participant ignored', { limit: LIMITS.participants, from: address });
      return;
    }
    peer.isInGroup = arrival.viaMulticast;
    log('debug', 'participant found', { peer: data.name || data.prefix, address });
    limit.receive(peer.meta.address, arrival.octets);
    arrival.octets = 0;
  }

  /** A participant has responded to its challenge. If others with its GUID were proven before, they are asked first. */
  async #onProven(peer: Peer, source: string): Promise<void> {
    const { endpoints, limit, log, monotonicSeconds, peers } = this.#options;
    const rivals = peer.wasProven ? [] : peers.withPrefix(peer.data.prefix).filter((rival) => rival.wasProven);
    const same = rivals.find((rival) => isSameParticipant(rival, peer.data, peer.meta.address));
    if (same) {
      peers.vouch(same, peer.meta.address);
      peers.remove(peer);
      return;
    }
    for (const rival of rivals) {
      if ((await this.confirm(rival)) === 'present' || !this.#isPresent(rival) || !this.#isPresent(peer)) continue;
      log('notice', 'participant continues at another address', { peer: nameOf(rival), from: rival.meta.address, to: peer.meta.address });
      peers.remove(peer);
      peers.move(rival, peer, monotonicSeconds());
      endpoints.addPeer(rival);
      return;
    }
    if (!this.#isPresent(peer) || peer.isProven) return;
    for (const rival of rivals) {
      log('warning', 'two participants with one GUID', { peer: nameOf(rival), at: rival.meta.address, other: peer.meta.address });
    }
    peers.prove(peer, source);
    limit.restart(peer.meta.address);
    log('debug', 'participant proven', { peer: nameOf(peer), address: peer.meta.address });
    endpoints.addPeer(peer);
    this.#moves.get(peer)?.();
  }

  #onDisposal(peer: Peer, isSigned: boolean): void {
    const { monotonicSeconds } = this.#options;
    // Nobody else can send from this machine in the name of its participants, except its users.
    if (isSigned || peer.isLocal) {
      this.#remove(peer, 'left');
      return;
    }
    // This implementation signs its disposals; others do not, so that only the circumstances show what has happened.
    const now = monotonicSeconds();
    const isCredible = peer.data.vendor !== VENDOR.UNKNOWN && now >= peer.suspectUntilSeconds && now - peer.formerSeconds < FRESH_SECONDS;
    void this.confirm(peer).then((presence) => {
      if (!this.#isPresent(peer)) return;
      if (presence === 'silent') this.#remove(peer, isCredible ? 'left' : 'lost');
      else this.#suspect(peer, 'disposal');
    });
  }

  /** A participant announces other addresses, ports or another lease, or someone else does so in its name. */
  #onChange(peer: Peer, data: ParticipantData, payload: Buffer, source: string): void {
    const { monotonicSeconds, peers } = this.#options;
    // A large announcement is not kept, so that only its content can be compared.
    if (JSON.stringify(data) === JSON.stringify(peer.data)) {
      peer.change = null;
      return;
    }
    const now = monotonicSeconds();
    const { change } = peer;
    const isRepeated = change?.announcement.equals(payload) ?? false;
    if (change && isRepeated) {
      if (now - change.sinceSeconds >= LIMITS.changeSeconds) peers.update(peer, data, payload, source, now);
      return;
    }
    const announcement = copyForComparison(payload);
    peer.change = { announcement, sinceSeconds: now };
    void this.confirm(peer).then((presence) => {
      if (!this.#isPresent(peer)) return;
      if (presence === 'silent') peers.update(peer, data, announcement, source, monotonicSeconds());
    });
  }

  /** Something was sent in the name of a participant that it has refuted: from now on its datagrams alone do not prove its presence. */
  #suspect(peer: Peer, what: string): void {
    const { log, monotonicSeconds } = this.#options;
    const now = monotonicSeconds();
    const wasSuspect = now < peer.suspectUntilSeconds;
    peer.suspectUntilSeconds = now + LIMITS.suspicionSeconds;
    log('warning', 'forged datagram ignored: the participant responds at its address', { peer: nameOf(peer), at: peer.meta.address, what });
    if (!wasSuspect) this.#watch(peer);
  }

  #watch(peer: Peer): void {
    const { monotonicSeconds } = this.#options;
    setTimeout(async () => {
      if (!this.#isPresent(peer) || monotonicSeconds() >= peer.suspectUntilSeconds) return;
      if ((await this.confirm(peer)) === 'present') this.#watch(peer);
      else if (this.#isPresent(peer)) this.#remove(peer, 'lost');
    }, WATCH_MS).unref();
  }

  #remove(peer: Peer, why: 'left' | 'lost' | 'lease expired'): void {
    const { endpoints, log, peers } = this.#options;
    peers.remove(peer);
    this.#confirmations.get(peer)?.end('silent');
    // Others are not matched with any endpoint.
    if (peer.wasProven) endpoints.removePeer(peer, why === 'left');
    log('debug', 'participant gone', { peer: nameOf(peer), why });
  }
}

/**
 * Whether a participant that announces itself from `address` is a known one that has several addresses: both announcements contain both. A
 * forged one alone may contain any.
 */
function isSameParticipant(known: Peer, data: ParticipantData, address: string): boolean {
  const contains = (of: ParticipantData, wanted: string): boolean => of.metaUnicast.some((locator) => locator.address === wanted);
  return contains(known.data, address) && contains(data, known.meta.address);
}

/**
 * Whether an announcement from an address of a known participant is another one's: it contains that address, but not the path to the known
 * one. Anyone can claim a GUID at an own address and acknowledge from a forged one; this must not exclude the participant that is there.
 */
function isOtherParticipant({ isLocal, meta }: Peer, { metaUnicast }: ParticipantData, address: string): boolean {
  if (isLocal || meta.address === address) return false;
  return metaUnicast.some((own) => own.address === address) && !metaUnicast.some((own) => own.address === meta.address);
}

function nameOf({ data }: Peer): string {
  return data.name || data.prefix;
}
