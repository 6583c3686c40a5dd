import { type AmplificationLimit, pauseSeconds } from './amplification.ts';
import type { NumberedWriter } from './challenge.ts';
import { endOfInstance, participantKey, participantPayload } from './discovery-data.ts';
import type { Logger } from './log.ts';
import { type Channel, type Interface, isInNetwork, type Network } from './network.ts';
import type { Packer } from './packer.ts';
import { isHeardThere, type Peer, type Peers } from './peers.ts';
import { ENTITY, type GuidPrefix, guidOf, type Locator, MULTICAST_GROUP, ports, VENDOR } from './protocol.ts';
import type { Change } from './writer.ts';

export interface AnnouncerOptions {
  readonly domain: number;
  readonly prefix: GuidPrefix;
  readonly name: string;
  readonly userData: string;
  readonly network: Network;
  readonly staticPeers: readonly string[];
  /** The group on the interfaces to other machines is not announced to. */
  readonly localhostOnly: boolean;
  readonly leaseSeconds: number;
  readonly packer: Packer;
  readonly peers: Peers;
  readonly limit: AmplificationLimit;
  /** Discovery's, whose numbers prove a participant. */
  readonly writers: readonly NumberedWriter[];
  readonly wallMilliseconds: () => number;
  readonly log: Logger;
}

/** 8.5.3.2: how often a participant announces itself, at least; and how often within a lease, since some announcements may be lost. */
const PERIOD_SECONDS = 3;
const ANNOUNCEMENTS_PER_LEASE = 6;
/** The first ones come quickly: some are lost, and some peers start at the same moment. */
const FIRST_PAUSES_SECONDS = [0.1, 0.3, 0.6, 1] as const;
/** A static peer is asked at the ports of so many participants, as ROS 2 expects it; where there are many peers, of fewer. */
const PEER_INDEXES = 32;
const PEER_INDEXES_OF_MANY = 10;
const MANY_PEERS = 4;
/** What could not be sent is tried again. */
const CHALLENGE_AGAIN_SECONDS = 0.1;
/** An address that is missing for so long is gone; before that the link may only have been down for a moment. */
const LOST_AFTER_SECONDS = 2.5;
/** When something cannot be sent the interfaces may have changed: they are looked at so soon, and so often at most. */
const SUSPICION_SECONDS = 0.2;
const SUSPICION_PERIOD_SECONDS = 1;
/** What was seen of the interfaces is true for so long. */
const FRESH_SECONDS = 0.5;

