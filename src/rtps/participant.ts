import { Agenda } from './agenda.ts';
import { Announcer } from './announcer.ts';
import { type EndpointData, isEnd, readParticipant } from './discovery-data.ts';
import { Endpoints, type LocalReader, type LocalWriter, type TopicReaderOptions, type TopicWriterOptions } from './endpoints.ts';
import { LIMITS, OctetBudget } from './limits.ts';
import { type Logger, rarely } from './log.ts';
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
  readMessage,
} from './message-reader.ts';
import type { Channel, Interface, Network } from './network.ts';
import { Packer } from './packer.ts';
import { ParameterList } from './parameters.ts';
import { type Peer, Peers } from './peers.ts';
import { ENTITY, type EntityId, entityOf, type Guid, type GuidPrefix, Malformed, prefixOf, VENDOR } from './protocol.ts';
import type { StatefulReader } from './reader.ts';
import type { Change } from './writer.ts';

export interface ParticipantOptions {
  /** 0 to 232. */
  readonly domain: number;
  /** 24 hexadecimal digits, never used before by anybody. */
  readonly prefix: GuidPrefix;
  readonly name: string;
  readonly userData: string;
  readonly network: Network;
  /** Addresses that are announced to besides the multicast group. */
  readonly staticPeers: readonly string[];
  /** Take nothing from other machines. */
  readonly localhostOnly: boolean;
  readonly log: Logger;
  readonly monotonicSeconds: () => number;
  readonly wallMilliseconds: () => number;
  /** A remote writer was announced; a reader made now is matched with it at once. */
  readonly onRemoteWriter?: (endpoint: EndpointData) => void;
  /** An address that others were told is gone for good. */
  readonly onAddressLost?: () => void;
}

/** A lease that ends without a word from us: some announcements may be lost. */
export const LEASE_SECONDS = 20;
/** What strangers cause is logged once in so long, kind by kind. */
const LOG_PERIOD_SECONDS = 60;
/** Later than this, the process stood still (stopped, or the machine asleep). */
const STOOD_STILL_SECONDS = 1;

/** How one change is written. */
export interface WriteOptions {
  readonly inlineQos?: Buffer;
  /** Only for this reader. */
  readonly only?: Guid;
  readonly timestampMs?: number;
}

/**
 * A participant of a DDS domain (8.2): endpoints are made first, `start` opens the network, and from then on everything happens when a
 * datagram comes or a deadline is due. Nothing that arrives makes it throw.
 */
export class Participant implements MessageHandler {
  readonly #options: ParticipantOptions;
  readonly #log: Logger;
  readonly #peers = new Peers();
  readonly #budget = new OctetBudget(LIMITS.waitingOctets);
  readonly #packer: Packer;
  readonly #endpoints: Endpoints;
  readonly #agenda: Agenda;
  readonly #announcer: Announcer;
  /** Of the datagram that is being read. */
  #source = '';
  #viaMulticast = false;
  #isReading = false;
  #isOpen = false;
  #hasWork = false;
  #received = 0;
  #refused = 0;

