import type { Challenge } from './challenge.ts';
import type { ParticipantData } from './discovery-data.ts';
import { kept, LIMITS } from './limits.ts';
import { type Interface, isBroadcast, isInNetwork } from './network.ts';
import type { EntityId, Guid, GuidPrefix, Locator } from './protocol.ts';

/** Another participant, as far as it is known. */
export interface Peer {
  data: ParticipantData;
  /** Its announcement as it arrived, so that the same one again need not be read again; empty when it was too large. */
  announcement: Buffer;
  /** Where discovery is sent to. */
  meta: Locator;
  /** Where samples are sent to, of the same address; null: where each endpoint says. */
  user: Locator | null;
  /** What it speaks from: the addresses that it announces, and the one that its announcement came from. */
  addresses: ReadonlySet<string>;
  /** It is on this machine, and speaks from any address of it. */
  isLocal: boolean;
  /** Monotonic seconds. */
  readonly foundSeconds: number;
  /** Monotonic seconds of its last datagram, from whatever address. */
  heardSeconds: number;
  /** The same, from the address that is sent to, or in answer to what was sent there. */
  heardOnPathSeconds: number;
  /** The same, from that very address; -Infinity: never. */
  heardThereSeconds: number;
  /** Its announcements reach the group; otherwise it must be announced to directly. */
  isInGroup: boolean;
  /** It receives what is sent to the address of `meta`; until it has shown that by the challenge, it is sent nothing else. */
  isProven: boolean;
  /** It was proven before, at this address or another one: its endpoints are matched. */
  wasProven: boolean;
  readonly challenge: Challenge;
  /** How often it was sent, when it is due, and until when that takes no word from the peer: monotonic seconds. */
  challenges: number;
  challengeSeconds: number;
  insistUntilSeconds: number;
  /** The first numbers of its own discovery writers that may be its challenge, and are to be acknowledged. */
  readonly questions: Map<EntityId, number>;
  /** Its endpoints that are matched with ours. */
  readonly matched: Set<Guid>;
  /** Ports of endpoints that want to be sent to elsewhere than at `user`. */
  readonly ports: Map<Guid, number>;
}

/** Without a word over the chosen path for so long, another address of the same peer that does speak is taken instead. */
const PATH_SILENT_SECONDS = 6;
/** The same for an address that the peer has not announced: its own has changed, and not every implementation tells (Fast DDS). */
const MOVED_SECONDS = 8;
/**
 * One that was just found, or has moved, is challenged again without a word from it, until it answers: the first time it may not have been
 * ready to read (Fast DDS), or not have read the announcement when it read the heartbeat (Cyclone DDS). Later, whenever something comes
 * from it.
 */
const INSIST_SECONDS = 1;
/** Who was heard of within this time will be again soon: participants announce themselves every three seconds or so. */
const SPEAKS_SECONDS = 4;
/** A host counts as there for so long: about as long as the kernel itself takes it to be there. */
const THERE_SECONDS = 5;

/** The participants that were heard of (8.5.3): who they are, where to reach them, and until when they count as there. */
export class Peers {
  readonly #peers = new Map<GuidPrefix, Peer>();
  /** No lease ends before this moment. */
  #nextExpirySeconds = Number.POSITIVE_INFINITY;
  #refused = 0;

  get size(): number {
    return this.#peers.size;
  }