/** Says that this participant is there (8.5.3, SPDP), on every interface, and notices when those change. */
export class Announcer {
  readonly #options: AnnouncerOptions;
  #ports: Readonly<Record<Channel, number>> = { meta: 0, user: 0 };
  #interfaces: readonly Interface[] = [];
  /** Addresses told to others, the interface of each, and since when it is missing; null: it is there. */
  readonly #told = new Map<string, { readonly name: string; readonly missingSeconds: number | null }>();
  #dueSeconds = Number.POSITIVE_INFINITY;
  #challengeSeconds = Number.POSITIVE_INFINITY;
  #lookSeconds = Number.POSITIVE_INFINITY;
  #lookedSeconds = Number.NEGATIVE_INFINITY;
  #announcements = 0;
  /** By the address of the interface they go out of. */
  readonly #payloads = new Map<string, Buffer>();
  /** Goes up with every change of what is announced. */
  #revision = 0;

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  /** Of the next announcement, monotonic seconds. */
  get dueSeconds(): number {
    return Math.min(this.#dueSeconds, this.#challengeSeconds, this.#lookSeconds);
  }

  /** As of the last look. */
  get interfaces(): readonly Interface[] {
    return this.#interfaces;
  }

  start(boundPorts: Readonly<Record<Channel, number>>, nowSeconds: number): void {
    this.#ports = boundPorts;
    this.#look(nowSeconds);
    this.#dueSeconds = nowSeconds;
  }

  /**
   * Asks a participant that is not proven to acknowledge its numbers, if that is due and within the anti-amplification limit. Our announcement
   * goes along, which it may have missed, or our heartbeats alone where the limit does not leave more.
   */
  challenge(peer: Peer, nowSeconds: number): void {
    if (peer.isProven || (nowSeconds < peer.challengeSeconds && peer.questions.size === 0)) return;
    const isSent = this.#sendChallenge(peer, nowSeconds);
    if (isSent) {
      peer.challenges += 1;
      peer.questions.clear();
    }
    peer.challengeSeconds = nowSeconds + (isSent ? pauseSeconds(peer.challenges) : CHALLENGE_AGAIN_SECONDS);
    if (peer.challengeSeconds <= peer.insistUntilSeconds) this.#challengeSeconds = Math.min(this.#challengeSeconds, peer.challengeSeconds);
  }

  /** Something could not be sent: the interfaces are looked at before it is time to. */
  suspect(nowSeconds: number): void {
    if (this.#lookSeconds !== Number.POSITIVE_INFINITY) return;
    this.#lookSeconds = Math.max(nowSeconds + SUSPICION_SECONDS, this.#lookedSeconds + SUSPICION_PERIOD_SECONDS);
  }

  /** Announces what is due; looks at the interfaces too. True: an address that others were told is gone. */
  announce(nowSeconds: number): boolean {
    if (nowSeconds >= this.#challengeSeconds) this.#challengeAgain(nowSeconds);
    if (nowSeconds < this.#dueSeconds && nowSeconds < this.#lookSeconds) return false;
    const revision = this.#revision;
    const isLost = this.#look(nowSeconds);
    if (nowSeconds < this.#dueSeconds && this.#revision === revision) return isLost;
    const { domain, leaseSeconds, network, peers, staticPeers } = this.#options;
    for (const out of this.#groups()) network.multicast(this.#datagram(this.#announcement(out), null), out);
    const indexes = staticPeers.length > MANY_PEERS ? PEER_INDEXES_OF_MANY : PEER_INDEXES;
    for (const address of staticPeers) {
      const datagram = this.#datagram(this.#announcement(this.#towards(address)), null);
      for (let index = 0; index < indexes; index += 1) {
        const port = ports.metaUnicast(domain, index);
        if (port < 65536 && !(port === this.#ports.meta && network.isOwn(address))) network.send('meta', datagram, address, port, true);
      }
    }
    // Those whom the group does not reach found us by a list of theirs: they are told directly.
    for (const peer of peers.all()) if (peer.isProven && !peer.isInGroup) this.#announceTo(peer, nowSeconds);
    const pause = FIRST_PAUSES_SECONDS[this.#announcements] ?? Math.min(PERIOD_SECONDS, leaseSeconds / ANNOUNCEMENTS_PER_LEASE);
    this.#announcements += 1;
    this.#dueSeconds = nowSeconds + pause;
    return isLost;
  }

  /** Says that this participant leaves (8.5.5.2), so that nobody waits for its lease to end. */
  leave(nowSeconds: number): void {
    const { network, peers, prefix } = this.#options;
    const change = {
      ...this.#change(participantKey(prefix)),
      sequenceNumber: this.#revision + 1,
      isKey: true,
      inlineQos: endOfInstance(guidOf(prefix, ENTITY.PARTICIPANT)),
    };
    const datagram = this.#datagram(change, null);
    for (const out of this.#groups()) network.multicast(datagram, out);
    for (const peer of peers.all()) {
      if (peer.isProven) network.send('meta', datagram, peer.meta.address, peer.meta.port, peers.isDoubtful(peer, nowSeconds));
    }
    this.#dueSeconds = Number.POSITIVE_INFINITY;
    this.#challengeSeconds = Number.POSITIVE_INFINITY;
    this.#lookSeconds = Number.POSITIVE_INFINITY;
  }

  #challengeAgain(nowSeconds: number): void {
    this.#challengeSeconds = Number.POSITIVE_INFINITY;
    for (const peer of this.#options.peers.all()) {
      if (!peer.isProven && nowSeconds <= peer.insistUntilSeconds) this.challenge(peer, nowSeconds);
    }
  }

  #sendChallenge(peer: Peer, nowSeconds: number): boolean {
    const { limit, network, packer, peers, writers } = this.#options;
    const { address, port } = peer.meta;
    const change = this.#announcementFor(peer, nowSeconds);
    if (!change) {
      // After the next look at the interfaces.
      peer.insistUntilSeconds = Math.max(peer.insistUntilSeconds, nowSeconds + SUSPICION_PERIOD_SECONDS + FRESH_SECONDS);
      return false;
    }
    const isAsked = peer.questions.size > 0;
    const isHeard = isHeardThere(peer);
    const turn = peers.turnOf(peer, nowSeconds);
    if (turn === 'not yet' && !isAsked) return false;
    for (const announcement of [change, null]) {
      const datagram = packer.challenge(peer, writers, announcement);
      const may =
        turn === 'proven address' && isHeard
          ? limit.spendAtProven(address, datagram.length)
          : limit.spend(address, datagram.length, isHeard, isAsked, nowSeconds);
      if (!may) continue;
      network.send('meta', datagram, address, port, peers.isDoubtful(peer, nowSeconds));
      return true;
    }
    return false;
  }

  #announceTo(peer: Peer, nowSeconds: number): void {
    const { network, peers } = this.#options;
    const change = this.#announcementFor(peer, nowSeconds);
    if (!change) return;
    const { address, port } = peer.meta;
    network.send('meta', this.#datagram(change, peer.data.prefix), address, port, peers.isDoubtful(peer, nowSeconds));
  }

  /** Null: not now. */
  #announcementFor({ meta: { address } }: Peer, nowSeconds: number): Change | null {
    const out = this.#towards(address);
    if (!out && !this.#options.network.isOwn(address)) {
      // Perhaps the link to it has just come back: what would be announced is wrong then, and some never read another one (Cyclone DDS).
      if (nowSeconds - this.#lookedSeconds > FRESH_SECONDS) this.suspect(nowSeconds);
      if (this.#lookSeconds < Number.POSITIVE_INFINITY || this.#interfaces.every(({ isLoopback }) => isLoopback)) return null;
    }
    return this.#announcement(out);
  }

  /** Takes note of the interfaces as they are now, and listens on new ones. */
  #look(nowSeconds: number): boolean {
    const { log, network } = this.#options;
    this.#lookSeconds = Number.POSITIVE_INFINITY;
    this.#lookedSeconds = nowSeconds;
    const now = network.interfaces();
    const before = this.#interfaces;
    network.join(now);
    for (const { address, name, isLoopback } of now) {
      if (before.length > 0 && !before.some((known) => known.address === address))
        log('notice', 'network interface added', { interface: name, address });
      // Loopback stands in where there is no other, and is no loss.
      if (!isLoopback) this.#told.set(address, { name, missingSeconds: null });
    }
    let isLost = false;
    // Off the network there is nobody to be told: with the link its address may come back.
    const isOffline = now.every(({ isLoopback }) => isLoopback);
    for (const [address, { name, missingSeconds }] of this.#told) {
      if (now.some((entry) => entry.address === address)) continue;
      const since = isOffline ? null : (missingSeconds ?? nowSeconds);
      this.#told.set(address, { name, missingSeconds: since });
      // Where its interface has another one it does not come back.
      const isReplaced = now.some((entry) => entry.name === name);
      if (!isReplaced && (since === null || nowSeconds - since < LOST_AFTER_SECONDS)) continue;
      this.#told.delete(address);
      log('notice', 'network address removed', { address });
      isLost = true;
    }
    if (now.length !== before.length || now.some(({ address }, i) => address !== before[i]?.address)) {
      this.#interfaces = now;
      this.#payloads.clear();
      // Some read an announcement again only under a new number (Fast DDS).
      this.#revision += 1;
    }
    return isLost;
  }

  /** The interfaces on which the group is announced to. */
  #groups(): readonly Interface[] {
    return this.#options.localhostOnly ? this.#interfaces.filter(({ isLoopback }) => isLoopback) : this.#interfaces;
  }

  /** The interface that leads to an address; null: none in particular. */
  #towards(address: string): Interface | null {
    return this.#interfaces.find((own) => isInNetwork(address, own)) ?? null;
  }

  /**
   * What goes out of an interface names the address there and no other: whoever hears it can reach that one, while some of those who are
   * told of several choose one that they cannot reach, and stay with it (Cyclone DDS). The others go along where only this implementation
   * reads them. Null: all of them.
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
