import { copyOf, LIMITS } from '../limits.ts';
import { type Interface, isBroadcast, isInNetwork } from '../net/network.ts';
import type { EntityId, Guid, GuidPrefix, Locator } from '../wire/protocol.ts';
import type { Challenge } from './challenge.ts';
import type { ParticipantData } from './discovery-data.ts';

/** A remote participant. */
export interface Peer {
  data: ParticipantData;
  /** The last announcement as received: an identical one is not parsed again. Empty when it was too large to be kept. */
  announcement: Buffer;
  /** The locator to which discovery is sent: the path to the peer. */
  meta: Locator;
  /** The locator to which samples are sent, at the same address; null: only to the ports that endpoints announce. */
  user: Locator | null;
  /** The addresses it may send from: those that it announces, and the source of its announcement. */
  addresses: ReadonlySet<string>;
  /** It is on this machine, and may send from any address of this machine. */
  isLocal: boolean;
  /** Monotonic seconds. */
  readonly foundSeconds: number;
  /** Monotonic seconds of its last datagram, from any address. */
  receivedSeconds: number;
  /** Monotonic seconds of its last datagram from the address of `meta`, or of its last acknowledgement of data sent there. */
  pathConfirmedSeconds: number;
  /** Monotonic seconds of its last datagram from the address of `meta`; -Infinity: none. */
  receivedFromPathSeconds: number;
  /** Its announcements arrive by multicast; otherwise announcements must be sent to it by unicast. */
  isInGroup: boolean;
  /** It has responded to the challenge, so it receives datagrams at the address of `meta`. Until then only challenges are sent there. */
  isProven: boolean;
  /** It has been proven at least once, at this address or another one: its endpoints are matched. */
  wasProven: boolean;
  readonly challenge: Challenge;
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

/** After this time without a datagram over the chosen path, another announced address from which the peer sends is used. */
const PATH_TIMEOUT_SECONDS = 6;
/** The same for an address that is not announced: Fast DDS does not announce a changed address. */
const MOVED_TIMEOUT_SECONDS = 8;
/**
 * For this long, a peer that was just found or has moved is challenged repeatedly even if it sends nothing: Fast DDS may not yet read
 * when the first challenge arrives, Cyclone DDS may read the heartbeat before the announcement. Afterwards only a datagram from the peer
 * triggers a challenge.
 */
const CHALLENGE_RETRY_SECONDS = 1;
/** A participant that sent a datagram within this time is active: the announcement period is about three seconds. */
const ACTIVE_SECONDS = 4;
/** A host counts as reachable this long after a datagram from it: about as long as the kernel keeps a neighbour entry reachable. */
const PRESENT_SECONDS = 5;

/** The remote participants (8.5.3), with the address of each and the end of its lease. */
export class Peers {
  readonly #peers = new Map<GuidPrefix, Peer>();
  /** A lower bound of the end of all leases. */
  #nextExpirySeconds = Number.POSITIVE_INFINITY;
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

  get(prefix: GuidPrefix): Peer | undefined {
    return this.#peers.get(prefix);
  }

  all(): Iterable<Peer> {
    return this.#peers.values();
  }

