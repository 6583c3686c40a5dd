import { Announcer } from './discovery/announcer.ts';
import { Proof, ReaderProof } from './discovery/challenge.ts';
import { type Arrival, Detector } from './discovery/detector.ts';
import type { EndpointData } from './discovery/discovery-data.ts';
import { type Peer, Peers } from './discovery/peers.ts';
import { Endpoints, type LocalReader, type LocalWriter, type TopicReaderOptions, type TopicWriterOptions } from './endpoints/endpoints.ts';
import { Agenda, Outbox } from './endpoints/outbox.ts';
import type { StatefulReader } from './endpoints/reader.ts';
import type { Change, StatefulWriter } from './endpoints/writer.ts';
import { LIMITS, OctetBudget } from './limits.ts';
import type { Logger } from './log.ts';
import { AmplificationLimit } from './net/amplification.ts';
import type { Network, Source } from './net/network.ts';
import {
  type AckNackSubmessage,
  type DataFragSubmessage,
  type DataSubmessage,
  type GapSubmessage,
  type HeartbeatFragSubmessage,
  type HeartbeatSubmessage,
  isRtps,
  type MessageHandler,
  type NackFragSubmessage,
  type Origin,
  readMessage,
  senderOf,
} from './wire/message-reader.ts';
import { Packer } from './wire/message-writer.ts';
import { DISCOVERY_READERS, ENTITY, type EntityId, type Guid, type GuidPrefix, type Locator, Malformed, VENDOR } from './wire/protocol.ts';

export interface ParticipantOptions {
  /** 0 to 232. */
  readonly domain: number;
  /** 24 hexadecimal digits, unique for every start of every process. */
  readonly prefix: GuidPrefix;
  readonly name: string;
  readonly userData: string;
  readonly network: Network;
  /** Addresses to which announcements are sent in addition to the multicast group. */
  readonly staticPeers: readonly string[];
  /** Ignore datagrams of other machines, except of the static peers, and do not announce to the multicast group of the network. */
  readonly localhostOnly: boolean;
  /** The lease announced to other participants; LEASE_SECONDS by default, shorter in tests. */
  readonly leaseSeconds?: number;
  /** Remote participants can cause lines at will: the caller limits their rate, by message. */
  readonly log: Logger;
  readonly monotonicSeconds: () => number;
  readonly wallMilliseconds: () => number;
  /**
   * Called before a remote writer is matched: a reader created in the call is matched with it. False: no reader could be created; the
   * call is repeated when other endpoints are removed.
   */
  readonly onRemoteWriter?: (endpoint: EndpointData) => boolean;
  /** A matched remote endpoint was removed; `hasLeft`: it or its participant was disposed; otherwise its lease expired. */
  readonly onRemoteGone?: (guid: Guid, hasLeft: boolean) => void;
  /** A participant that was proven was removed; `hasLeft`: it has said so, and this was confirmed; otherwise its lease expired. */
  readonly onParticipantGone?: (key: GuidPrefix, hasLeft: boolean) => void;
  /** Called before a remote reader is matched: a writer created in the call is matched with it. */
  readonly onRemoteReader?: (endpoint: EndpointData) => void;
  /** An announced address was removed permanently. */
  readonly onAddressLost?: () => void;
}

/** Long enough that several announcements in a row may be lost. */
export const LEASE_SECONDS = 20;
/** A timer delayed by more than this means that the process was stopped or the machine suspended. */
const STALL_SECONDS = 1;
/** Challenges of a reader in a row: the number of a single one can be guessed. */
const READER_CHALLENGES = 3;

export interface WriteOptions {
  readonly inlineQos?: Buffer;
  /** Sent to this reader alone. */
  readonly only?: Guid;
  readonly timestampMs?: number;
}

/**
 * A participant of a DDS domain (8.2). Endpoints are created first; `start` opens the network; afterwards only datagrams and
 * deadlines cause activity. No received datagram makes a method throw.
 */
