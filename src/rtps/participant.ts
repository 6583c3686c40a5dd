import { Agenda } from './agenda.ts';
import { AmplificationLimit } from './amplification.ts';
import { Announcer } from './announcer.ts';
import { Proof } from './challenge.ts';
import { type Arrival, Detector } from './detector.ts';
import type { EndpointData } from './discovery-data.ts';
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
  type Origin,
  readMessage,
} from './message-reader.ts';
import type { Network, Source } from './network.ts';
import { Outbox } from './outbox.ts';
import { Packer } from './packer.ts';
import { type Peer, Peers } from './peers.ts';
import { DISCOVERY_READERS, ENTITY, entityOf, type Guid, type GuidPrefix, type Locator, Malformed, prefixOf, VENDOR } from './protocol.ts';
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
  /** Take nothing from other machines but the static peers, and announce nothing to their group. */
  readonly localhostOnly: boolean;
  /** For tests: how long others keep this participant without a datagram from it; LEASE_SECONDS by default. */
  readonly leaseSeconds?: number;
  readonly log: Logger;
  readonly monotonicSeconds: () => number;
  readonly wallMilliseconds: () => number;
  /** A remote writer was announced; a reader made now is matched with it at once. False: there is no room for one; it comes again when others go. */
  readonly onRemoteWriter?: (endpoint: EndpointData) => boolean;
  /** A matched remote endpoint is gone; `hasLeft`: it or its participant said so, rather than fell silent. */
  readonly onRemoteGone?: (guid: Guid, hasLeft: boolean) => void;
  /** A remote reader was announced; a writer made now is matched with it at once. */
  readonly onRemoteReader?: (endpoint: EndpointData) => void;
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
  readonly #limit = new AmplificationLimit();
  /** Of participants that are to be proven once more. */
  readonly #proofs = new Map<GuidPrefix, Proof>();
  readonly #budget = new OctetBudget(LIMITS.waitingOctets);
  readonly #endpoints: Endpoints;
  readonly #agenda: Agenda;
  readonly #announcer: Announcer;
  readonly #detector: Detector;
  readonly #outbox: Outbox;
  /** Of the datagram that is being read. */
  #arrival: Arrival = { source: { address: '', port: 0 }, viaMulticast: false, octets: 0 };
  /** Who speaks in it; undefined: nobody who is known. */
  #speaker: Peer | undefined;
  /** The speaker's name is known, and the datagram comes from elsewhere: none of it is true. */
  #isForeign = false;
  /** Something is being read or sent: what there is to be sent goes out at the end of it. */
  #isBusy = false;
  #isOpen = false;
  #isStopped = false;
  #hasWork = false;
  #received = 0;
  #refused = 0;

  constructor(options: ParticipantOptions) {
    this.#options = options;
    this.#log = rarely(options.log, options.monotonicSeconds, LOG_PERIOD_SECONDS);
    const peers = this.#peers;
    const log = this.#log;
    const { monotonicSeconds, network } = options;
    const packer = new Packer(options.prefix, VENDOR.UNKNOWN);
    const endpoints = new Endpoints({
      prefix: options.prefix,
      peers,
      budget: this.#budget,
      log,
      now: () => ({ seconds: monotonicSeconds(), ms: options.wallMilliseconds() }),
      onWork: () => this.#work(),
      onRefused: (error) => this.#refuse(error),
      onFarAhead: (writer, number) => this.#reject('a sequence number far ahead is not believed', { writer, number }),
      onRemoteWriter: (endpoint) => options.onRemoteWriter?.(endpoint) ?? true,
      onRemoteGone: (guid, hasLeft) => options.onRemoteGone?.(guid, hasLeft),
      onRemoteReader: (endpoint) => options.onRemoteReader?.(endpoint),
    });
    const limit = this.#limit;
    const leaseSeconds = options.leaseSeconds ?? LEASE_SECONDS;
    const announcer = new Announcer({ ...options, leaseSeconds, packer, peers, limit, writers: endpoints.discoveryWriters, log });
    this.#endpoints = endpoints;
    this.#announcer = announcer;
    const onUnusable = (): void => this.#reject('a participant names no address that can be used');
    this.#detector = new Detector({
      domain: options.domain,
      peers,
      endpoints,
      announcer,
      limit,
      network,
      log,
      monotonicSeconds,
      onUnusable,
    });
    this.#outbox = new Outbox(endpoints, peers, packer, network);
    this.#agenda = new Agenda(monotonicSeconds, () => this.#onDue());
  }

  get prefix(): GuidPrefix {
    return this.#options.prefix;
  }

  get peerCount(): number {
    return this.#peers.size;
  }

  /** Whether a participant is there. */
  knows(prefix: GuidPrefix): boolean {
    return this.#peers.get(prefix) !== undefined;
  }

  /** Whether a participant has shown that it receives what is sent to its address: whoever speaks in its name cannot have invented that. */
  isProven(prefix: GuidPrefix): boolean {
    return this.#peers.get(prefix)?.isProven ?? false;
  }

  /** Has a proven participant show once more that it receives what is sent to it: resolves with whether it did, within half a second. */
  prove(prefix: GuidPrefix): Promise<boolean> {
    const peer = this.#peers.get(prefix);
    if (!peer?.isProven) return Promise.resolve(false);
    const running = this.#proofs.get(prefix);
    if (running) return running.result;
    const proof = new Proof(peer.challenge, this.#endpoints.discoveryWriters);
    this.#proofs.set(prefix, proof);
    this.#endpoints.addPeer(peer);
    return proof.result.finally(() => this.#proofs.delete(prefix));
  }

  /** The addresses at which a participant is sent to; empty: it is not known. */
  locatorsOf(prefix: GuidPrefix): readonly Locator[] {
    const peer = this.#peers.get(prefix);
    return [peer?.meta, peer?.user].filter((locator) => locator !== null && locator !== undefined);
  }

  /** Matches of endpoints here with endpoints of others. */
  get matchedCount(): number {
    return this.#endpoints.matchedCount;
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

  /** Removes a discreet reader. */
  removeReader(reader: LocalReader): void {
    this.#endpoints.removeReader(reader);
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
      onDatagram: (datagram, source, viaMulticast) => this.#onDatagram(datagram, source, viaMulticast),
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

  /** Tells everybody that it leaves, and closes; one that is still starting closes as soon as it can. */
  stop(): void {
    this.#isStopped = true;
    if (!this.#isOpen) return;
    this.#announcer.leave(this.#options.monotonicSeconds());
    this.#agenda.set(Number.POSITIVE_INFINITY);
    this.#isOpen = false;
    this.#options.network.close();
  }

  /** The address that a peer is sent to, for logs; null: not known. */
  addressOf(guid: Guid): string | null {
    return this.#peers.get(prefixOf(guid))?.meta.address ?? null;
  }

  /** Whether a datagram from this address is from this machine. */
  isOwnAddress(address: string): boolean {
    return this.#options.network.isOwn(address);
  }

  // ---- What arrives

  onMessage(sender: GuidPrefix): boolean {
    this.#identify(sender);
    const peer = this.#speaker;
    if (!peer) return true;
    const { address } = this.#arrival.source;
    if (this.#isForeign) {
      // One that is not proven may have announced itself from elsewhere first, or somebody else in its name.
      if (!peer.wasProven) return true;
      this.#reject('a datagram in the name of a participant at another address', { peer: sender, at: peer.meta.address });
      return false;
    }
    this.#peers.heard(peer, address, this.#announcer.interfaces, this.#options.monotonicSeconds());
    if (!peer.isProven) {
      this.#limit.receive(peer.meta.address, this.#arrival.octets);
      this.#arrival.octets = 0;
    }
    return true;
  }

  #identify(sender: GuidPrefix): void {
    const peer = this.#peers.get(sender);
    const { address } = this.#arrival.source;
    this.#speaker = peer;
    this.#isForeign = peer !== undefined && !peer.addresses.has(address) && !(peer.isLocal && this.isOwnAddress(address));
  }

  onData(data: DataSubmessage): void {
    if (entityOf(data.sender) === ENTITY.SPDP_WRITER) {
      this.#detector.onAnnouncement(data, this.#arrival, this.#isForeign);
      this.#identify(prefixOf(data.sender));
    } else for (const reader of this.#readersFor(data)) reader.onData(data, this.#arrival.source);
  }

  onDataFrag(data: DataFragSubmessage): void {
    for (const reader of this.#readersFor(data)) reader.onDataFrag(data, this.#arrival.source);
  }

  onHeartbeat(heartbeat: HeartbeatSubmessage): void {
    const { sender, first } = heartbeat;
    const peer = this.#speaker;
    // Beyond 1 it may be what it is to be proven to the other by: without an answer both would wait for the other's.
    if (peer && !peer.isProven && !this.#isForeign && first > 1 && DISCOVERY_READERS.has(entityOf(sender)))
      peer.questions.set(entityOf(sender), first);
    for (const reader of this.#readersFor(heartbeat)) reader.onHeartbeat(heartbeat);
  }

  onHeartbeatFrag(heartbeat: HeartbeatFragSubmessage): void {
    for (const reader of this.#readersFor(heartbeat)) reader.onHeartbeatFrag(heartbeat.sender, heartbeat.sequenceNumber);
  }

  onGap(gap: GapSubmessage): void {
    for (const reader of this.#readersFor(gap)) reader.onGap(gap);
  }

  onAckNack({ sender, receiver, set, count, isFinal }: AckNackSubmessage): void {
    const peer = this.#speaker;
    if (!peer || this.#isForeign) return;
    if (!peer.isProven) {
      if (DISCOVERY_READERS.has(receiver)) this.#detector.onAnswer(peer, receiver, set.base, this.#arrival.source.address);
      return;
    }
    if (DISCOVERY_READERS.has(receiver)) this.#proofs.get(prefixOf(sender))?.answer(receiver, set.base);
    this.#peers.answered(peer, this.#options.monotonicSeconds());
    this.#endpoints.writerStates.get(receiver)?.onAckNack(sender, set, count, isFinal);
  }

  onNackFrag({ sender, receiver, sequenceNumber, set }: NackFragSubmessage): void {
    if (!this.#isForeign) this.#endpoints.writerStates.get(receiver)?.onNackFrag(sender, sequenceNumber, set);
  }

  #readersFor({ receiver, sender }: Origin): readonly StatefulReader[] {
    return this.#isForeign ? [] : this.#endpoints.readersFor(receiver, sender);
  }

  #onDatagram(datagram: Buffer, source: Source, viaMulticast: boolean): void {
    if (!this.#isOpen || !isRtps(datagram)) return;
    const { localhostOnly, staticPeers } = this.#options;
    if (localhostOnly && !this.isOwnAddress(source.address) && !staticPeers.includes(source.address)) return;
    this.#arrival = { source, viaMulticast, octets: datagram.length };
    this.#speaker = undefined;
    this.#received += 1;
    this.#isBusy = true;
    try {
      readMessage(datagram, this.#options.prefix, this);
    } catch (error) {
      this.#refuse(error);
    }
    this.#isBusy = false;
    this.#challenge();
    // Answers to all of its submessages go out together: one datagram cannot make us send many.
    this.#flush();
  }

  /** Whoever speaks and is not proven has shown that this is the time to ask. */
  #challenge(): void {
    const peer = this.#speaker;
    if (peer && !peer.isProven && !this.#isForeign) this.#announcer.challenge(peer, this.#options.monotonicSeconds());
  }

  #onProblem(message: string, fields: Readonly<Record<string, unknown>>): void {
    this.#log('warning', message, fields);
    this.#announcer.suspect(this.#options.monotonicSeconds());
    this.#work();
  }

  #refuse(error: unknown): void {
    this.#refused += 1;
    const isExpected = error instanceof Malformed || error instanceof RangeError;
    const message = isExpected ? 'refused a malformed message' : 'a message could not be handled';
    this.#log(isExpected ? 'debug' : 'error', message, { from: this.#arrival.source.address, reason: (error as Error).message });
  }

  /** What is well-formed and not to be believed. */
  #reject(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.#refused += 1;
    this.#log('warning', message, { ...fields, from: this.#arrival.source.address });
  }

  // ---- What is sent, and when

  #work(): void {
    this.#hasWork = true;
    if (!this.#isBusy) this.#flush();
  }

  #onDue(): void {
    const now = this.#options.monotonicSeconds();
    const late = now - this.#announcer.dueSeconds;
    if (late > STOOD_STILL_SECONDS) this.#peers.excuse(late);
    if (now >= this.#announcer.dueSeconds && this.#announcer.announce(now)) this.#options.onAddressLost?.();
    if (now >= this.#peers.nextExpirySeconds) this.#detector.expire(now);
    this.#flush();
  }

  /** Lets every endpoint send what is due, and sets the timer to what is due next. */
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
