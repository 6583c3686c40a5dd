import type { Change } from '../endpoints/writer.ts';
import type { Logger } from '../log.ts';
import { type AmplificationLimit, pauseSeconds } from '../net/amplification.ts';
import { type Channel, type Interface, isInNetwork, type Network } from '../net/network.ts';
import type { Packer } from '../wire/message-writer.ts';
import { ENTITY, type EntityId, type GuidPrefix, guidOf, type Locator, MULTICAST_GROUP, ports, VENDOR } from '../wire/protocol.ts';
import type { NumberedWriter } from './challenge.ts';
import { endOfInstance, participantKey, participantPayload } from './discovery-data.ts';
import type { Peer, Peers } from './peers.ts';

export interface AnnouncerOptions {
  readonly domain: number;
  readonly prefix: GuidPrefix;
  readonly name: string;
  readonly userData: string;
  readonly network: Network;
  readonly staticPeers: readonly string[];
  /** Announce by multicast on loopback only. */
  readonly localhostOnly: boolean;
  readonly leaseSeconds: number;
  readonly packer: Packer;
  readonly peers: Peers;
  readonly limit: AmplificationLimit;
  /** The discovery writers, whose sequence numbers are the challenge. */
  readonly writers: readonly NumberedWriter[];
  readonly wallMilliseconds: () => number;
  readonly log: Logger;
}

/** 8.5.3.2: the longest announcement period; and announcements per lease, since some of them may be lost. */
const PERIOD_SECONDS = 3;
const ANNOUNCEMENTS_PER_LEASE = 6;
/** The first announcements follow quickly: some may be lost, and peers may start at the same moment. */
const FIRST_PAUSES_SECONDS = [0.1, 0.3, 0.6, 1] as const;
/** Participant indexes tried at each static peer, 32 as in ROS 2; fewer with more than MANY_PEERS static peers. */
const PEER_INDEXES = 32;
const PEER_INDEXES_OF_MANY = 10;
const MANY_PEERS = 4;
/** Retry of a challenge that could not be sent. */
const UNSENT_RETRY_SECONDS = 0.1;
/** Shortest time between two rounds of repeated challenges: the participants that a flood invents would each have a time of their own. */
const CHALLENGE_ROUND_SECONDS = 0.05;
/** Octets of a challenge without announcement and acknowledgements. */
const LEAST_CHALLENGE_OCTETS = 100;
/** An address missing for less than this may return with a link that was down for a moment. */
const LOST_AFTER_SECONDS = 2.5;
/** After a send error the interfaces may have changed: delay before they are read, and shortest time between two reads. */
const RECHECK_SECONDS = 0.2;
const RECHECK_PERIOD_SECONDS = 1;
/** The interfaces are not read again if they were read within this time. */
const FRESH_SECONDS = 0.5;

