import type { Presence } from '../discovery/challenge.ts';
import { type EndpointData, endOfInstance, endpointPayload, isEnd, readEndpoint } from '../discovery/discovery-data.ts';
import type { Peer, Peers } from '../discovery/peers.ts';
import { LIMITS, type OctetBudget } from '../limits.ts';
import type { Logger } from '../log.ts';
import type { AckNackSubmessage } from '../wire/message-reader.ts';
import { ParameterList, ParameterWriter } from '../wire/parameters.ts';
import {
  DISCOVERY_READERS,
  ENTITY,
  ENTITY_KIND,
  type EntityId,
  entityOf,
  type Guid,
  type GuidPrefix,
  guidOf,
  PID,
  prefixOf,
} from '../wire/protocol.ts';
import { incompatiblePolicy, OWN_QOS, type Qos } from './qos.ts';
import { type MatchedWriter, type Received, StatefulReader } from './reader.ts';
import { type MatchedReader, StatefulWriter } from './writer.ts';

export interface TopicWriterOptions {
  readonly topic: string;
  readonly type: string;
  readonly transientLocal: boolean;
  /** Depth of the KEEP_LAST history. */
  readonly depth: number;
  /** See WriterOptions. */
  readonly isPeriodic?: boolean;
  /** Offered DEADLINE; by default none. */
  readonly deadlineSeconds?: number;
  /** Offered lease of AUTOMATIC liveliness, which only samples renew; by default infinite. */
  readonly livelinessLeaseSeconds?: number;
  readonly userData: string;
  readonly onMatched?: (reader: MatchedReader) => void;
}

export interface TopicReaderOptions {
  readonly topic: string;
  readonly type: string;
  readonly reliable: boolean;
  readonly transientLocal: boolean;
  readonly depth: number;
  readonly userData: string;
  /** Delivers every sample on arrival, duplicates included; see ReaderOptions. */
  readonly isUnordered?: boolean;
  /**
   * Announce the reader only to participants that have a matching writer. With hundreds of readers, announcing each of them to all
   * participants would be most of the traffic.
   */
  readonly isAnnouncedToWritersOnly?: boolean;
  /** Restricts the writers to match, where other readers of the topic match the rest; by default no restriction. */
  readonly isFor?: (writer: EndpointData) => boolean;
  /** A reader of the same topic that this one replaces: it is announced as disposed to participants with a writer for this one. */
  readonly replaces?: LocalReader | null;
  /** May throw: the sample is counted as refused. */
  readonly onSample: (received: Received) => void;
}

export interface LocalWriter {
  readonly options: TopicWriterOptions;
  readonly guid: Guid;
  readonly state: StatefulWriter;
}

export interface LocalReader {
  readonly options: TopicReaderOptions;
  readonly guid: Guid;
  readonly state: StatefulReader;
}

export interface EndpointsOptions {
  readonly prefix: GuidPrefix;
  readonly peers: Peers;
  readonly budget: OctetBudget;
  readonly log: Logger;
  readonly monotonicSeconds: () => number;
  readonly wallMilliseconds: () => number;
  /** Called when something may have to be sent. */
  readonly onWork: () => void;
  readonly onRefused: (error: unknown) => void;
  /** See ReaderOptions. */
  readonly onImplausible: (message: string, writer: Guid, number: number) => void;
  /** Asks a participant whether it is present. */
  readonly confirm: (peer: Peer) => Promise<Presence>;
  /** Called before a remote writer is matched: a reader may be created for it. False: no reader could be created. */
  readonly onRemoteWriter?: (endpoint: EndpointData) => boolean;
  /** A matched remote endpoint was removed; `hasLeft`: it or its participant was disposed; otherwise its lease expired. */
  readonly onRemoteGone?: (guid: Guid, hasLeft: boolean) => void;
  /** Called before a remote reader is matched: a writer may be created for it. */
  readonly onRemoteReader?: (endpoint: EndpointData) => void;
  /** See ParticipantOptions. */
  readonly onParticipantGone?: (key: GuidPrefix, hasLeft: boolean) => void;
}

/** When a disposed endpoint is challenged: its last messages have arrived by then. */
const CHALLENGE_MS = 500;
/** How long a disposed endpoint may respond. */
const RESPONSE_MS = 2500;

/** Refused endpoints kept per participant; a robot has fewer writers of the topics that are read here. */
const MAX_REFUSED = 8;
/** Disposals of removed endpoints that are still announced to the participants to which they had been announced. */
const MAX_ENDED = 256;