export class Participant implements MessageHandler {
  readonly #options: ParticipantOptions;
  readonly #prefixOctets: Buffer;
  readonly #log: Logger;
  readonly #peers = new Peers();
  readonly #limit = new AmplificationLimit();
  /** Running proofs of participants that were proven before. */
  readonly #proofs = new Map<GuidPrefix, Proof>();
  /** Running proofs of readers. */
  readonly #readerProofs = new Map<Guid, ReaderProof>();
  readonly #budget = new OctetBudget(LIMITS.bufferedOctets);
  readonly #endpoints: Endpoints;
  readonly #agenda: Agenda;
  readonly #announcer: Announcer;
  readonly #detector: Detector;
  readonly #outbox: Outbox;
  /** The source of the datagram that is being read. */
  #arrival: Arrival = { source: { address: '', port: 0 }, viaMulticast: false, octets: 0 };
  /** The prefix of the sender's GUID, and the participant with it that sends from the source address; undefined: none. */
  #sender: GuidPrefix = '';
  #senderPeer: Peer | undefined;
  /** Participants with that GUID are known, but none at this address: the content must not be used. */
  #isAddressMismatch = false;
  /** Discovery writers of which the datagram acknowledges numbers that only the sender knows. */
  readonly #signatures = new Set<EntityId>();
  /** A datagram is being read or sent; pending output is flushed when that ends. */
  #isBusy = false;
  #isOpen = false;
  #isStopped = false;
  #hasWork = false;
  #refused = 0;