  constructor(options: ParticipantOptions) {
    this.#options = options;
    this.#log = rarely(options.log, options.monotonicSeconds, LOG_PERIOD_SECONDS);
    this.#packer = new Packer(options.prefix, VENDOR.UNKNOWN);
    this.#endpoints = new Endpoints({
      prefix: options.prefix,
      peers: this.#peers,
      budget: this.#budget,
      log: this.#log,
      now: () => ({ seconds: options.monotonicSeconds(), ms: options.wallMilliseconds() }),
      onWork: () => this.#work(),
      onRefused: (error) => this.#refuse(error),
      onRemoteWriter: (endpoint) => options.onRemoteWriter?.(endpoint),
    });
    this.#agenda = new Agenda(options.monotonicSeconds, () => this.#onDue());
    this.#announcer = new Announcer({ ...options, leaseSeconds: LEASE_SECONDS, packer: this.#packer, peers: this.#peers, log: this.#log });
  }

  get prefix(): GuidPrefix {
    return this.#options.prefix;
  }

  get peerCount(): number {
    return this.#peers.size;
  }

  /** Datagrams that were RTPS and for this domain. */
  get received(): number {
    return this.#received;
  }

  /** Datagrams and samples that were malformed, and announcements beyond the limit. */
  get refused(): number {
    return this.#refused + this.#peers.refused;
  }

  /** Octets of others that wait for something. */
  get heldOctets(): number {
    return this.#budget.held;
  }

  createWriter(options: TopicWriterOptions): LocalWriter {
    return this.#endpoints.createWriter(options);
  }

  createReader(options: TopicReaderOptions): LocalReader {
    return this.#endpoints.createReader(options);
  }

  /** Writes a sample to everybody who is matched, and to late joiners if the writer keeps it for them. */
  write({ state }: LocalWriter, payload: Change['payload'], { inlineQos, only, timestampMs }: WriteOptions = {}): void {
    const at = timestampMs ?? this.#options.wallMilliseconds();
    state.write({ payload, isKey: false, inlineQos: inlineQos ?? null, timestampMs: at, only: only ?? null, instance: null });
    this.#work();
  }

  /** Rejects when no ports are free. */
  async start(): Promise<void> {
    const { domain, network } = this.#options;
    const ports = await network.open(domain, {
      onDatagram: (datagram, address, viaMulticast) => this.#onDatagram(datagram, address, viaMulticast),
      onProblem: (message, fields) => this.#log('warning', message, fields),
    });
    this.#isOpen = true;
    this.#announcer.start(ports, this.#options.monotonicSeconds());
    this.#onDue();
  }

  /** Tells everybody that it leaves, and closes. */
  stop(): void {
    if (!this.#isOpen) return;
    this.#announcer.leave();
    this.#agenda.set(Number.POSITIVE_INFINITY);
    this.#isOpen = false;
    this.#options.network.close();
  }

  /** The address that a peer is sent to, for logs; null: not known. */
  addressOf(guid: Guid): string | null {
    return this.#peers.get(prefixOf(guid))?.user?.address ?? null;
  }

  /** Whether a datagram from this address is from this machine. */
  isOwnAddress(address: string): boolean {
    return this.#options.network.isOwn(address);
  }

  // ---- What arrives

  onMessage(sender: GuidPrefix): boolean {
    const peer = this.#peers.get(sender);
    if (peer) this.#peers.heard(peer, this.#source, this.#interfaces(), this.#options.monotonicSeconds());
    return true;
  }

  onData(data: DataSubmessage): void {
    if (entityOf(data.sender) === ENTITY.SPDP_WRITER) this.#onAnnouncement(data);
    else for (const reader of this.#readersFor(data.receiver)) reader.onData(data, this.#source);
  }

  onDataFrag(data: DataFragSubmessage): void {
    for (const reader of this.#readersFor(data.receiver)) reader.onDataFrag(data, this.#source);
  }

  onHeartbeat(heartbeat: HeartbeatSubmessage): void {
    for (const reader of this.#readersFor(heartbeat.receiver)) reader.onHeartbeat(heartbeat);
  }

  onHeartbeatFrag({ sender, receiver, sequenceNumber }: HeartbeatFragSubmessage): void {
    for (const reader of this.#readersFor(receiver)) reader.onHeartbeatFrag(sender, sequenceNumber);
  }

  onGap(gap: GapSubmessage): void {
    for (const reader of this.#readersFor(gap.receiver)) reader.onGap(gap);
  }

  onAckNack({ sender, receiver, set, count, isFinal }: AckNackSubmessage): void {
    const peer = this.#peers.get(prefixOf(sender));
    if (peer) peer.isConfirmed = true;
    this.#endpoints.writerStates.get(receiver)?.onAckNack(sender, set, count, isFinal);
  }

  onNackFrag({ sender, receiver, sequenceNumber, set }: NackFragSubmessage): void {
    this.#endpoints.writerStates.get(receiver)?.onNackFrag(sender, sequenceNumber, set);
  }

  #onDatagram(datagram: Buffer, address: string, viaMulticast: boolean): void {
    if (!this.#isOpen || !isRtps(datagram)) return;
    if (this.#options.localhostOnly && !this.isOwnAddress(address)) return;
    this.#source = address;
    this.#viaMulticast = viaMulticast;
    this.#received += 1;
    this.#isReading = true;
    try {
      readMessage(datagram, this.#options.prefix, this);
    } catch (error) {
      this.#refuse(error);
    }
    this.#isReading = false;
    // Answers to all of its submessages go out together: one datagram cannot make us send many.
    this.#flush();
  }

  #readersFor(entity: EntityId): Iterable<StatefulReader> {
    const states = this.#endpoints.readerStates;
    if (entity === ENTITY.UNKNOWN) return states.values();
    const reader = states.get(entity);
    return reader ? [reader] : [];
  }

  #refuse(error: unknown): void {
    this.#refused += 1;
    const isExpected = error instanceof Malformed || error instanceof RangeError;
    const message = isExpected ? 'refused a malformed message' : 'a message could not be handled';
    this.#log(isExpected ? 'debug' : 'error', message, { from: this.#source, reason: (error as Error).message });
  }

  /** 8.5.3: a participant announces itself, or leaves. */
  #onAnnouncement({ sender, payload, isKey, inlineQos }: DataSubmessage): void {
    const prefix = prefixOf(sender);
    const peer = this.#peers.get(prefix);
    if (isKey || isEnd(inlineQos)) {
      // Only itself can say that it leaves.
      if (peer) this.#remove(peer, 'left');
      return;
    }
    if (!payload) return;
    if (peer && this.#viaMulticast) peer.isInGroup = true;
    if (peer?.announcement.equals(payload)) return;
    const list = ParameterList.ofPayload(payload);
    const data = list && readParticipant(list, this.#options.domain);
    if (!data || data.prefix !== prefix) return;
    const announcement = Buffer.from(payload);
    if (peer) this.#peers.update(peer, data, announcement, this.#source, this.#interfaces());
    else this.#add(data, announcement);
  }

  #add(data: Peer['data'], announcement: Buffer): void {
    const now = this.#options.monotonicSeconds();
    const { peer, evicted } = this.#peers.add(data, announcement, this.#source, this.#interfaces(), now);
    if (evicted) this.#endpoints.removePeer(evicted);
    if (!peer) {
      this.#log('warning', 'too many participants: another one is not taken in', { most: LIMITS.participants, from: this.#source });
      return;
    }
    peer.isInGroup = this.#viaMulticast;
    this.#log('debug', 'participant found', { peer: data.name || data.prefix, address: this.#source });
    // It may have missed our announcements so far; with this one it can read what follows.
    this.#announcer.announceTo(peer);
    this.#endpoints.addPeer(peer);
  }

  #remove(peer: Peer, why: string): void {
    this.#peers.remove(peer.data.prefix);
    this.#endpoints.removePeer(peer);
    this.#log('debug', 'participant gone', { peer: peer.data.name || peer.data.prefix, why });
  }

  // ---- What is sent, and when

  #interfaces(): readonly Interface[] {
    return this.#announcer.interfaces;
  }

  #work(): void {
    this.#hasWork = true;
    if (!this.#isReading && this.#isOpen) this.#flush();
  }

  #onDue(): void {
    const now = this.#options.monotonicSeconds();
    const late = now - this.#announcer.dueSeconds;
    if (late > STOOD_STILL_SECONDS) this.#peers.excuse(late);
    if (now >= this.#announcer.dueSeconds && this.#announcer.announce(now)) this.#options.onAddressLost?.();
    if (now >= this.#peers.nextExpirySeconds) for (const peer of this.#peers.expired(now)) this.#remove(peer, 'lease expired');
    this.#flush();
  }

  /** Lets every endpoint send what is due, and sets the timer to what is due next. */
  #flush(): void {
    if (!this.#isOpen) return;
    const now = this.#options.monotonicSeconds();
    let due: number;
    do {
      this.#hasWork = false;
      due = Math.min(this.#announcer.dueSeconds, this.#peers.nextExpirySeconds);
      for (const state of this.#endpoints.writerStates.values()) {
        const send = (reader: { guid: Guid } & Parameters<Packer['forReader']>[1], actions: Parameters<Packer['forReader']>[2]): void =>
          this.#send(state.entity, reader.guid, this.#packer.forReader(state.entity, reader, actions));
        due = Math.min(due, state.poll(now, send));
      }
      for (const state of this.#endpoints.readerStates.values()) {
        const send = (writer: Parameters<Packer['forWriter']>[1], actions: Parameters<Packer['forWriter']>[2]): void =>
          this.#send(state.entity, writer.guid, this.#packer.forWriter(state.entity, writer, actions));
        due = Math.min(due, state.poll(now, send));
      }
    } while (this.#hasWork);
    this.#agenda.set(due);
  }

  #send(own: EntityId, to: Guid, datagrams: readonly Buffer[]): void {
    const peer = this.#peers.get(prefixOf(to));
    // Discovery's own endpoints are told by the two high bits of the kind (9.3.1.2).
    const channel: Channel = (own & 0xc0) === 0xc0 ? 'meta' : 'user';
    const locator = channel === 'meta' ? peer?.meta : peer?.user;
    if (!peer || !locator) return;
    const port = peer.ports.get(to) ?? locator.port;
    for (const datagram of datagrams) this.#options.network.send(channel, datagram, locator.address, port);
  }
}
