import type { ParticipantData } from './discovery-data.ts';
import { kept, LIMITS } from './limits.ts';
import { type Interface, isInNetwork } from './network.ts';
import type { Guid, GuidPrefix, Locator } from './protocol.ts';

/** Another participant, as far as it is known. */
export interface Peer {
  data: ParticipantData;
  /** Its announcement as it arrived, so that the same one again need not be read again; empty when it was too large. */
  announcement: Buffer;
  /** Where discovery and samples are sent to; null: nowhere to be reached. */
  meta: Locator | null;
  user: Locator | null;
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
  /** It has answered: it is more than an announcement. */
  isConfirmed: boolean;
  /** Its endpoints that are matched with ours. */
  readonly matched: Set<Guid>;
  /** Ports of endpoints that want to be sent to elsewhere than at `user`. */
  readonly ports: Map<Guid, number>;
}

/** Without a word over the chosen path for so long, another address of the same peer that does speak is taken instead. */
const PATH_SILENT_SECONDS = 6;
/** The same for an address that the peer has not announced: its own has changed, and not every implementation tells (Fast DDS). */
const MOVED_SECONDS = 8;
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
   * Notes a participant that was not known; of its announcement a copy is kept. When there are too many, one that has never answered makes room, returned as `evicted`;
   * when all have answered, the new one is refused.
   */
  add(
    data: ParticipantData,
    announcement: Buffer,
    source: string,
    interfaces: readonly Interface[],
    nowSeconds: number,
  ): { readonly peer: Peer | null; readonly evicted: Peer | null } {
    const evicted = this.#peers.size >= LIMITS.participants ? this.#oldestUnconfirmed() : null;
    if (evicted) this.#peers.delete(evicted.data.prefix);
    if (this.#peers.size >= LIMITS.participants) {
      this.#refused += 1;
      return { peer: null, evicted };
    }
    const peer: Peer = {
      data,
      announcement: compared(announcement),
      meta: chooseLocator(data.metaUnicast, source, interfaces),
      user: chooseLocator(data.userUnicast, source, interfaces),
      foundSeconds: nowSeconds,
      heardSeconds: nowSeconds,
      heardOnPathSeconds: nowSeconds,
      heardThereSeconds: Number.NEGATIVE_INFINITY,
      isInGroup: false,
      isConfirmed: false,
      matched: new Set(),
      ports: new Map(),
    };
    if (source === peer.meta?.address) peer.heardThereSeconds = nowSeconds;
    this.#peers.set(data.prefix, peer);
    this.#expectExpiry(peer);
    return { peer, evicted };
  }

  /** Takes a changed announcement: new addresses, another lease. */
  update(peer: Peer, data: ParticipantData, announcement: Buffer, source: string, interfaces: readonly Interface[]): void {
    peer.data = data;
    peer.announcement = compared(announcement);
    const stays =
      data.metaUnicast.some((locator) => isSame(locator, peer.meta)) && data.userUnicast.some((locator) => isSame(locator, peer.user));
    if (!stays) this.#choosePath(peer, source, interfaces);
    this.#expectExpiry(peer);
  }

  /** A datagram of a peer arrived: its lease begins anew, and the way to it is looked at. */
  heard(peer: Peer, source: string, interfaces: readonly Interface[], nowSeconds: number): void {
    peer.heardSeconds = nowSeconds;
    if (source === peer.meta?.address) {
      peer.heardOnPathSeconds = nowSeconds;
      peer.heardThereSeconds = nowSeconds;
      return;
    }
    const silentSeconds = nowSeconds - peer.heardOnPathSeconds;
    const isAnnounced = peer.data.metaUnicast.some(({ address }) => address === source);
    if (silentSeconds < (isAnnounced ? PATH_SILENT_SECONDS : MOVED_SECONDS)) return;
    const { meta, user, data } = peer;
    const wasMoved = !data.metaUnicast.some((locator) => isSame(locator, meta));
    this.#choosePath(peer, source, interfaces);
    // If that was no better, what is announced has its turn again.
    if (!isAnnounced && !wasMoved) {
      peer.meta = meta && { ...meta, address: source };
      peer.user = user && { ...user, address: source };
    }
    peer.heardOnPathSeconds = nowSeconds;
    peer.heardThereSeconds = source === peer.meta?.address ? nowSeconds : Number.NEGATIVE_INFINITY;
  }

  /** Whether nothing shows that somebody is at the address that is sent to. */
  isDoubtful({ heardThereSeconds }: Peer, nowSeconds: number): boolean {
    return nowSeconds - heardThereSeconds > THERE_SECONDS;
  }

  /** What was sent to a peer has reached it: the way is good, wherever the answer came from. */
  answered(peer: Peer, nowSeconds: number): void {
    peer.isConfirmed = true;
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

  #choosePath(peer: Peer, source: string, interfaces: readonly Interface[]): void {
    peer.meta = chooseLocator(peer.data.metaUnicast, source, interfaces);
    peer.user = chooseLocator(peer.data.userUnicast, source, interfaces);
  }

  #oldestUnconfirmed(): Peer | null {
    let oldest: Peer | null = null;
    for (const peer of this.#peers.values()) {
      if (!peer.isConfirmed && (!oldest || peer.heardSeconds < oldest.heardSeconds)) oldest = peer;
    }
    return oldest;
  }
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
function leaseSeconds({ data, isConfirmed }: Peer): number {
  return isConfirmed ? data.leaseSeconds : Math.min(data.leaseSeconds, LIMITS.unansweredLeaseSeconds);
}

function compared(announcement: Buffer): Buffer {
  return kept(announcement.length > LIMITS.announcementOctets ? announcement.subarray(0, 0) : announcement);
}

function isSame(a: Locator, b: Locator | null): boolean {
  return a.address === b?.address && a.port === b.port;
}