  constructor(options: ParticipantOptions) {
    this.#options = options;
    this.#prefixOctets = Buffer.from(options.prefix, 'hex');
    this.#log = options.log;
    const peers = this.#peers;
    const limit = this.#limit;
    const log = this.#log;
    const leaseSeconds = options.leaseSeconds ?? LEASE_SECONDS;
    const packer = new Packer(options.prefix, VENDOR.UNKNOWN);
    this.#endpoints = new Endpoints({
      ...options,
      peers,
      budget: this.#budget,
      log,
      onWork: () => this.#work(),
      onRefused: (error) => this.#refuse(error),
      onImplausible: (message, writer, number) => this.#reject(message, { writer, number }),
      confirm: (peer) => this.#detector.confirm(peer),
    });
    const endpoints = this.#endpoints;
    this.#announcer = new Announcer({ ...options, leaseSeconds, packer, peers, limit, writers: endpoints.discoveryWriters, log });
    const announcer = this.#announcer;
    const onUnusable = (): void => this.#reject('participant announces no usable address');
    this.#detector = new Detector({ ...options, peers, endpoints, announcer, limit, log, onUnusable });
    this.#outbox = new Outbox(endpoints, peers, packer, options.network);
    this.#agenda = new Agenda(options.monotonicSeconds, () => this.#onDue());
  }

  get prefix(): GuidPrefix {
    return this.#options.prefix;
  }

  get peerCount(): number {
    return this.#peers.size;
  }

  // In the following methods a participant is identified by the prefix of the GUIDs of its endpoints, as `onRemoteWriter` received them.

  hasParticipant(key: GuidPrefix): boolean {
    return this.#peers.get(key) !== undefined;
  }

  /** Whether a participant has shown that it receives datagrams at its address, which a sender with a forged address cannot. */
  isProven(key: GuidPrefix): boolean {
    return this.#peers.get(key)?.isProven ?? false;
  }

  /**
   * Challenges a proven participant again; resolves within half a second to whether it has responded correctly, from the address `source`, to
   * what was sent to this very address.
   */
  async prove(key: GuidPrefix, source: string): Promise<boolean> {
    const peer = this.#peers.get(key);
    if (!peer?.isProven) return false;
    const isAtPath = (): boolean => peer.meta.address === source || (peer.isLocal && this.isOwnAddress(source));
    if (!isAtPath() && !(await this.#detector.moveTo(peer, source))) return false;
    const running = this.#proofs.get(key);
    if (running) return (await running.result) && isAtPath();
    const proof = new Proof(peer.challenge, this.#endpoints.discoveryWriters);
    this.#proofs.set(key, proof);
    this.#endpoints.addPeer(peer);
    return (await proof.result.finally(() => this.#proofs.delete(key))) && isAtPath();
  }

  /**
   * Challenges a remote reader of a volatile local writer; resolves within 3 seconds to whether it responds at the address of its participant.
   * A proven participant need not have the endpoints that are announced in its name: one that a host with a forged address has invented
   * acknowledges nothing.
   */
  async proveReader({ state }: LocalWriter, guid: Guid): Promise<boolean> {
    for (let i = 0; i < READER_CHALLENGES; i += 1) if (!(await this.#challengeReader(state, guid))) return false;
    return true;
  }

  #challengeReader(state: StatefulWriter, guid: Guid): Promise<boolean> {
    const running = this.#readerProofs.get(guid);
    if (running) return running.result;
    const reader = state.readers.find((one) => one.guid === guid);
    if (!reader?.reliable) return Promise.resolve(false);
    const proof = new ReaderProof((reader.numberOffset ?? 0) + state.last + 1);
    this.#readerProofs.set(guid, proof);
    state.match({ ...reader, numberOffset: proof.expected - state.last - 1 }, this.#options.monotonicSeconds());
    this.#work();
    return proof.result.finally(() => this.#readerProofs.delete(guid));
  }

  /** The locators to which datagrams for a participant are sent; empty: the participant is not known. */
  locatorsOf(key: GuidPrefix): readonly Locator[] {
    const peer = this.#peers.get(key);
    return [peer?.meta, peer?.user].filter((locator) => locator !== null && locator !== undefined);
  }

  /** Matches between local and remote endpoints. */
  get matchedCount(): number {
    return this.#endpoints.matchedCount;
  }

  /** Datagrams and samples that were malformed, and announcements beyond the limit. */
  get refused(): number {
    return this.#refused + this.#peers.refused;
  }

  /** Octets of received samples and fragments that are buffered. */
  get heldOctets(): number {
    return this.#budget.held;
  }

  createWriter(options: TopicWriterOptions): LocalWriter {
    return this.#endpoints.createWriter(options);
  }

  createReader(options: TopicReaderOptions): LocalReader {
    return this.#endpoints.createReader(options);
  }

  removeReader(reader: LocalReader): void {
    this.#endpoints.removeReader(reader);
  }

  removeWriter(writer: LocalWriter): void {
    this.#endpoints.removeWriter(writer);
  }

  /** Has all writers of participants announced again, so that `onRemoteWriter` is called for them; undefined: of all participants. */
  rediscoverWriters(keys?: Iterable<GuidPrefix>): void {
    const peers = keys ? [...keys].map((key) => this.#peers.get(key)) : this.#peers.all();
    for (const peer of peers) if (peer?.wasProven) this.#endpoints.rediscoverWriters(peer);
  }

  /** Writes a sample to all matched readers, and to late joiners if the writer is transient local. */
  write({ state }: LocalWriter, payload: Change['payload'], { inlineQos, only, timestampMs }: WriteOptions = {}): void {
    const at = timestampMs ?? this.#options.wallMilliseconds();
    state.write({ payload, isKey: false, inlineQos: inlineQos ?? null, timestampMs: at, only: only ?? null, instance: null });
    this.#work();
  }

  /** Rejects when no port of the domain is free. */
  async start(): Promise<void> {
    const { domain, network } = this.#options;
    const ports = await network.open(domain, {
      onDatagram: (datagram, source, viaMulticast) => this.#onDatagram(datagram, source, viaMulticast),
      isFromProven: (datagram, source) => this.#isFromProven(datagram, source),
      onDropped: ({ address }) => {
        this.#refused += 1;
        this.#log('warning', 'too many datagrams, some dropped', { from: address });
      },
      onProblem: (message, fields) => this.#onProblem(message, fields),
    });
    if (this.#isStopped) {
      network.close();
      return;
    }
    this.#isOpen = true;
    this.#announcer.start(ports, this.#options.monotonicSeconds());
    this.#onDue();
  }

  /** Announces that the participant leaves, then closes the sockets; during `start`, they are closed once they are open. */
  stop(): void {
    this.#isStopped = true;
    if (!this.#isOpen) return;
    this.#detector.stop();
    this.#endpoints.stop();
    this.#announcer.leave(this.#options.monotonicSeconds(), (peer) => this.#endpoints.acknowledgedOf(peer));
    this.#agenda.set(Number.POSITIVE_INFINITY);
    this.#isOpen = false;
    this.#options.network.close();
  }

  isOwnAddress(address: string): boolean {
    return this.#options.network.isOwn(address);
  }

  // ---- Received messages

  onMessage(sender: GuidPrefix): GuidPrefix | null {
    this.#identify(sender);
    const peer = this.#senderPeer;
    if (!peer) return sender;
    this.#peers.recordDatagram(peer, this.#arrival.source.address, this.#options.monotonicSeconds());
    if (!peer.isProven) {
      this.#limit.receive(peer.meta.address, this.#arrival.octets);
      this.#arrival.octets = 0;
    }
    return peer.key;
  }

  #identify(sender: GuidPrefix): void {
    const { address } = this.#arrival.source;
    this.#sender = sender;
    this.#signatures.clear();
    this.#senderPeer = this.#peers.find(sender, address, this.isOwnAddress(address));
    this.#isAddressMismatch = this.#senderPeer === undefined && this.#peers.withPrefix(sender).length > 0;
  }

  onData(data: DataSubmessage): void {
    if (data.senderEntity === ENTITY.SPDP_WRITER) {
      const isSigned = this.#signatures.size === this.#endpoints.discoveryWriters.length;
      if (data.isKey && !this.#senderPeer) this.#rejectMismatch();
      this.#detector.onAnnouncement(data, this.#sender, this.#senderPeer, isSigned, this.#arrival);
      if (!this.#senderPeer) this.#identify(this.#sender);
    } else for (const reader of this.#readersFor(data)) reader.onData(data, this.#arrival.source, this.#options.monotonicSeconds());
  }

  onDataFrag(data: DataFragSubmessage): void {
    for (const reader of this.#readersFor(data)) reader.onDataFrag(data, this.#arrival.source, this.#options.monotonicSeconds());
  }

  onHeartbeat(heartbeat: HeartbeatSubmessage): void {
    const { senderEntity, first } = heartbeat;
    const peer = this.#senderPeer;
    // A heartbeat that begins above 1 may be the challenge of the same implementation; both sides would wait for each other otherwise.
    if (peer && !peer.isProven && first > 1 && DISCOVERY_READERS.has(senderEntity)) peer.pendingAcks.set(senderEntity, first);
    for (const reader of this.#readersFor(heartbeat)) reader.onHeartbeat(heartbeat, this.#options.monotonicSeconds());
  }

  onHeartbeatFrag(heartbeat: HeartbeatFragSubmessage): void {
    for (const reader of this.#readersFor(heartbeat)) reader.onHeartbeatFrag(heartbeat.sender, heartbeat.sequenceNumber);
  }

  onGap(gap: GapSubmessage): void {
    for (const reader of this.#readersFor(gap)) reader.onGap(gap, this.#options.monotonicSeconds());
  }

  onAckNack(ackNack: AckNackSubmessage): void {
    const { receiver, set } = ackNack;
    const { address } = this.#arrival.source;
    if (DISCOVERY_READERS.has(receiver)) this.#onDiscoveryAcknowledgement(receiver, set.base, address);
    const peer = this.#senderPeer;
    if (!peer?.isProven) {
      if (!peer) this.#rejectMismatch();
      return;
    }
    this.#peers.recordAcknowledgement(peer, this.#options.monotonicSeconds());
    if (address === peer.meta.address || peer.isLocal) this.#readerProofs.get(ackNack.sender)?.acknowledge(set.base);
    this.#endpoints.onAckNack(ackNack);
  }

  /** The numbers of the discovery writers are known only where they were sent. */
  #onDiscoveryAcknowledgement(writer: EntityId, base: number, address: string): void {
    const peer = this.#senderPeer;
    if (peer && !peer.isProven) this.#detector.onAcknowledgement(peer, writer, base, address);
    else if (peer) {
      const own = this.#endpoints.discoveryWriters.find(({ entity }) => entity === writer);
      if (own && peer.challenge.isKnownBy(own, base)) this.#signatures.add(writer);
      if (address === peer.meta.address || peer.isLocal) this.#proofs.get(peer.key)?.acknowledge(writer, base);
    }
    // A participant that has several addresses may respond from another one.
    for (const known of peer ? [peer] : this.#peers.withPrefix(this.#sender)) this.#detector.onConfirmation(known, writer, base, address);
  }

  onNackFrag({ sender, receiver, sequenceNumber, set }: NackFragSubmessage): void {
    if (this.#senderPeer) this.#endpoints.writerStates.get(receiver)?.onNackFrag(sender, sequenceNumber, set);
    else this.#rejectMismatch();
  }

  #readersFor({ receiver, sender }: Origin): readonly StatefulReader[] {
    if (this.#senderPeer) return this.#endpoints.readersFor(receiver, sender);
    this.#rejectMismatch();
    return [];
  }

  /** The sender's GUID is that of another participant: once per datagram, the datagram is counted and the participant is asked. */
  #rejectMismatch(): void {
    if (!this.#isAddressMismatch) return;
    this.#isAddressMismatch = false;
    const { address } = this.#arrival.source;
    for (const peer of this.#peers.withPrefix(this.#sender)) {
      this.#reject('datagram ignored: not sent from the address of its participant', { peer: this.#sender, at: peer.meta.address });
      this.#detector.onOtherAddress(peer, address);
    }
  }

  #onDatagram(datagram: Buffer, source: Source, viaMulticast: boolean): void {
    if (!this.#isOpen || !isRtps(datagram)) return;
    const { localhostOnly, staticPeers } = this.#options;
    if (localhostOnly && !this.isOwnAddress(source.address) && !staticPeers.includes(source.address)) return;
    this.#arrival = { source, viaMulticast, octets: datagram.length };
    this.#senderPeer = undefined;
    this.#isBusy = true;
    try {
      readMessage(datagram, this.#prefixOctets, this);
    } catch (error) {
      this.#refuse(error);
    }
    this.#isBusy = false;
    this.#challenge();
    // Responses to all submessages are combined, so that one datagram cannot trigger many.
    this.#flush();
  }

  #isFromProven(datagram: Buffer, { address }: Source): boolean {
    return isRtps(datagram) && this.#peers.find(senderOf(datagram), address, this.isOwnAddress(address))?.wasProven === true;
  }

  /** A datagram of an unproven participant shows that it is running and able to respond to a challenge. */
  #challenge(): void {
    const peer = this.#senderPeer;
    if (peer && !peer.isProven) this.#announcer.challenge(peer, this.#options.monotonicSeconds());
  }

  #onProblem(message: string, fields: Readonly<Record<string, unknown>>): void {
    this.#log('warning', message, fields);
    this.#announcer.recheckInterfaces(this.#options.monotonicSeconds());
    this.#work();
  }

  #refuse(error: unknown): void {
    this.#refused += 1;
    const isExpected = error instanceof Malformed || error instanceof RangeError;
    const message = isExpected ? 'malformed message refused' : 'message handler failed';
    this.#log(isExpected ? 'debug' : 'error', message, { from: this.#arrival.source.address, reason: (error as Error).message });
  }

  /** Counts and logs a message that is well-formed but implausible. */
  #reject(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#refused += 1;
    this.#log('warning', message, { ...fields, from: this.#arrival.source.address });
  }

  // ---- Sending

  #work(): void {
    this.#hasWork = true;
    if (!this.#isBusy) this.#flush();
  }

  #onDue(): void {
    const now = this.#options.monotonicSeconds();
    const late = now - this.#announcer.dueSeconds;
    if (late > STALL_SECONDS) this.#peers.extendLeases(late);
    if (now >= this.#announcer.dueSeconds && this.#announcer.announce(now)) this.#options.onAddressLost?.();
    if (now >= this.#peers.nextExpirySeconds) this.#detector.expire(now);
    this.#flush();
  }

  /** Sends everything that is due, and sets the timer to the next deadline. */
  #flush(): void {
    if (!this.#isOpen) return;
    const now = this.#options.monotonicSeconds();
    let due: number;
    this.#isBusy = true;
    do {
      this.#hasWork = false;
      due = Math.min(this.#outbox.poll(now), this.#announcer.dueSeconds, this.#peers.nextExpirySeconds);
    } while (this.#hasWork);
    this.#isBusy = false;
    if (this.#isOpen) this.#agenda.set(due);
  }
}
