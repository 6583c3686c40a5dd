import { endOfInstance, participantKey, participantPayload } from './discovery-data.ts';
import type { Logger } from './log.ts';
import { type Channel, type Interface, isInNetwork, type Network } from './network.ts';
import type { Packer } from './packer.ts';
import type { Peer, Peers } from './peers.ts';
import { ENTITY, type GuidPrefix, guidOf, type Locator, MULTICAST_GROUP, ports, VENDOR } from './protocol.ts';
import type { Change } from './writer.ts';

export interface AnnouncerOptions {
  readonly domain: number;
  readonly prefix: GuidPrefix;
  readonly name: string;
  readonly userData: string;
  readonly network: Network;
  readonly staticPeers: readonly string[];
  readonly leaseSeconds: number;
  readonly packer: Packer;
  readonly peers: Peers;
  readonly wallMilliseconds: () => number;
  readonly log: Logger;
}

/** 8.5.3.2: how often a participant says that it is there. */
const PERIOD_SECONDS = 3;
/** The first ones come quickly: some are lost, and some peers start at the same moment. */
const FIRST_PAUSES_SECONDS = [0.1, 0.3, 0.6, 1] as const;
/** A static peer is asked at the ports of so many participants, as ROS 2 expects it; where there are many peers, of fewer. */
const PEER_INDEXES = 32;
const PEER_INDEXES_OF_MANY = 10;
const MANY_PEERS = 4;
/** An address that is missing at so many looks in a row is gone; before that the link may only have been down for a moment. */
const LOOKS_UNTIL_LOST = 2;

/** Says that this participant is there (8.5.3, SPDP), on every interface, and notices when those change. */
export class Announcer {
  readonly #options: AnnouncerOptions;
  #ports: Readonly<Record<Channel, number>> = { meta: 0, user: 0 };
  #interfaces: readonly Interface[] = [];
  /** Addresses told to others, and at how many looks in a row they were missing. */
  readonly #missing = new Map<string, number>();
  #dueSeconds = Number.POSITIVE_INFINITY;
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
    return this.#dueSeconds;
  }

  /** As of the last look. */
  get interfaces(): readonly Interface[] {
    return this.#interfaces;
  }

  start(boundPorts: Readonly<Record<Channel, number>>, nowSeconds: number): void {
    this.#ports = boundPorts;
    this.#look();
    this.#dueSeconds = nowSeconds;
  }

  /** Looks at the interfaces and announces. True: an address that others were told is gone. */
  announce(nowSeconds: number): boolean {
    const isLost = this.#look();
    const { domain, network, peers, staticPeers } = this.#options;
    for (const out of this.#interfaces) network.multicast(this.#datagram(this.#announcement(out), null), out);
    const indexes = staticPeers.length > MANY_PEERS ? PEER_INDEXES_OF_MANY : PEER_INDEXES;
    for (const address of staticPeers) {
      const datagram = this.#datagram(this.#announcement(this.#towards(address)), null);
      for (let index = 0; index < indexes; index += 1) {
        const port = ports.metaUnicast(domain, index);
        if (port < 65536 && !(port === this.#ports.meta && network.isOwn(address))) network.send('meta', datagram, address, port);
      }
    }
    // Those whom the group does not reach found us by a list of theirs: they are told directly.
    for (const peer of peers.all()) if (!peer.isInGroup) this.announceTo(peer);
    const pause = FIRST_PAUSES_SECONDS[this.#announcements] ?? PERIOD_SECONDS;
    this.#announcements += 1;
    this.#dueSeconds = nowSeconds + pause;
    return isLost;
  }

  announceTo({ data, meta }: Peer): void {
    if (!meta) return;
    const change = this.#announcement(this.#towards(meta.address));
    this.#options.network.send('meta', this.#datagram(change, data.prefix), meta.address, meta.port);
  }

  /** Says that this participant leaves (8.5.3.3.2: dispose), so that nobody waits for its lease to end. */
  leave(): void {
    const { network, peers, prefix } = this.#options;
    const change = {
      ...this.#change(participantKey(prefix)),
      sequenceNumber: this.#revision + 1,
      isKey: true,
      inlineQos: endOfInstance(guidOf(prefix, ENTITY.PARTICIPANT)),
    };
    const datagram = this.#datagram(change, null);
    for (const out of this.#interfaces) network.multicast(datagram, out);
    for (const { meta } of peers.all()) if (meta) network.send('meta', datagram, meta.address, meta.port);
    this.#dueSeconds = Number.POSITIVE_INFINITY;
  }

  /** Takes note of the interfaces as they are now, and listens on new ones. */
  #look(): boolean {
    const { log, network } = this.#options;
    const now = network.interfaces();
    const before = this.#interfaces;
    network.join(now);
    for (const { address, name } of now) {
      if (before.length > 0 && !before.some((known) => known.address === address))
        log('notice', 'a network interface came', { interface: name, address });
      this.#missing.set(address, 0);
    }
    let isLost = false;
    for (const [address, looks] of this.#missing) {
      if (now.some((entry) => entry.address === address)) continue;
      this.#missing.set(address, looks + 1);
      if (looks + 1 < LOOKS_UNTIL_LOST) continue;
      this.#missing.delete(address);
      log('notice', 'a network address is gone', { address });
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

  /** The interface that leads to an address; null: none in particular. */
  #towards(address: string): Interface | null {
    return this.#interfaces.find((own) => isInNetwork(address, own)) ?? null;
  }

  /**
   * What goes out of an interface names the address there and no other: whoever hears it can reach that one, while some of those who are
   * told of several choose one that they cannot reach, and stay with it (Cyclone DDS). Null: all of them.
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
    const at = (port: number): Locator[] => interfaces.map(({ address }) => ({ address, port }));
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