  /**
   * Adds a new participant, which must announce at least one address for discovery. At the limit the oldest unproven participant is
   * removed and returned as `evicted`; when all are proven, the new one is refused.
   */
  add(
    data: ParticipantData,
    challenge: Challenge,
    announcement: Buffer,
    source: string,
    interfaces: readonly Interface[],
    nowSeconds: number,
  ): { readonly peer: Peer | null; readonly evicted: Peer | null } {
    const evicted = this.#peers.size >= LIMITS.participants ? this.#oldestUnproven() : null;
    if (evicted) this.#peers.delete(evicted.data.prefix);
    if (this.#peers.size >= LIMITS.participants) {
      this.#refused += 1;
      return { peer: null, evicted };
    }
    const meta = chooseLocator(data.metaUnicast, source, interfaces);
    if (!meta) throw new RangeError('a participant without address');
    const peer: Peer = {
      data,
      announcement: copyForComparison(announcement),
      meta,
      user: userLocator(data, meta),
      addresses: addressesOf(data, source),
      isLocal: false,
      foundSeconds: nowSeconds,
      receivedSeconds: nowSeconds,
      pathConfirmedSeconds: nowSeconds,
      receivedFromPathSeconds: Number.NEGATIVE_INFINITY,
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
    if (source === meta.address) peer.receivedFromPathSeconds = nowSeconds;
    this.#peers.set(data.prefix, peer);
    this.#expectExpiry(peer);
    return { peer, evicted };
  }

  /** Applies a changed announcement: new addresses, another lease. */
  update(
    peer: Peer,
    data: ParticipantData,
    announcement: Buffer,
    source: string,
    interfaces: readonly Interface[],
    nowSeconds: number,
  ): void {
    peer.data = data;
    peer.announcement = copyForComparison(announcement);
    peer.addresses = addressesOf(data, source);
    const path = data.metaUnicast.find((locator) => isSame(locator, peer.meta)) ?? chooseLocator(data.metaUnicast, source, interfaces);
    if (path) this.#setPath(peer, path, nowSeconds);
    this.#expectExpiry(peer);
  }

  /**
   * Whether another participant is proven at a peer's address, or otherwise whether the peer may be challenged now. Active participants
   * with fewer challenges go first: few datagrams are allowed per address, and one that never responds must not use them up.
   */
  challengeTurn(peer: Peer, nowSeconds: number): 'proven address' | 'its turn' | 'not yet' {
    let turn: 'its turn' | 'not yet' = 'its turn';
    for (const other of this.#peers.values()) {
      if (other.meta.address !== peer.meta.address) continue;
      if (other.isProven) return 'proven address';
      const isActive = nowSeconds - other.receivedSeconds < ACTIVE_SECONDS && (isPathAddressSeen(other) || !isPathAddressSeen(peer));
      if (isActive && other.challenges < peer.challenges) turn = 'not yet';
    }
    return turn;
  }

  /** Marks a peer that has responded to its challenge. */
  prove(peer: Peer): void {
    peer.isProven = true;
    peer.wasProven = true;
    peer.pendingAcks.clear();
    this.#expectExpiry(peer);
  }

  /** Renews the lease of a peer from which a datagram was received, and changes the path to it if the current one does not work. */
  recordDatagram(peer: Peer, source: string, interfaces: readonly Interface[], nowSeconds: number): void {
    peer.receivedSeconds = nowSeconds;
    if (source === peer.meta.address) {
      peer.pathConfirmedSeconds = nowSeconds;
      peer.receivedFromPathSeconds = nowSeconds;
      return;
    }
    const unconfirmedSeconds = nowSeconds - peer.pathConfirmedSeconds;
    const isAnnounced = peer.data.metaUnicast.some(({ address }) => address === source);
    if (unconfirmedSeconds < (isAnnounced ? PATH_TIMEOUT_SECONDS : MOVED_TIMEOUT_SECONDS)) return;
    const { meta, data } = peer;
    const wasMoved = !data.metaUnicast.some((locator) => isSame(locator, meta));
    // When an unannounced address has not worked either, the announced ones are tried again.
    const isMoving = !isAnnounced && !wasMoved;
    const path = isMoving ? { ...meta, address: source } : chooseLocator(data.metaUnicast, source, interfaces);
    if (path) this.#setPath(peer, path, nowSeconds);
    peer.pathConfirmedSeconds = nowSeconds;
    peer.receivedFromPathSeconds = source === peer.meta.address ? nowSeconds : Number.NEGATIVE_INFINITY;
  }

  /** Whether no datagram has recently arrived from the address of `meta`. */
  mayBeUnreachable({ receivedFromPathSeconds }: Peer, nowSeconds: number): boolean {
    return nowSeconds - receivedFromPathSeconds > PRESENT_SECONDS;
  }

  /** An acknowledgement confirms the path to a peer, from whatever address it was sent. */
  recordAcknowledgement(peer: Peer, nowSeconds: number): void {
    peer.pathConfirmedSeconds = nowSeconds;
  }

  remove(prefix: GuidPrefix): void {
    this.#peers.delete(prefix);
  }

  /** The peers whose lease has ended; they are not removed. */
  expired(nowSeconds: number): Peer[] {
    const ended: Peer[] = [];
    this.#nextExpirySeconds = Number.POSITIVE_INFINITY;
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
    this.#nextExpirySeconds = Math.min(this.#nextExpirySeconds, peer.receivedSeconds + leaseSeconds(peer));
  }

  /**
   * At another address a peer must be proven again, with new numbers, which are not known at the former address. On this machine this
   * holds for another port, too, which may be another user's.
   */
  #setPath(peer: Peer, meta: Locator, nowSeconds: number): void {
    const isNewPath = meta.address !== peer.meta.address || (peer.isLocal && meta.port !== peer.meta.port);
    peer.meta = meta;
    peer.user = userLocator(peer.data, meta);
    if (!isNewPath) return;
    peer.isProven = false;
    peer.challenges = 0;
    peer.challengeSeconds = nowSeconds;
    peer.retryUntilSeconds = nowSeconds + CHALLENGE_RETRY_SECONDS;
    peer.challenge.renew();
    this.#expectExpiry(peer);
  }

  #oldestUnproven(): Peer | null {
    let oldest: Peer | null = null;
    for (const peer of this.#peers.values()) {
      if (!peer.isProven && (!oldest || peer.receivedSeconds < oldest.receivedSeconds)) oldest = peer;
    }
    return oldest;
  }
}

/** Whether any datagram came from the address of `meta`, rather than only naming it. */
export function isPathAddressSeen({ receivedFromPathSeconds }: Peer): boolean {
  return receivedFromPathSeconds > Number.NEGATIVE_INFINITY;
}

/**
 * The locator to send to: at the source address of the announcement, which is known to work; else in a directly attached network; else
 * the first.
 */
export function chooseLocator(locators: readonly Locator[], source: string, interfaces: readonly Interface[]): Locator | null {
  return (
    locators.find(({ address }) => address === source) ??
    locators.find(({ address }) => interfaces.some((own) => isInNetwork(address, own))) ??
    locators[0] ??
    null
  );
}

/** An unproven participant may be forged with the address of an uninvolved host, so its lease is short. */
function leaseSeconds({ data, isProven }: Peer): number {
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

function addressesOf({ metaUnicast, userUnicast }: ParticipantData, source: string): Set<string> {
  return new Set([source, ...metaUnicast.map(({ address }) => address), ...userUnicast.map(({ address }) => address)]);
}

/**
 * The locators accepted in an announcement from `source`: from another machine no address of this machine, loopback included, and never
 * a broadcast address of an attached network.
 */
export function usableLocators(
  locators: readonly Locator[],
  source: string,
  interfaces: readonly Interface[],
  isOwn: (address: string) => boolean,
): Locator[] {
  const isLocal = isOwn(source);
  return locators.filter(({ address }) => (isLocal || !isOwn(address)) && !interfaces.some((own) => isBroadcast(address, own)));
}

function copyForComparison(announcement: Buffer): Buffer {
  return copyOf(announcement.length > LIMITS.announcementOctets ? announcement.subarray(0, 0) : announcement);
}

function isSame(a: Locator, b: Locator): boolean {
  return a.address === b.address && a.port === b.port;
}