/**
 * Announces the local endpoints, reads the announcements of remote ones, and matches the two (8.5.4). Only matched remote endpoints are
 * stored, so that a participant that announces a hundred thousand endpoints takes no memory.
 */
export class Endpoints {
  readonly #options: EndpointsOptions;
  readonly #publications: StatefulWriter;
  readonly #subscriptions: StatefulWriter;
  /**
   * The writer of 8.4.13. It never writes, because Cyclone DDS and Fast DDS renew the lease of a writer with each of its samples, but
   * Fast DDS requests its first heartbeat 14 times a second until it gets one.
   */
  readonly #liveliness: StatefulWriter;
  readonly #writers = new Map<EntityId, LocalWriter>();
  readonly #readers = new Map<EntityId, LocalReader>();
  /** All endpoints, those of discovery included. */
  readonly writerStates = new Map<EntityId, StatefulWriter>();
  /** Each reader as the list that `readersFor` returns for every submessage that names it. */
  readonly #readerStates = new Map<EntityId, readonly [StatefulReader]>();
  /** Endpoints that may have something to send; polling each of hundreds takes too long. */
  readonly busyWriters = new Set<StatefulWriter>();
  readonly busyReaders = new Set<StatefulReader>();
  /** The local readers of each remote writer. */
  readonly #readersOf = new Map<Guid, StatefulReader[]>();
  /** Matched endpoints whose disposal was received. One that is challenged refutes its disposal by a message. */
  readonly #disposed = new Map<Guid, { isChallenged: boolean }>();
  /** By participant: the readers that were announced as disposed to this participant alone. */
  readonly #retracted = new Map<GuidPrefix, Set<Guid>>();
  /** Endpoints beyond the limits, a few per participant: they are announced only once, so they are kept until others are removed. */
  readonly #refused = new Map<GuidPrefix, { readonly endpoint: EndpointData; readonly isWriter: boolean }[]>();
  /** Instances of removed endpoints whose disposal is still announced, oldest first. */
  readonly #ended: { readonly announcer: StatefulWriter; readonly instance: string }[] = [];
  #nextKey = 1;

  constructor(options: EndpointsOptions) {
    this.#options = options;
    this.#publications = this.#addDiscoveryWriter(ENTITY.PUBLICATIONS_WRITER);
    this.#subscriptions = this.#addDiscoveryWriter(ENTITY.SUBSCRIPTIONS_WRITER);
    this.#liveliness = this.#addDiscoveryWriter(ENTITY.LIVELINESS_WRITER);
    this.#addDiscoveryReader(ENTITY.PUBLICATIONS_READER, true);
    this.#addDiscoveryReader(ENTITY.SUBSCRIPTIONS_READER, false);
  }

