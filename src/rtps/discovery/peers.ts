import { copyOf, LIMITS } from '../limits.ts';
import { type Interface, isBroadcast } from '../net/network.ts';
import type { EntityId, Guid, GuidPrefix, Locator } from '../wire/protocol.ts';
import { type Challenge, randomOctets } from './challenge.ts';
import type { ParticipantData } from './discovery-data.ts';

/** A remote participant: a GUID prefix at an address. Anyone can send a GUID, so the same one at another address is another participant. */
export interface Peer {
  /**
   * The prefix of its GUIDs inside this program: its own, or an invented one when another participant with the same GUID was known first,
   * since neither of the two may exclude the other. It changes only before the participant is proven.
   */
  key: GuidPrefix;
  data: ParticipantData;
  /** The last announcement as received: an identical one is not parsed again. Empty when it was too large to be kept. */
  announcement: Buffer;
  /** The locator to which discovery is sent, the path to the peer: at the source address of its announcement. */
  meta: Locator;
  /** The locator to which samples are sent, at the same address; null: only to the ports that endpoints announce. */
  user: Locator | null;
  /**
   * The addresses from which its datagrams are accepted: that of `meta`, and those from which numbers were acknowledged that had been sent
   * to `meta` only.
   */
  readonly sources: Set<string>;
  /** A changed announcement that is not believed yet, and when it was first received; null: none. */
  change: { readonly announcement: Buffer; readonly sinceSeconds: number } | null;
  /** Until then it must confirm its presence regularly, because it has refuted a forged datagram. Monotonic seconds. */
  suspectUntilSeconds: number;
  /** It is on this machine, and may send from any address of this machine. */
  isLocal: boolean;
  /** Monotonic seconds. */
  readonly foundSeconds: number;
  /** Monotonic seconds of its last datagram, from any of its addresses, and of the one before. */
  receivedSeconds: number;
  formerSeconds: number;
  /** Monotonic seconds of its last datagram from the address of `meta`, or of its last acknowledgement of data sent there. */
  pathConfirmedSeconds: number;
  /** Monotonic seconds of its last datagram from the address of `meta`. */
  receivedFromPathSeconds: number;
  /** Its announcements arrive by multicast; otherwise announcements must be sent to it by unicast. */
  isInGroup: boolean;
  /** It has responded to the challenge, so it receives datagrams at the address of `meta`. Until then only challenges are sent there. */
  isProven: boolean;
  /** It has been proven at least once, at this address or another one: its endpoints are matched. */
  wasProven: boolean;
  challenge: Challenge;
  /**
   * Number of challenges sent; when the next one is due; until when challenges are repeated without a datagram from the peer.
   * Monotonic seconds.
   */
  challenges: number;
  challengeSeconds: number;
  retryUntilSeconds: number;
  /** First numbers of its discovery writers: possibly its own challenge, to be acknowledged. */
  readonly pendingAcks: Map<EntityId, number>;
  /** Its endpoints that are matched with local ones. */
  readonly matched: Set<Guid>;
  /** Ports of endpoints that announce another port than `user`. */
  readonly ports: Map<Guid, number>;
}

/** After this time without a sign of life over the path, another address from which the peer sends is used. */
const PATH_TIMEOUT_SECONDS = 6;
/** Addresses of one participant from which its datagrams are accepted; a host has one per interface. */
const MAX_SOURCES = 16;
/**
 * For this long, a peer that was just found or has moved is challenged repeatedly even if it sends nothing: Fast DDS may not yet read
 * when the first challenge arrives, Cyclone DDS may read the heartbeat before the announcement. Afterwards only a datagram from the peer
 * triggers a challenge.
 */
const CHALLENGE_RETRY_SECONDS = 1;
/** A participant that sent a datagram within this time is active: the announcement period is about three seconds. */
const ACTIVE_SECONDS = 4;
/** Shortest time between two searches for ended leases: a flood invents participants whose leases end all the time. */
const EXPIRY_PAUSE_SECONDS = 0.1;
/** For this long after a proof, its address counts as one that responds. */
const PROVEN_SECONDS = 3600;
/** A host counts as reachable this long after a datagram from it: about as long as the kernel keeps a neighbour entry reachable. */
const PRESENT_SECONDS = 5;