/** Announces this participant on every interface (8.5.3, SPDP), sends challenges, and detects changes of the interfaces. */
export class Announcer {
  readonly #options: AnnouncerOptions;
  #ports: Readonly<Record<Channel, number>> = { meta: 0, user: 0 };
  #interfaces: readonly Interface[] = [];
  /** Announced addresses, the interface of each, and since when it is missing; null: present. */
  readonly #announced = new Map<string, { readonly name: string; readonly missingSeconds: number | null }>();
  #dueSeconds = Number.POSITIVE_INFINITY;
  #challengeSeconds = Number.POSITIVE_INFINITY;
  #challengedSeconds = Number.NEGATIVE_INFINITY;
  #refreshSeconds = Number.POSITIVE_INFINITY;
  #refreshedSeconds = Number.NEGATIVE_INFINITY;
  #announcements = 0;
  /** By the address of the interface that they are sent from. */
  readonly #payloads = new Map<string, Buffer>();
  /** Incremented with every change of the announcement. */
  #revision = 0;

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  /** Monotonic seconds at which `announce` must be called. */
  get dueSeconds(): number {
    return Math.min(this.#dueSeconds, this.#challengeSeconds, this.#refreshSeconds);
  }

  /** As last read. */
  get interfaces(): readonly Interface[] {
    return this.#interfaces;
  }

  start(boundPorts: Readonly<Record<Channel, number>>, nowSeconds: number): void {
    this.#ports = boundPorts;
    this.#refreshInterfaces(nowSeconds);
    this.#dueSeconds = nowSeconds;
  }

  /**
   * Challenges an unproven participant, if that is due and within the anti-amplification limit. The datagram includes the announcement,
   * which the participant may have missed, unless the limit allows only the heartbeats.
   */
  challenge(peer: Peer, nowSeconds: number): void {
    if (peer.isProven || (nowSeconds < peer.challengeSeconds && peer.pendingAcks.size === 0)) return;
    const isSent = this.#sendChallenge(peer, nowSeconds);
    if (isSent) {
      peer.challenges += 1;
      peer.pendingAcks.clear();
    }
    peer.challengeSeconds = nowSeconds + (isSent ? pauseSeconds(peer.challenges) : UNSENT_RETRY_SECONDS);
    if (peer.challengeSeconds > peer.retryUntilSeconds) return;
    const roundSeconds = Math.max(peer.challengeSeconds, this.#challengedSeconds + CHALLENGE_ROUND_SECONDS);
    this.#challengeSeconds = Math.min(this.#challengeSeconds, roundSeconds);
  }

  /** Sends the heartbeats of the discovery writers to a proven participant, which it must acknowledge, at one of its addresses. */
  askForPresence(peer: Peer, { address, port }: Locator, nowSeconds: number): void {
    const { network, packer, peers, writers } = this.#options;
    network.send('meta', packer.challenge(peer, writers, null), address, port, peers.mayBeUnreachable(peer, nowSeconds));
  }

  /** Reads the interfaces soon rather than with the next announcement, because a send has failed. */
  recheckInterfaces(nowSeconds: number): void {
    if (this.#refreshSeconds !== Number.POSITIVE_INFINITY) return;
    this.#refreshSeconds = Math.max(nowSeconds + RECHECK_SECONDS, this.#refreshedSeconds + RECHECK_PERIOD_SECONDS);
  }

  /** Reads the interfaces and sends the announcements that are due. True: an announced address was removed. */
  announce(nowSeconds: number): boolean {
    if (nowSeconds >= this.#challengeSeconds) this.#challengeAgain(nowSeconds);
    if (nowSeconds < this.#dueSeconds && nowSeconds < this.#refreshSeconds) return false;
    const revision = this.#revision;
    const isLost = this.#refreshInterfaces(nowSeconds);
    if (nowSeconds < this.#dueSeconds && this.#revision === revision) return isLost;
    const { domain, leaseSeconds, network, peers, staticPeers } = this.#options;
    for (const out of this.#groups()) network.multicast(this.#datagram(this.#announcement(out), null), out);
    const indexes = staticPeers.length > MANY_PEERS ? PEER_INDEXES_OF_MANY : PEER_INDEXES;
    for (const address of staticPeers) {
      const datagram = this.#datagram(this.#announcement(this.#interfaceTo(address)), null);
      for (let index = 0; index < indexes; index += 1) {
        const port = ports.metaUnicast(domain, index);
        if (port < 65536 && !(port === this.#ports.meta && network.isOwn(address))) network.send('meta', datagram, address, port, true);
      }
    }
    // Peers outside the multicast group have found this participant through their own static list.
    for (const peer of peers.all()) if (peer.isProven && !peer.isInGroup) this.#announceTo(peer, nowSeconds);
    const pause = FIRST_PAUSES_SECONDS[this.#announcements] ?? Math.min(PERIOD_SECONDS, leaseSeconds / ANNOUNCEMENTS_PER_LEASE);
    this.#announcements += 1;
    this.#dueSeconds = nowSeconds + pause;
    return isLost;
  }

  /**
   * Announces that this participant leaves (8.5.5.2), so that others do not wait for its lease to end. `acknowledged`: the numbers of the
   * discovery writers of a peer that were received, which are known to this participant alone and so prove the origin.
   */
  leave(nowSeconds: number, acknowledged: (peer: Peer) => ReadonlyMap<EntityId, number>): void {
    const { network, packer, peers, prefix } = this.#options;
    const change = {
      ...this.#change(participantKey(prefix)),
      sequenceNumber: this.#revision + 1,
      isKey: true,
      inlineQos: endOfInstance(guidOf(prefix, ENTITY.PARTICIPANT)),
    };
    for (const peer of peers.all()) {
      if (!peer.isProven) continue;
      const signed = packer.disposal(peer.data.prefix, acknowledged(peer), change);
      // Twice, since it may be lost and is not sent again.
      for (let copies = 0; copies < 2; copies += 1)
        network.send('meta', signed, peer.meta.address, peer.meta.port, peers.mayBeUnreachable(peer, nowSeconds));
    }
    const datagram = this.#datagram(change, null);
    for (const out of this.#groups()) network.multicast(datagram, out);
    this.#dueSeconds = Number.POSITIVE_INFINITY;
    this.#challengeSeconds = Number.POSITIVE_INFINITY;
    this.#refreshSeconds = Number.POSITIVE_INFINITY;
  }

  #challengeAgain(nowSeconds: number): void {
    this.#challengedSeconds = nowSeconds;
    this.#challengeSeconds = Number.POSITIVE_INFINITY;
    for (const peer of this.#options.peers.all()) {
      if (!peer.isProven && nowSeconds <= peer.retryUntilSeconds) this.challenge(peer, nowSeconds);
    }
  }

  #sendChallenge(peer: Peer, nowSeconds: number): boolean {
    const { limit, network, packer, peers, writers } = this.#options;
    const { address, port } = peer.meta;
    // What may be sent is asked before anything is serialized: a flood of announcements must not cost more than that.
    const isAtProven = peers.hasProvenAt(address, nowSeconds);
    const allowed = isAtProven ? limit.allowanceAtProven(address) : limit.allowance(address, nowSeconds);
    if (allowed < LEAST_CHALLENGE_OCTETS) {
      peer.retryUntilSeconds = nowSeconds;
      return false;
    }
    const isUrgent = isAtProven || peer.pendingAcks.size > 0;
    if (!isUrgent && (limit.isPausing(address, nowSeconds) || !peers.isNextToChallenge(peer, nowSeconds))) return false;
    const change = this.#announcementFor(peer, nowSeconds);
    if (!change) {
      // Retry after the interfaces have been read again.
      peer.retryUntilSeconds = Math.max(peer.retryUntilSeconds, nowSeconds + RECHECK_PERIOD_SECONDS + FRESH_SECONDS);
      return false;
    }
    for (const announcement of [change, null]) {
      const datagram = packer.challenge(peer, writers, announcement);
      if (datagram.length > allowed) continue;
      limit.spend(address, datagram.length, isAtProven, nowSeconds);
      network.send('meta', datagram, address, port, peers.mayBeUnreachable(peer, nowSeconds));
      return true;
    }
    return false;
  }

  #announceTo(peer: Peer, nowSeconds: number): void {
    const { network, peers } = this.#options;
    const change = this.#announcementFor(peer, nowSeconds);
    if (!change) return;
    const { address, port } = peer.meta;
    network.send('meta', this.#datagram(change, peer.data.prefix), address, port, peers.mayBeUnreachable(peer, nowSeconds));
  }

  /** Null: the interfaces must be read first. */
  #announcementFor({ meta: { address } }: Peer, nowSeconds: number): Change | null {
    const out = this.#interfaceTo(address);
    if (!out && !this.#options.network.isOwn(address)) {
      // The link to it may have just come up. Cyclone DDS keeps the addresses of the first announcement, so a wrong one must not be sent.
      if (nowSeconds - this.#refreshedSeconds > FRESH_SECONDS) this.recheckInterfaces(nowSeconds);
      if (this.#refreshSeconds < Number.POSITIVE_INFINITY || this.#interfaces.every(({ isLoopback }) => isLoopback)) return null;
    }
    return this.#announcement(out);
  }

  /** Reads the interfaces and joins the group on new ones. True: an announced address was removed. */
  #refreshInterfaces(nowSeconds: number): boolean {
    const { log, network } = this.#options;
    this.#refreshSeconds = Number.POSITIVE_INFINITY;
    this.#refreshedSeconds = nowSeconds;
    const now = network.interfaces();
    const before = this.#interfaces;
    network.join(now);
    for (const { address, name, isLoopback } of now) {
      if (before.length > 0 && !before.some((known) => known.address === address))
        log('notice', 'network interface added', { interface: name, address });
      // Loopback is only used where there is no other interface, so its removal does not count.
      if (!isLoopback) this.#announced.set(address, { name, missingSeconds: null });
    }
    let isLost = false;
    // Without any network the address may return together with the link.
    const isOffline = now.every(({ isLoopback }) => isLoopback);
    for (const [address, { name, missingSeconds }] of this.#announced) {
      if (now.some((entry) => entry.address === address)) continue;
      const since = isOffline ? null : (missingSeconds ?? nowSeconds);
      this.#announced.set(address, { name, missingSeconds: since });
      // An interface with a new address will not get the former one back.
      const isReplaced = now.some((entry) => entry.name === name);
      if (!isReplaced && (since === null || nowSeconds - since < LOST_AFTER_SECONDS)) continue;
      this.#announced.delete(address);
      log('notice', 'network address removed', { address });
      isLost = true;
    }
    if (now.length !== before.length || now.some(({ address }, i) => address !== before[i]?.address)) {
      this.#interfaces = now;
      this.#payloads.clear();
      // Fast DDS ignores an announcement whose sequence number it has already received.
      this.#revision += 1;
    }
    return isLost;
  }

  /** The interfaces from which announcements are multicast. */
  #groups(): readonly Interface[] {
    return this.#options.localhostOnly ? this.#interfaces.filter(({ isLoopback }) => isLoopback) : this.#interfaces;
  }

  /** The interface in whose network an address is; null: none. */
  #interfaceTo(address: string): Interface | null {
    return this.#interfaces.find((own) => isInNetwork(address, own)) ?? null;
  }

  /**
   * An announcement contains the address of its interface only, which every receiver can reach; given several, Cyclone DDS may choose one
   * that it cannot reach, and keep it. The other addresses are in vendor parameters that only this implementation reads. `out` null: all
   * addresses.
   */
  #announcement(out: Interface | null): Change {
    const key = out?.address ?? '';
    let payload = this.#payloads.get(key);
    if (!payload) {
      payload = this.#payloadOf(out ? [out] : this.#interfaces);
      this.#payloads.set(key, payload);
    }
    return this.#change(payload);
  }

  #payloadOf(interfaces: readonly Interface[]): Buffer {
    const { domain, name, prefix, userData, leaseSeconds } = this.#options;
    const others = this.#interfaces.filter((entry) => !interfaces.includes(entry));
    const at = (port: number, all = interfaces): Locator[] => all.map(({ address }) => ({ address, port }));
    return participantPayload(
      {
        prefix,
        vendor: VENDOR.UNKNOWN,
        domain,
        name,
        userData,
        leaseSeconds,
        metaUnicast: at(this.#ports.meta),
        userUnicast: at(this.#ports.user),
      },
      { address: MULTICAST_GROUP, port: ports.metaMulticast(domain) },
      { metaUnicast: at(this.#ports.meta, others), userUnicast: at(this.#ports.user, others) },
    );
  }

  #change(payload: Buffer): Change {
    const timestampMs = this.#options.wallMilliseconds();
    return { sequenceNumber: this.#revision, payload, isKey: false, inlineQos: null, timestampMs, only: null, instance: null };
  }

  #datagram(change: Change, destination: GuidPrefix | null): Buffer {
    return this.#options.packer.single(ENTITY.SPDP_WRITER, change, destination);
  }
}