  /** The writers that announce endpoints. */
  get discoveryWriters(): readonly StatefulWriter[] {
    return [this.#publications, this.#subscriptions];
  }

  createWriter(options: TopicWriterOptions): LocalWriter {
    const entity = this.#newEntity(ENTITY_KIND.WRITER_NO_KEY);
    const { depth, isPeriodic = false, transientLocal } = options;
    const state = new StatefulWriter({ entity, depth, isPeriodic, transientLocal, onBusy: this.#onBusyWriter });
    const writer: LocalWriter = { options, guid: guidOf(this.#options.prefix, entity), state };
    this.#writers.set(entity, writer);
    this.writerStates.set(entity, state);
    this.#announce(this.#publications, writer);
    return writer;
  }

  createReader(options: TopicReaderOptions): LocalReader {
    const entity = this.#newEntity(ENTITY_KIND.READER_NO_KEY);
    const deliver = (received: Received): void => {
      if (received.data.inlineQos?.isUnderstood !== false) this.#deliver(received, options.onSample);
    };
    const { budget, onImplausible } = this.#options;
    const { isUnordered = false, reliable } = options;
    const state = new StatefulReader({ entity, reliable, isUnordered, budget, deliver, onImplausible, onBusy: this.#onBusyReader });
    const reader: LocalReader = { options, guid: guidOf(this.#options.prefix, entity), state };
    this.#readers.set(entity, reader);
    this.#readerStates.set(entity, [state]);
    if (!options.isAnnouncedToWritersOnly) this.#announce(this.#subscriptions, reader);
    return reader;
  }

  /**
   * Removes a reader, and announces its disposal to the participants that received its announcement. The last of these announcements are
   * kept for participants that have not acknowledged them yet.
   */
  removeReader({ guid, state }: LocalReader): void {
    this.#readers.delete(state.entity);
    this.#readerStates.delete(state.entity);
    this.busyReaders.delete(state);
    for (const { guid: writer } of state.writers) {
      state.unmatch(writer);
      const others = this.#readersOf.get(writer)?.filter((reader) => reader !== state) ?? [];
      if (others.length > 0) this.#readersOf.set(writer, others);
      else {
        this.#options.peers.get(prefixOf(writer))?.matched.delete(writer);
        this.#unmatch(writer);
      }
    }
    this.#endAnnouncements(this.#subscriptions, guid);
  }

  /** Removes a writer; the disposal is announced as that of a reader. */
  removeWriter({ guid, state }: LocalWriter): void {
    this.#writers.delete(state.entity);
    this.writerStates.delete(state.entity);
    this.busyWriters.delete(state);
    for (const { guid: reader } of state.readers) {
      if (![...this.#writers.values()].some((other) => other.state.isMatched(reader)))
        this.#options.peers.get(prefixOf(reader))?.matched.delete(reader);
    }
    this.#endAnnouncements(this.#publications, guid);
  }

  #endAnnouncements(announcer: StatefulWriter, guid: Guid): void {
    for (const { instance } of announcer.history) {
      if (instance === null || (instance !== guid && !instance.startsWith(`${guid} `))) continue;
      this.#announceEnd(announcer, guid, instance === guid ? null : instance.slice(guid.length + 1));
      this.#ended.push({ announcer, instance });
      if (this.#ended.length <= MAX_ENDED) continue;
      const oldest = this.#ended.shift();
      oldest?.announcer.forget(oldest.instance);
    }
    this.#options.onWork();
  }

  /** Has the writers of a participant announced again: those without a reader were not stored, and there may be a reader for them now. */
  rediscoverWriters({ key }: Peer): void {
    const [state] = this.#readerStates.get(ENTITY.PUBLICATIONS_READER) as readonly [StatefulReader];
    state.restart(guidOf(key, ENTITY.PUBLICATIONS_WRITER), this.#options.monotonicSeconds());
    this.#options.onWork();
  }

  /** Nothing is checked any more. */
  stop(): void {
    this.#disposed.clear();
  }

  /** The readers that a submessage of a remote writer is for: the named one, or all that are matched with the writer. */
  readersFor(receiver: EntityId, writer: Guid): readonly StatefulReader[] {
    if (this.#disposed.size > 0) this.#refuteDisposal(writer);
    if (receiver === ENTITY.UNKNOWN) return this.#readersOf.get(writer) ?? [];
    return this.#readerStates.get(receiver) ?? [];
  }

  onAckNack({ sender, receiver, set, count, isFinal }: AckNackSubmessage): void {
    if (this.#disposed.size > 0) this.#refuteDisposal(sender);
    this.writerStates.get(receiver)?.onAckNack(sender, set, count, isFinal);
  }

  readonly #onBusyWriter = (writer: StatefulWriter): void => void this.busyWriters.add(writer);
  readonly #onBusyReader = (reader: StatefulReader): void => void this.busyReaders.add(reader);

  /** Matches between local and remote user endpoints. */
  get matchedCount(): number {
    let count = 0;
    for (const { state } of this.#writers.values()) count += state.readerCount;
    for (const { state } of this.#readers.values()) count += state.writerCount;
    return count;
  }

  /** Matches the discovery endpoints with those of a peer that was just proven (8.5.5.1); its readers are sent the whole history again. */
  addPeer({ challenge, data, key }: Peer): void {
    const seconds = this.#options.monotonicSeconds();
    const remote = { reliable: true, transientLocal: true, userData: '', vendor: data.vendor };
    for (const [writer, reader] of DISCOVERY_READERS) {
      this.writerStates.get(writer)?.match({ ...remote, guid: guidOf(key, reader), numberOffset: challenge.firstOf(writer) - 1 }, seconds);
      const [state] = this.#readerStates.get(reader) as readonly [StatefulReader];
      const guid = guidOf(key, writer);
      if (!state.isMatched(guid)) this.#join(state, { ...remote, guid }, seconds);
    }
    if (data.readsLiveliness) this.#liveliness.match({ ...remote, guid: guidOf(key, ENTITY.LIVELINESS_READER) }, seconds);
    this.#options.onWork();
  }

  /** The numbers of a peer's discovery writers below which everything was received. */
  acknowledgedOf({ key }: Peer): ReadonlyMap<EntityId, number> {
    const numbers = new Map<EntityId, number>();
    for (const [writer, reader] of DISCOVERY_READERS) {
      const next = this.#readerStates.get(reader)?.[0].nextOf(guidOf(key, writer));
      if (next !== undefined) numbers.set(writer, next);
    }
    return numbers;
  }

  /** Removes all endpoints of a peer; `hasLeft`: it has announced that it leaves. */
  removePeer({ key, matched }: Peer, hasLeft = false): void {
    for (const [writer, reader] of DISCOVERY_READERS) {
      this.writerStates.get(writer)?.unmatch(guidOf(key, reader));
      this.#readerStates.get(reader)?.[0].unmatch(guidOf(key, writer));
      this.#readersOf.delete(guidOf(key, writer));
    }
    this.#liveliness.unmatch(guidOf(key, ENTITY.LIVELINESS_READER));
    const gone = [...matched];
    for (const guid of gone) this.#unmatch(guid);
    matched.clear();
    this.#retracted.delete(key);
    this.#refused.delete(key);
    for (const guid of gone) this.#options.onRemoteGone?.(guid, hasLeft);
    this.#options.onParticipantGone?.(key, hasLeft);
    if (gone.length > 0) this.#offerAgain();
  }

  #addDiscoveryWriter(entity: EntityId): StatefulWriter {
    const options = { entity, depth: Number.POSITIVE_INFINITY, transientLocal: true };
    const writer = new StatefulWriter({ ...options, onBusy: this.#onBusyWriter });
    this.writerStates.set(entity, writer);
    return writer;
  }

  #addDiscoveryReader(entity: EntityId, ofWriters: boolean): void {
    const onSample = (received: Received): void => this.#onEndpoint(received, ofWriters);
    const deliver = (received: Received): void => this.#deliver(received, onSample);
    const { budget, onImplausible } = this.#options;
    const numbersAhead = LIMITS.discoveryNumbersAhead;
    const options = { entity, reliable: true, numbersAhead, budget, deliver, onImplausible, onBusy: this.#onBusyReader };
    this.#readerStates.set(entity, [new StatefulReader(options)]);
  }

  #newEntity(kind: number): EntityId {
    const entity = (this.#nextKey << 8) | kind;
    this.#nextKey += 1;
    return entity;
  }

  #join(reader: StatefulReader, writer: MatchedWriter, seconds: number): void {
    reader.match(writer, seconds);
    this.#readersOf.set(writer.guid, [...(this.#readersOf.get(writer.guid) ?? []), reader]);
  }

  /** `to`: the only participant to which the endpoint is announced; null: all. */
  #announce(announcer: StatefulWriter, { guid, options }: LocalWriter | LocalReader, to: GuidPrefix | null = null): void {
    const { topic, type, userData, depth } = options;
    const qos = ownQos(options);
    const payload = endpointPayload({ guid, topic, type, userData, qos }, depth);
    const only = to && guidOf(to, ENTITY.SUBSCRIPTIONS_READER);
    const instance = to ? `${guid} ${to}` : guid;
    announcer.write({ payload, isKey: false, inlineQos: null, timestampMs: this.#options.wallMilliseconds(), only, instance });
    this.#options.onWork();
  }

  #deliver(received: Received, onSample: (received: Received) => void): void {
    try {
      onSample(received);
    } catch (error) {
      this.#options.onRefused(error);
    }
  }

  #onEndpoint({ data, writer }: Received, isWriter: boolean): void {
    const list = data.payload && ParameterList.ofPayload(data.payload);
    const announced = list?.guid(PID.ENDPOINT_GUID) ?? data.inlineQos?.guid(PID.KEY_HASH);
    // A participant may announce its own endpoints only.
    const peer = this.#options.peers.get(prefixOf(writer.guid));
    if (!announced || !peer || prefixOf(announced) !== peer.data.prefix) return;
    const guid = guidOf(peer.key, entityOf(announced));
    if (data.isKey || isEnd(data.inlineQos)) {
      if (!peer.matched.has(guid)) return;
      if (peer.isLocal) this.#remove(guid, peer);
      else if (!this.#disposed.has(guid)) void this.#checkDisposal(guid, peer, isWriter);
      return;
    }
    this.#disposed.delete(guid);
    if (list?.isUnderstood) this.#offer({ ...readEndpoint(list, isWriter), guid }, isWriter, peer);
  }

  #remove(guid: Guid, peer: Peer): void {
    peer.matched.delete(guid);
    this.#unmatch(guid);
    this.#options.onRemoteGone?.(guid, true);
    this.#offerAgain();
  }

  /**
   * Removes a disposed endpoint, unless it responds or is announced again: the disposal may have been forged. An endpoint of a participant
   * that does not respond itself stays until the participant is removed, since it may have been lost.
   */
  async #checkDisposal(guid: Guid, peer: Peer, isWriter: boolean): Promise<void> {
    const { confirm } = this.#options;
    const disposal = { isChallenged: false };
    const isOpen = (): boolean => this.#disposed.get(guid) === disposal;
    this.#disposed.set(guid, disposal);
    while (isOpen()) {
      await pause(CHALLENGE_MS);
      if ((await confirm(peer)) === 'silent' || !isOpen()) continue;
      disposal.isChallenged = true;
      this.#challenge(guid, peer, isWriter);
      await pause(RESPONSE_MS);
      if (isOpen() && (await confirm(peer)) === 'present' && isOpen()) this.#remove(guid, peer);
    }
  }

  /** Causes a message of an endpoint. Best-effort ones send none; for them, the announcements of the participant are requested again. */
  #challenge(guid: Guid, peer: Peer, isWriter: boolean): void {
    const seconds = this.#options.monotonicSeconds();
    const states = isWriter ? (this.#readersOf.get(guid) ?? []) : [...this.#writers.values()].map(({ state }) => state);
    if (!states.map((state) => state.challenge(guid, seconds)).includes(true)) {
      const [state] = this.#readerStates.get(isWriter ? ENTITY.PUBLICATIONS_READER : ENTITY.SUBSCRIPTIONS_READER) as readonly [
        StatefulReader,
      ];
      state.restart(guidOf(peer.key, isWriter ? ENTITY.PUBLICATIONS_WRITER : ENTITY.SUBSCRIPTIONS_WRITER), seconds);
    }
    this.#options.onWork();
  }

  #refuteDisposal(guid: Guid): void {
    if (!this.#disposed.get(guid)?.isChallenged) return;
    this.#disposed.delete(guid);
    this.#options.log('warning', 'disposal of an endpoint ignored: it still responds', { guid });
  }

  /** Tries to match the refused endpoints again, until one is refused once more. */
  #offerAgain(): void {
    const refused = [...this.#refused.values()].flat();
    this.#refused.clear();
    for (const { endpoint, isWriter } of refused) {
      const peer = this.#options.peers.get(prefixOf(endpoint.guid));
      if (!peer) continue;
      if (this.#refused.size > 0) this.#refuse(endpoint, isWriter);
      else this.#offer(endpoint, isWriter, peer);
    }
  }

  #refuse(endpoint: EndpointData, isWriter: boolean): void {
    const prefix = prefixOf(endpoint.guid);
    const list = (this.#refused.get(prefix) ?? []).filter((other) => other.endpoint.guid !== endpoint.guid);
    if (list.length < MAX_REFUSED) this.#refused.set(prefix, [...list, { endpoint, isWriter }]);
  }

  #offer(endpoint: EndpointData, isWriter: boolean, peer: Peer): void {
    if (isWriter) {
      if (this.#options.onRemoteWriter?.(endpoint) === false) this.#refuse(endpoint, true);
      const policies = [...this.#readers.values()]
        .filter((reader) => hasTopicAndType(reader, endpoint) && reader.options.isFor?.(endpoint) !== false)
        .map((reader) => this.#matchReader(reader, endpoint, peer));
      // Incompatibility with one reader is no problem when a second, less demanding reader matches.
      if (!policies.includes(null)) this.#warnOf(policies[0], endpoint, peer);
    } else {
      this.#options.onRemoteReader?.(endpoint);
      for (const own of this.#writers.values())
        if (hasTopicAndType(own, endpoint)) this.#warnOf(this.#matchWriter(own, endpoint, peer), endpoint, peer);
    }
  }

  /** Returns null when matched, now or before; otherwise the incompatible policy. */
  #matchReader(reader: LocalReader, endpoint: EndpointData, peer: Peer): string | null {
    const { options, state } = reader;
    const { guid, qos, userData } = endpoint;
    const policy = incompatiblePolicy(qos, ownQos(options));
    if (policy !== null || state.isMatched(guid) || !this.#isWithinLimits(endpoint, peer, state.writerCount, true)) return policy;
    this.#addMatch(endpoint, peer);
    const writer = { guid, reliable: qos.reliable, transientLocal: qos.durability > 0, vendor: peer.data.vendor, userData };
    this.#join(state, writer, this.#options.monotonicSeconds());
    this.#announceToWriter(reader, peer);
    this.#options.onWork();
    return null;
  }

  /** Announces the matched reader to the writer's participant where that differs from what is announced to all participants. */
  #announceToWriter(reader: LocalReader, { key: prefix }: Peer): void {
    const { isAnnouncedToWritersOnly, replaces } = reader.options;
    if (isAnnouncedToWritersOnly || this.#retracted.get(prefix)?.delete(reader.guid)) this.#announce(this.#subscriptions, reader, prefix);
    if (!replaces || replaces.state.writers.some(({ guid }) => prefixOf(guid) === prefix)) return;
    const retracted = this.#retracted.get(prefix) ?? new Set();
    if (retracted.has(replaces.guid)) return;
    this.#retracted.set(prefix, retracted.add(replaces.guid));
    this.#announceEnd(this.#subscriptions, replaces.guid, prefix);
  }

  /** `to`: as for `#announce`. */
  #announceEnd(announcer: StatefulWriter, endpoint: Guid, to: GuidPrefix | null): void {
    announcer.write({
      payload: new ParameterWriter().guid(PID.ENDPOINT_GUID, endpoint).payload(),
      isKey: true,
      inlineQos: endOfInstance(endpoint),
      timestampMs: this.#options.wallMilliseconds(),
      only: to && guidOf(to, ENTITY.SUBSCRIPTIONS_READER),
      instance: to ? `${endpoint} ${to}` : endpoint,
    });
  }

  #matchWriter({ options, state }: LocalWriter, endpoint: EndpointData, peer: Peer): string | null {
    const { guid, qos, userData } = endpoint;
    const policy = incompatiblePolicy(ownQos(options), qos);
    if (policy !== null || state.isMatched(guid) || !this.#isWithinLimits(endpoint, peer, state.readerCount, false)) return policy;
    this.#addMatch(endpoint, peer);
    const reader: MatchedReader = { guid, reliable: qos.reliable, transientLocal: qos.durability > 0, userData };
    state.match(reader, this.#options.monotonicSeconds());
    options.onMatched?.(reader);
    this.#options.onWork();
    return null;
  }

  #warnOf(policy: string | null | undefined, { topic }: EndpointData, peer: Peer): void {
    if (policy) this.#options.log('warning', 'incompatible QoS: not matched', { topic, policy, peer: peer.data.name || peer.data.prefix });
  }

  #isWithinLimits(endpoint: EndpointData, peer: Peer, matched: number, isWriter: boolean): boolean {
    const hasTooMany = peer.matched.size >= LIMITS.matchedPerParticipant;
    if (!hasTooMany && matched < LIMITS.matchedPerEndpoint && this.matchedCount < LIMITS.matched) return true;
    if (!hasTooMany) this.#refuse(endpoint, isWriter);
    const { guid, topic } = endpoint;
    // The topic is a field, not part of the message: messages are rate-limited by their text, and a remote participant can invent topics.
    this.#options.log('warning', 'too many endpoints, endpoint not matched', { topic, peer: peer.data.name || peer.data.prefix, guid });
    return false;
  }

  /** Stores also the endpoint's own port, if it announces one at the address that is used for its participant. */
  #addMatch({ guid, unicast }: EndpointData, peer: Peer): void {
    peer.matched.add(guid);
    const own = unicast.find(({ address }) => address === peer.meta.address);
    if (own && own.port !== peer.user?.port) peer.ports.set(guid, own.port);
  }

  #unmatch(guid: Guid): void {
    this.#disposed.delete(guid);
    this.#options.peers.get(prefixOf(guid))?.ports.delete(guid);
    for (const { state } of this.#writers.values()) state.unmatch(guid);
    for (const state of this.#readersOf.get(guid) ?? []) state.unmatch(guid);
    this.#readersOf.delete(guid);
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds).unref());
}

function ownQos(options: TopicWriterOptions | TopicReaderOptions): Qos {
  const durability = options.transientLocal ? 1 : 0;
  if ('reliable' in options) return { ...OWN_QOS, reliable: options.reliable, durability };
  const { deadlineSeconds, livelinessLeaseSeconds } = { ...OWN_QOS, ...options };
  return { ...OWN_QOS, reliable: true, durability, deadlineSeconds, livelinessLeaseSeconds };
}

function hasTopicAndType({ options }: LocalReader | LocalWriter, { topic, type }: EndpointData): boolean {
  return options.topic === topic && options.type === type;
}