/** The remote participants (8.5.3), with the address of each and the end of its lease. */
export class Peers {
  /** By their keys. */
  readonly #peers = new Map<GuidPrefix, Peer>();
  /** The participants of each GUID prefix that more than one has had. */
  readonly #sharing = new Map<GuidPrefix, readonly Peer[]>();
  /** By the address of `meta`. */
  readonly #atAddress = new Map<string, Set<Peer>>();
  /** Those that were never proven, by their last datagram. */
  readonly #neverProven = new Set<Peer>();
  /** When a participant was last proven at an address, the oldest first. Monotonic seconds. */
  readonly #provenAt = new Map<string, number>();
  /** When a lease may have ended. */
  #nextExpirySeconds = Number.POSITIVE_INFINITY;
  #expiredSeconds = Number.NEGATIVE_INFINITY;
  #refused = 0;

  get size(): number {
    return this.#peers.size;
  }

  /** Announcements refused because of LIMITS.participants. */
  get refused(): number {
    return this.#refused;
  }

  get nextExpirySeconds(): number {
    return this.#nextExpirySeconds;
  }

  get(key: GuidPrefix): Peer | undefined {
    return this.#peers.get(key);
  }

  /** The participants with a GUID prefix, at different addresses. */
  withPrefix(prefix: GuidPrefix): readonly Peer[] {
    const sharing = this.#sharing.get(prefix);
    if (sharing) return sharing;
    const only = this.#peers.get(prefix);
    return only ? [only] : [];
  }

  /** The participant with a GUID prefix that sends from an address. `isOwn`: it is an address of this machine. */
  find(prefix: GuidPrefix, source: string, isOwn: boolean): Peer | undefined {
    const matches = (peer: Peer): boolean => peer.sources.has(source) || (isOwn && peer.isLocal);
    const sharing = this.#sharing.get(prefix);
    if (sharing) {
      const isAtPath = ({ meta }: Peer): boolean => meta.address === source;
      return sharing.find(isAtPath) ?? sharing.find((peer) => peer.wasProven && matches(peer)) ?? sharing.find(matches);
    }
    const only = this.#peers.get(prefix);
    return only && matches(only) ? only : undefined;
  }

  all(): Iterable<Peer> {
    return this.#peers.values();
  }

  /**
   * Adds a participant that announces itself from `source`. At a limit the unproven participant with the oldest datagram is removed, of all or
   * of those with this GUID or at this address. Null: all are proven.
   */
  add(
    data: ParticipantData,
    challenge: Challenge,
    announcement: Buffer,
    source: string,
    isLocal: boolean,
    nowSeconds: number,
  ): Peer | null {
    const meta = pathFrom(data, source, isLocal);
    const atAddress = this.#atAddress.get(meta.address);
    if (atAddress && atAddress.size >= LIMITS.unprovenAtAddress) {
      const unproven = [...atAddress].filter(({ wasProven }) => !wasProven);
      if (unproven.length >= LIMITS.unprovenAtAddress) this.remove(oldestOf(unproven) as Peer);
    }
    const isFull = this.#peers.size >= LIMITS.participants;
    const rivals = this.withPrefix(data.prefix);
    const hasTooManyRivals = rivals.length >= LIMITS.participantsOfGuid;
    if (isFull || hasTooManyRivals) {
      const [oldest] = this.#neverProven;
      const evicted = hasTooManyRivals ? oldestOf(rivals.filter(({ wasProven }) => !wasProven)) : oldest;
      if (!evicted) {
        this.#refused += 1;
        return null;
      }
      this.remove(evicted);
    }
    const others = this.withPrefix(data.prefix);
    const peer: Peer = {
      key: this.#peers.has(data.prefix) ? inventedKey() : data.prefix,
      data,
      announcement: copyForComparison(announcement),
      meta,
      user: userLocator(data, meta),
      sources: new Set([source, meta.address]),
      change: null,
      suspectUntilSeconds: Number.NEGATIVE_INFINITY,
      isLocal,
      foundSeconds: nowSeconds,
      receivedSeconds: nowSeconds,
      formerSeconds: nowSeconds,
      pathConfirmedSeconds: nowSeconds,
      receivedFromPathSeconds: nowSeconds,
      isInGroup: false,
      isProven: false,
      wasProven: false,
      challenge,
      challenges: 0,
      challengeSeconds: nowSeconds,
      retryUntilSeconds: nowSeconds + CHALLENGE_RETRY_SECONDS,
      pendingAcks: new Map(),
      matched: new Set(),
      ports: new Map(),
    };
    this.#peers.set(peer.key, peer);
    this.#neverProven.add(peer);
    this.#enter(peer);
    if (others.length > 0 || peer.key !== data.prefix) this.#sharing.set(data.prefix, [...others, peer]);
    this.#expectExpiry(peer);
    return peer;
  }