  /** Announcements that were refused because there were too many. */
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
   * Notes a participant that was not known and announces at least one address for discovery; of its announcement a copy is kept. When there
   * are too many, one that is not proven makes room, returned as `evicted`; when all are proven, the new one is refused.
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
      announcement: compared(announcement),
      meta,
      user: userLocator(data, meta),
      addresses: addressesOf(data, source),
      isLocal: false,
      foundSeconds: nowSeconds,
      heardSeconds: nowSeconds,
      heardOnPathSeconds: nowSeconds,
      heardThereSeconds: Number.NEGATIVE_INFINITY,
      isInGroup: false,
      isProven: false,
      wasProven: false,
      challenge,
      challenges: 0,
      challengeSeconds: nowSeconds,
      insistUntilSeconds: nowSeconds + INSIST_SECONDS,
      questions: new Map(),
      matched: new Set(),
      ports: new Map(),
    };
    if (source === meta.address) peer.heardThereSeconds = nowSeconds;
    this.#peers.set(data.prefix, peer);
    this.#expectExpiry(peer);
    return { peer, evicted };
  }

  /** Takes a changed announcement: new addresses, another lease. */
  update(
    peer: Peer,
    data: ParticipantData,
    announcement: Buffer,
    source: string,
    interfaces: readonly Interface[],
    nowSeconds: number,
  ): void {
    peer.data = data;
    peer.announcement = compared(announcement);
    peer.addresses = addressesOf(data, source);
    const stays = data.metaUnicast.find((locator) => isSame(locator, peer.meta)) ?? chooseLocator(data.metaUnicast, source, interfaces);
    if (stays) this.#setPath(peer, stays, nowSeconds);
    this.#expectExpiry(peer);
  }

  /**
   * Whether another participant is proven at a peer's address; where none is, whether it is this one's turn to be challenged. Those who were
   * so less often and still speak go first: few datagrams are left for all of them, and one that never answers must not have them.
   */
  turnOf(peer: Peer, nowSeconds: number): 'proven address' | 'its turn' | 'not yet' {
    let turn: 'its turn' | 'not yet' = 'its turn';
    for (const other of this.#peers.values()) {
      if (other.meta.address !== peer.meta.address) continue;
      if (other.isProven) return 'proven address';
      const speaks = nowSeconds - other.heardSeconds < SPEAKS_SECONDS && (isHeardThere(other) || !isHeardThere(peer));
      if (speaks && other.challenges < peer.challenges) turn = 'not yet';
    }
    return turn;
  }

  /** It has acknowledged its numbers. */
  prove(peer: Peer): void {
    peer.isProven = true;
    peer.wasProven = true;
    peer.questions.clear();
    this.#expectExpiry(peer);
  }

  /** A datagram of a peer arrived: its lease begins anew, and the way to it is looked at. */
  heard(peer: Peer, source: string, interfaces: readonly Interface[], nowSeconds: number): void {
    peer.heardSeconds = nowSeconds;
    if (source === peer.meta.address) {
      peer.heardOnPathSeconds = nowSeconds;
      peer.heardThereSeconds = nowSeconds;
      return;
    }
    const silentSeconds = nowSeconds - peer.heardOnPathSeconds;
    const isAnnounced = peer.data.metaUnicast.some(({ address }) => address === source);
    if (silentSeconds < (isAnnounced ? PATH_SILENT_SECONDS : MOVED_SECONDS)) return;
    const { meta, data } = peer;
    const wasMoved = !data.metaUnicast.some((locator) => isSame(locator, meta));
    // If that was no better, what is announced has its turn again.
    const isMoving = !isAnnounced && !wasMoved;
    const path = isMoving ? { ...meta, address: source } : chooseLocator(data.metaUnicast, source, interfaces);
    if (path) this.#setPath(peer, path, nowSeconds);
    peer.heardOnPathSeconds = nowSeconds;
    peer.heardThereSeconds = source === peer.meta.address ? nowSeconds : Number.NEGATIVE_INFINITY;
  }

  /** Whether nothing shows that somebody is at the address that is sent to. */
  isDoubtful({ heardThereSeconds }: Peer, nowSeconds: number): boolean {
    return nowSeconds - heardThereSeconds > THERE_SECONDS;
  }

  /** What was sent to a peer has reached it: the way is good, wherever the answer came from. */
  answered(peer: Peer, nowSeconds: number): void {
    peer.heardOnPathSeconds = nowSeconds;
  }

  remove(prefix: GuidPrefix): void {
    this.#peers.delete(prefix);
  }

  /** Those whose lease has ended; they are still listed. */
  expired(nowSeconds: number): Peer[] {
    const ended: Peer[] = [];
    this.#nextExpirySeconds = Number.POSITIVE_INFINITY;
    for (const peer of this.#peers.values()) {
      if (nowSeconds > peer.heardSeconds + leaseSeconds(peer)) ended.push(peer);
      else this.#expectExpiry(peer);
    }
    return ended;
  }

  /** This process stood still so long: what the others said meanwhile has not been read yet, so nobody is silent because of it. */
  excuse(seconds: number): void {
    for (const peer of this.#peers.values()) {
      peer.heardSeconds += seconds;
      peer.heardOnPathSeconds += seconds;
      peer.heardThereSeconds += seconds;
    }
  }

  #expectExpiry(peer: Peer): void {
    this.#nextExpirySeconds = Math.min(this.#nextExpirySeconds, peer.heardSeconds + leaseSeconds(peer));
  }

  /**
   * At another address it has to be proven again, by numbers that nobody at the former one knows; on this machine at another port as well:
   * that may be another user's.
   */
  #setPath(peer: Peer, meta: Locator, nowSeconds: number): void {
    const isElsewhere = meta.address !== peer.meta.address || (peer.isLocal && meta.port !== peer.meta.port);
    peer.meta = meta;
    peer.user = userLocator(peer.data, meta);
    if (!isElsewhere) return;
    peer.isProven = false;
    peer.challenges = 0;
    peer.challengeSeconds = nowSeconds;
    peer.insistUntilSeconds = nowSeconds + INSIST_SECONDS;
    peer.challenge.renew();
    this.#expectExpiry(peer);
  }

  #oldestUnproven(): Peer | null {
    let oldest: Peer | null = null;
    for (const peer of this.#peers.values()) {
      if (!peer.isProven && (!oldest || peer.heardSeconds < oldest.heardSeconds)) oldest = peer;
    }
    return oldest;
  }
}