  /** Applies a changed announcement: other ports, another address, another lease. */
  update(peer: Peer, data: ParticipantData, announcement: Buffer, source: string, nowSeconds: number): void {
    peer.data = data;
    peer.announcement = copyForComparison(announcement);
    peer.change = null;
    this.setPath(peer, data.metaUnicast.find((locator) => isSame(locator, peer.meta)) ?? pathFrom(data, source, peer.isLocal), nowSeconds);
    this.#expectExpiry(peer);
  }

  /** A proven participant that is not reachable any more continues at the address at which `successor`, with the same GUID, is proven. */
  move(peer: Peer, { announcement, challenge, data, isLocal, meta, sources }: Peer, nowSeconds: number): void {
    peer.data = data;
    peer.announcement = announcement;
    peer.change = null;
    peer.challenge = challenge;
    peer.isLocal = isLocal;
    this.#place(peer, meta);
    peer.sources.clear();
    for (const source of sources) peer.sources.add(source);
    peer.receivedSeconds = nowSeconds;
    peer.pathConfirmedSeconds = nowSeconds;
    peer.receivedFromPathSeconds = nowSeconds;
    this.prove(peer, meta.address);
  }

  /**
   * Whether a participant is proven at an address, or was within the last hour: its host responds to what is sent there, so that a robot which
   * restarts is not kept waiting by participants that others invent at its address.
   */
  hasProvenAt(address: string, nowSeconds: number): boolean {
    if (nowSeconds - (this.#provenAt.get(address) ?? Number.NEGATIVE_INFINITY) < PROVEN_SECONDS) return true;
    for (const { isProven } of this.#atAddress.get(address) ?? []) if (isProven) return true;
    return false;
  }

  /**
   * Whether a peer may be challenged before the others at its address. Active ones with fewer challenges go first: few datagrams are allowed
   * per address, and one that never responds must not use them up.
   */
  isNextToChallenge({ challenges, meta }: Peer, nowSeconds: number): boolean {
    for (const other of this.#atAddress.get(meta.address) ?? [])
      if (other.challenges < challenges && nowSeconds - other.receivedSeconds < ACTIVE_SECONDS) return false;
    return true;
  }

  /** Marks a peer that has responded to its challenge, from `source`. */
  prove(peer: Peer, source: string): void {
    if (!peer.wasProven) this.#giveOwnKey(peer);
    this.#neverProven.delete(peer);
    const { address } = peer.meta;
    this.#provenAt.delete(address);
    this.#provenAt.set(address, peer.receivedSeconds);
    if (this.#provenAt.size > LIMITS.participants) this.#provenAt.delete(this.#provenAt.keys().next().value as string);
    peer.isProven = true;
    peer.wasProven = true;
    peer.sources.add(peer.meta.address);
    this.vouch(peer, source);
    peer.pendingAcks.clear();
    this.#expectExpiry(peer);
  }

  /** An unproven participant does not keep the key that is the prefix of both from one that is proven. */
  #giveOwnKey(peer: Peer): void {
    const { key, data } = peer;
    const holder = this.#peers.get(data.prefix);
    if (holder === peer || holder?.wasProven) return;
    this.#peers.delete(key);
    if (holder) this.#peers.set(key, Object.assign(holder, { key }));
    this.#peers.set(data.prefix, Object.assign(peer, { key: data.prefix }));
  }

  /** A participant has acknowledged, from `source`, numbers that were sent to its path only: it sends from there. */
  vouch({ sources }: Peer, source: string): void {
    if (sources.size < MAX_SOURCES) sources.add(source);
  }

  /** Renews the lease of a peer from which a datagram was received, and changes the path to it if the current one does not work. */
  recordDatagram(peer: Peer, source: string, nowSeconds: number): void {
    peer.formerSeconds = peer.receivedSeconds;
    peer.receivedSeconds = nowSeconds;
    if (this.#neverProven.delete(peer)) this.#neverProven.add(peer);
    if (source === peer.meta.address) {
      peer.pathConfirmedSeconds = nowSeconds;
      peer.receivedFromPathSeconds = nowSeconds;
    } else if (!this.isPathConfirmed(peer, nowSeconds)) this.setPath(peer, pathFrom(peer.data, source, peer.isLocal), nowSeconds);
  }

  /** Whether a sign of life over the path to a peer was recently received. */
  isPathConfirmed({ pathConfirmedSeconds }: Peer, nowSeconds: number): boolean {
    return nowSeconds - pathConfirmedSeconds < PATH_TIMEOUT_SECONDS;
  }

  /**
   * Whether no datagram has recently arrived from the address of `meta`, or only such as may be forged. What is sent to an address that nobody
   * has waits in the kernel for seconds, and with it what is sent to others over the same socket.
   */
  mayBeUnreachable({ meta, receivedFromPathSeconds }: Peer, nowSeconds: number): boolean {
    return nowSeconds - receivedFromPathSeconds > PRESENT_SECONDS || !this.hasProvenAt(meta.address, nowSeconds);
  }

  /** An acknowledgement confirms the path to a peer, from whatever address it was sent. */
  recordAcknowledgement(peer: Peer, nowSeconds: number): void {
    peer.pathConfirmedSeconds = nowSeconds;
  }

  remove(peer: Peer): void {
    const { prefix } = peer.data;
    this.#peers.delete(peer.key);
    this.#neverProven.delete(peer);
    this.#leave(peer);
    const others = this.#sharing.get(prefix)?.filter((other) => other !== peer) ?? [];
    // A single one is found by its key, if that is its own.
    if (others.length === 0 || (others.length === 1 && others[0]?.key === prefix)) this.#sharing.delete(prefix);
    else this.#sharing.set(prefix, others);
  }

  /** The peers whose lease has ended; they are not removed. */
  expired(nowSeconds: number): Peer[] {
    const ended: Peer[] = [];
    this.#nextExpirySeconds = Number.POSITIVE_INFINITY;
    this.#expiredSeconds = nowSeconds;
    for (const peer of this.#peers.values()) {
      if (nowSeconds > peer.receivedSeconds + leaseSeconds(peer)) ended.push(peer);
      else this.#expectExpiry(peer);
    }
    return ended;
  }

  /** Extends all leases after this process was stopped: datagrams received meanwhile have not been read yet. */
  extendLeases(seconds: number): void {
    for (const peer of this.#peers.values()) {
      peer.receivedSeconds += seconds;
      peer.pathConfirmedSeconds += seconds;
      peer.receivedFromPathSeconds += seconds;
    }
  }

  #expectExpiry(peer: Peer): void {
    const endSeconds = Math.max(peer.receivedSeconds + leaseSeconds(peer), this.#expiredSeconds + EXPIRY_PAUSE_SECONDS);
    this.#nextExpirySeconds = Math.min(this.#nextExpirySeconds, endSeconds);
  }

  /**
   * At another address a peer must be proven again, with new numbers, which are not known at the former address. On this machine,
   * where another port may be another user's, and before the first proof this holds for another port, too.
   */
  setPath(peer: Peer, meta: Locator, nowSeconds: number): void {
    const isNewPath = meta.address !== peer.meta.address || ((peer.isLocal || !peer.wasProven) && meta.port !== peer.meta.port);
    this.#place(peer, meta);
    if (!isNewPath) return;
    peer.sources.add(meta.address);
    peer.isProven = false;
    peer.pathConfirmedSeconds = nowSeconds;
    peer.receivedFromPathSeconds = nowSeconds;
    peer.challenges = 0;
    peer.challengeSeconds = nowSeconds;
    peer.retryUntilSeconds = nowSeconds + CHALLENGE_RETRY_SECONDS;
    peer.challenge.renew();
    this.#expectExpiry(peer);
  }

  #place(peer: Peer, meta: Locator): void {
    this.#leave(peer);
    peer.meta = meta;
    peer.user = userLocator(peer.data, meta);
    this.#enter(peer);
  }

  #enter(peer: Peer): void {
    const { address } = peer.meta;
    const present = this.#atAddress.get(address);
    if (present) present.add(peer);
    else this.#atAddress.set(address, new Set([peer]));
  }

  #leave(peer: Peer): void {
    const { address } = peer.meta;
    const present = this.#atAddress.get(address);
    present?.delete(peer);
    if (present?.size === 0) this.#atAddress.delete(address);
  }
}

/** The peer with the oldest datagram; undefined: there is none. */
function oldestOf(peers: readonly Peer[]): Peer | undefined {
  return peers.reduce<Peer | undefined>(
    (oldest, peer) => (oldest && oldest.receivedSeconds <= peer.receivedSeconds ? oldest : peer),
    undefined,
  );
}

/** A prefix that no datagram contains, so that none can name it. */
function inventedKey(): GuidPrefix {
  return randomOctets(12).toString('hex');
}

/**
 * The path to a participant that announces itself from `source`: always at that address, because a datagram to another one could be an attack
 * on its owner. Fast DDS does not announce a changed address, but keeps its ports. Participants of this machine may announce any of its
 * addresses.
 */
export function pathFrom({ metaUnicast }: ParticipantData, source: string, isLocal: boolean): Locator {
  const [first] = metaUnicast;
  if (!first) throw new RangeError('a participant without address');
  return metaUnicast.find(({ address }) => address === source) ?? (isLocal ? first : { ...first, address: source });
}

/**
 * A participant that was never proven may be forged with the address of an uninvolved host, so its lease is short; or its announcement is,
 * so that no shorter one counts.
 */
function leaseSeconds({ data, isProven, wasProven }: Peer): number {
  if (!wasProven) return LIMITS.unansweredLeaseSeconds;
  return isProven ? data.leaseSeconds : Math.min(data.leaseSeconds, LIMITS.unansweredLeaseSeconds);
}

/** Samples are sent to the address of `meta` only, since no other address is proven. */
function userLocator({ metaUnicast, userUnicast }: ParticipantData, { address }: Locator): Locator | null {
  const announced = userUnicast.find((locator) => locator.address === address);
  if (announced || metaUnicast.some((locator) => locator.address === address)) return announced ?? null;
  // The peer has moved, and still announces its former address.
  const [former] = userUnicast;
  return former ? { ...former, address } : null;
}

/**
 * The locators accepted in an announcement from `source`: from this machine only its own addresses, from another one none of them, and never
 * a broadcast address of an attached network.
 */
export function usableLocators(
  locators: readonly Locator[],
  source: string,
  interfaces: readonly Interface[],
  isOwn: (address: string) => boolean,
): Locator[] {
  const isLocal = isOwn(source);
  return locators.filter(({ address }) => isLocal === isOwn(address) && !interfaces.some((own) => isBroadcast(address, own)));
}

/** A copy of an announcement; empty if it is too large to be kept. */
export function copyForComparison(announcement: Buffer): Buffer {
  return copyOf(announcement.length > LIMITS.announcementOctets ? announcement.subarray(0, 0) : announcement);
}

function isSame(a: Locator, b: Locator): boolean {
  return a.address === b.address && a.port === b.port;
}