/** Datagrams came from the very address that it is sent to at, and not only in its name. */
export function isHeardThere({ heardThereSeconds }: Peer): boolean {
  return heardThereSeconds > Number.NEGATIVE_INFINITY;
}

/**
 * Which of a peer's addresses to send to: the one its announcement came from, because that way works; else one in a network of ours;
 * else the first.
 */
export function chooseLocator(locators: readonly Locator[], source: string, interfaces: readonly Interface[]): Locator | null {
  return (
    locators.find(({ address }) => address === source) ??
    locators.find(({ address }) => interfaces.some((own) => isInNetwork(address, own))) ??
    locators[0] ??
    null
  );
}

/** What was only announced may be an invention, with an address of somebody who knows of nothing: it is not sent to for long. */
function leaseSeconds({ data, isProven }: Peer): number {
  return isProven ? data.leaseSeconds : Math.min(data.leaseSeconds, LIMITS.unansweredLeaseSeconds);
}

/** Samples go where discovery goes: to no other address, since no other one is proven. */
function userLocator({ metaUnicast, userUnicast }: ParticipantData, { address }: Locator): Locator | null {
  const announced = userUnicast.find((locator) => locator.address === address);
  if (announced || metaUnicast.some((locator) => locator.address === address)) return announced ?? null;
  // It has moved, and announces the address that it had.
  const [former] = userUnicast;
  return former ? { ...former, address } : null;
}

function addressesOf({ metaUnicast, userUnicast }: ParticipantData, source: string): Set<string> {
  return new Set([source, ...metaUnicast.map(({ address }) => address), ...userUnicast.map(({ address }) => address)]);
}

/**
 * The locators that a participant may name whose announcement came from `source`: from another machine no address of this one, loopback
 * included, and in no case a broadcast of a network here.
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

function compared(announcement: Buffer): Buffer {
  return kept(announcement.length > LIMITS.announcementOctets ? announcement.subarray(0, 0) : announcement);
}

function isSame(a: Locator, b: Locator): boolean {
  return a.address === b.address && a.port === b.port;
}
