import { type EndpointData, endOfInstance, endpointPayload, isEnd, readEndpoint } from './discovery-data.ts';
import { LIMITS, type OctetBudget } from './limits.ts';
import type { Logger } from './log.ts';
import { ParameterList, ParameterWriter } from './parameters.ts';
import type { Peer, Peers } from './peers.ts';
import { DISCOVERY_READERS, ENTITY, ENTITY_KIND, type EntityId, type Guid, type GuidPrefix, guidOf, PID, prefixOf } from './protocol.ts';
import { incompatiblePolicy, OWN_QOS, type Qos } from './qos.ts';
import { type MatchedWriter, type Received, StatefulReader } from './reader.ts';
import { type MatchedReader, StatefulWriter } from './writer.ts';

export interface TopicWriterOptions {
  readonly topic: string;
  readonly type: string;
  readonly transientLocal: boolean;
  /** KEEP_LAST: samples kept. */
  readonly depth: number;
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
  /** Takes every sample at once, those that come again too; see ReaderOptions. */
  readonly isUnordered?: boolean;
  /**
   * Only participants that have a writer for it are told of it: where it is one of hundreds, telling all of them to everybody would be
   * most of what is said on the network.
   */
  readonly isDiscreet?: boolean;
  /** Which offers of writers it takes, where other readers of the topic take the others; by default all that satisfy it. */
  readonly isFor?: (offered: Qos) => boolean;
  /** A reader of the same topic that is announced as disposed to participants with a writer for this one, which takes its place there. */
  readonly insteadOf?: LocalReader | null;
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
  readonly now: () => { readonly seconds: number; readonly ms: number };
  /** Something may have to be sent. */
  readonly onWork: () => void;
  readonly onRefused: (error: unknown) => void;
  /** A number that a remote writer names is too far ahead to be believed. */
  readonly onFarAhead: (writer: Guid, number: number) => void;
  /** A remote writer was announced, before it is matched: a reader for it may be made now. False: there is no room for one. */
  readonly onRemoteWriter: (endpoint: EndpointData) => boolean;
  /** A matched remote endpoint is gone; `hasLeft`: it or its participant said so, rather than fell silent. */
  readonly onRemoteGone: (guid: Guid, hasLeft: boolean) => void;
  /** The same of a remote reader: a writer for it may be made now. */
  readonly onRemoteReader: (endpoint: EndpointData) => void;
}

/** Of one participant: more than a robot has of what is read here. */
const MAX_REFUSED = 8;
/** Removed readers that are still announced as disposed to participants that knew them. */
const MAX_ENDED = 256;

/**
 * The endpoints of this participant and of the others (8.5.4): announces ours, reads theirs, and matches the two. Only what is matched is
 * kept, so that one who announces a hundred thousand endpoints costs nothing.
 */
export class Endpoints {
  readonly #options: EndpointsOptions;
  readonly #publications: StatefulWriter;
  readonly #subscriptions: StatefulWriter;
  /** Of 8.4.13: never writes, since our writers assert no liveliness. But its readers ask for its heartbeat until they get it: Fast DDS 14 times a second, for ever. */
  readonly #liveliness: StatefulWriter;
  readonly #writers = new Map<EntityId, LocalWriter>();
  readonly #readers = new Map<EntityId, LocalReader>();
  /** Everything that takes part in the protocol, discovery's own endpoints included. */
  readonly writerStates = new Map<EntityId, StatefulWriter>();
  readonly readerStates = new Map<EntityId, StatefulReader>();
  /** Those that may have something to say: with hundreds of endpoints it takes too long to ask each. */
  readonly busyWriters = new Set<StatefulWriter>();
  readonly busyReaders = new Set<StatefulReader>();
  /** The readers here of each remote writer. */
  readonly #readersOf = new Map<Guid, StatefulReader[]>();
  /** The readers that were announced as disposed to each participant alone. */
  readonly #retracted = new Map<GuidPrefix, Set<Guid>>();
  /** Endpoints that there was no room for, a few of each participant: announced once, they are looked at again when others go. */
  readonly #refused = new Map<GuidPrefix, { readonly endpoint: EndpointData; readonly isWriter: boolean }[]>();
  /** Instances of removed readers that are still announced as disposed, oldest first. */
  readonly #ended: string[] = [];
  #nextKey = 1;

  constructor(options: EndpointsOptions) {
    this.#options = options;
    this.#publications = this.#addDiscoveryWriter(ENTITY.PUBLICATIONS_WRITER);
    this.#subscriptions = this.#addDiscoveryWriter(ENTITY.SUBSCRIPTIONS_WRITER);
    this.#liveliness = this.#addDiscoveryWriter(ENTITY.LIVELINESS_WRITER);
    this.#addDiscoveryReader(ENTITY.PUBLICATIONS_READER, true);
    this.#addDiscoveryReader(ENTITY.SUBSCRIPTIONS_READER, false);
  }

  /** They announce endpoints. */
  get discoveryWriters(): readonly StatefulWriter[] {
    return [this.#publications, this.#subscriptions];
  }

  createWriter(options: TopicWriterOptions): LocalWriter {
    const entity = this.#newEntity(ENTITY_KIND.WRITER_NO_KEY);
    const { depth, transientLocal } = options;
    const state = new StatefulWriter({ entity, depth, transientLocal, onBusy: this.#onBusyWriter });
    const writer: LocalWriter = { options, guid: guidOf(this.#options.prefix, entity), state };
    this.#writers.set(entity, writer);
    this.writerStates.set(entity, state);
    this.#announce(this.#publications, writer);
    return writer;
  }

  createReader(options: TopicReaderOptions): LocalReader {
    const entity = this.#newEntity(ENTITY_KIND.READER_NO_KEY);
    const deliver = (received: Received): void => {
      if (received.data.inlineQos?.isUnderstood !== false) this.#guarded(() => options.onSample(received));
    };
    const { budget, onFarAhead } = this.#options;
    const { isUnordered = false, reliable } = options;
    const state = new StatefulReader({ entity, reliable, isUnordered, budget, deliver, onFarAhead, onBusy: this.#onBusyReader });
    const reader: LocalReader = { options, guid: guidOf(this.#options.prefix, entity), state };
    this.#readers.set(entity, reader);
    this.readerStates.set(entity, state);
    if (!options.isDiscreet) this.#announce(this.#subscriptions, reader);
    return reader;
  }

  /**
   * Removes a discreet reader. Participants that were told of it and are still there are told that it is gone; the last of these
   * announcements are kept for those that have not acknowledged them yet.
   */
  removeReader({ guid, state }: LocalReader): void {
    this.#readers.delete(state.entity);
    this.readerStates.delete(state.entity);
    this.busyReaders.delete(state);
    for (const { guid: writer } of state.writers) {
      state.unmatch(writer);
      this.#readersOf.set(
        writer,
        this.readersFor(ENTITY.UNKNOWN, writer).filter((reader) => reader !== state),
      );
    }
    for (const { instance } of this.#subscriptions.history) {
      const to = instance?.startsWith(`${guid} `) ? instance.slice(guid.length + 1) : null;
      if (to === null) continue;
      this.#announceEnd(guid, to);
      this.#ended.push(`${guid} ${to}`);
      if (this.#ended.length > MAX_ENDED) this.#subscriptions.forget(this.#ended.shift() as string);
    }
    this.#options.onWork();
  }

  /** Whom a submessage of a remote writer is for: the reader that it names, or all of this writer. */
  readersFor(receiver: EntityId, writer: Guid): readonly StatefulReader[] {
    if (receiver === ENTITY.UNKNOWN) return this.#readersOf.get(writer) ?? [];
    const reader = this.readerStates.get(receiver);
    return reader ? [reader] : [];
  }

  readonly #onBusyWriter = (writer: StatefulWriter): void => void this.busyWriters.add(writer);
  readonly #onBusyReader = (reader: StatefulReader): void => void this.busyReaders.add(reader);

  /** Matches of user endpoints, ours with those of others. */
  get matchedCount(): number {
    let count = 0;
    for (const { state } of this.#writers.values()) count += state.readerCount;
    for (const { state } of this.#readers.values()) count += state.writerCount;
    return count;
  }

  /** Matches the discovery endpoints with those of a peer that was just proven (8.5.5.1); its readers begin anew. */
  addPeer({ data, challenge }: Peer): void {
    const { seconds } = this.#options.now();
    const remote = { reliable: true, transientLocal: true, userData: '', vendor: data.vendor };
    for (const [writer, reader] of DISCOVERY_READERS) {
      this.writerStates
        .get(writer)
        ?.match({ ...remote, guid: guidOf(data.prefix, reader), numberOffset: challenge.firstOf(writer) - 1 }, seconds);
      const state = this.readerStates.get(reader) as StatefulReader;
      const guid = guidOf(data.prefix, writer);
      if (!state.isMatched(guid)) this.#join(state, { ...remote, guid }, seconds);
    }
    if (data.readsLiveliness) this.#liveliness.match({ ...remote, guid: guidOf(data.prefix, ENTITY.LIVELINESS_READER) }, seconds);
    this.#options.onWork();
  }

  /** Forgets all endpoints of a peer; `hasLeft`: it said that it leaves. */
  removePeer({ data, matched }: Peer, hasLeft = false): void {
    for (const [writer, reader] of DISCOVERY_READERS) {
      this.writerStates.get(writer)?.unmatch(guidOf(data.prefix, reader));
      this.readerStates.get(reader)?.unmatch(guidOf(data.prefix, writer));
      this.#readersOf.delete(guidOf(data.prefix, writer));
    }
    this.#liveliness.unmatch(guidOf(data.prefix, ENTITY.LIVELINESS_READER));
    const gone = [...matched];
    for (const guid of gone) this.#unmatch(guid);
    matched.clear();
    this.#retracted.delete(data.prefix);
    this.#refused.delete(data.prefix);
    for (const guid of gone) this.#options.onRemoteGone(guid, hasLeft);
    if (gone.length > 0) this.#offerAgain();
  }

  #addDiscoveryWriter(entity: EntityId): StatefulWriter {
    const options = { entity, depth: Number.POSITIVE_INFINITY, transientLocal: true };
    const writer = new StatefulWriter({ ...options, onBusy: this.#onBusyWriter });
    this.writerStates.set(entity, writer);
    return writer;
  }

  #addDiscoveryReader(entity: EntityId, ofWriters: boolean): void {
    const deliver = (received: Received): void => this.#guarded(() => this.#onEndpoint(received, ofWriters));
    const { budget, onFarAhead } = this.#options;
    const options = { entity, reliable: true, budget, deliver, onFarAhead, onBusy: this.#onBusyReader };
    this.readerStates.set(entity, new StatefulReader(options));
  }

  #newEntity(kind: number): EntityId {
    const entity = (this.#nextKey << 8) | kind;
    this.#nextKey += 1;
    return entity;
  }

  /** Matches a reader with a remote writer. */
  #join(reader: StatefulReader, writer: MatchedWriter, seconds: number): void {
    reader.match(writer, seconds);
    this.#readersOf.set(writer.guid, [...(this.#readersOf.get(writer.guid) ?? []), reader]);
  }

  /** `to`: one participant alone; null: all. */
  #announce(announcer: StatefulWriter, { guid, options }: LocalWriter | LocalReader, to: GuidPrefix | null = null): void {
    const { topic, type, userData, depth } = options;
    const qos = ownQos({ reliable: !('reliable' in options) || options.reliable, transientLocal: options.transientLocal });
    const payload = endpointPayload({ guid, topic, type, userData, qos }, depth);
    const only = to && guidOf(to, ENTITY.SUBSCRIPTIONS_READER);
    const instance = to ? `${guid} ${to}` : guid;
    announcer.write({ payload, isKey: false, inlineQos: null, timestampMs: this.#options.now().ms, only, instance });
    this.#options.onWork();
  }

  #guarded(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#options.onRefused(error);
    }
  }

  #onEndpoint({ data, writer }: Received, isWriter: boolean): void {
    const list = data.payload && ParameterList.ofPayload(data.payload);
    const guid = list?.guid(PID.ENDPOINT_GUID) ?? data.inlineQos?.guid(PID.KEY_HASH);
    // A participant speaks for its own endpoints only.
    const peer = this.#options.peers.get(prefixOf(writer.guid));
    if (!guid || !peer || prefixOf(guid) !== peer.data.prefix) return;
    if (data.isKey || isEnd(data.inlineQos)) {
      const wasMatched = peer.matched.delete(guid);
      this.#unmatch(guid);
      if (wasMatched) this.#options.onRemoteGone(guid, true);
      if (wasMatched) this.#offerAgain();
      return;
    }
    if (list?.isUnderstood) this.#offer(readEndpoint(list, isWriter), isWriter, peer);
  }

  /** What was refused, until there is no room again. */
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
      if (!this.#options.onRemoteWriter(endpoint)) this.#refuse(endpoint, true);
      const policies = [...this.#readers.values()]
        .filter((reader) => meets(reader, endpoint) && reader.options.isFor?.(endpoint.qos) !== false)
        .map((reader) => this.#matchReader(reader, endpoint, peer));
      // A second, less demanding reader may take what the first cannot.
      if (!policies.includes(null)) this.#warnOf(policies[0], endpoint, peer);
    } else {
      this.#options.onRemoteReader(endpoint);
      for (const own of this.#writers.values())
        if (meets(own, endpoint)) this.#warnOf(this.#matchWriter(own, endpoint, peer), endpoint, peer);
    }
  }

  /** Null: matched, now or before; else the policy that keeps the two apart. */
  #matchReader(reader: LocalReader, endpoint: EndpointData, peer: Peer): string | null {
    const { options, state } = reader;
    const { guid, qos, userData } = endpoint;
    const policy = incompatiblePolicy(qos, ownQos(options));
    if (policy !== null || state.isMatched(guid) || !this.#hasRoom(endpoint, peer, state.writerCount, true)) return policy;
    this.#noteMatch(endpoint, peer);
    const writer = { guid, reliable: qos.reliable, transientLocal: qos.durability > 0, vendor: peer.data.vendor, userData };
    this.#join(state, writer, this.#options.now().seconds);
    this.#announceToWriter(reader, peer);
    this.#options.onWork();
    return null;
  }

  /** Announces to the participant of a writer which reader takes its samples, where that differs from what all others get. */
  #announceToWriter(reader: LocalReader, { data: { prefix } }: Peer): void {
    const { isDiscreet, insteadOf } = reader.options;
    if (isDiscreet || this.#retracted.get(prefix)?.delete(reader.guid)) this.#announce(this.#subscriptions, reader, prefix);
    if (!insteadOf || insteadOf.state.writers.some(({ guid }) => prefixOf(guid) === prefix)) return;
    const retracted = this.#retracted.get(prefix) ?? new Set();
    if (retracted.has(insteadOf.guid)) return;
    this.#retracted.set(prefix, retracted.add(insteadOf.guid));
    this.#announceEnd(insteadOf.guid, prefix);
  }

  /** Announces a reader as disposed to one participant. */
  #announceEnd(reader: Guid, to: GuidPrefix): void {
    this.#subscriptions.write({
      payload: new ParameterWriter().guid(PID.ENDPOINT_GUID, reader).payload(),
      isKey: true,
      inlineQos: endOfInstance(reader),
      timestampMs: this.#options.now().ms,
      only: guidOf(to, ENTITY.SUBSCRIPTIONS_READER),
      instance: `${reader} ${to}`,
    });
  }

  #matchWriter({ options, state }: LocalWriter, endpoint: EndpointData, peer: Peer): string | null {
    const { guid, qos, userData } = endpoint;
    const policy = incompatiblePolicy(ownQos({ ...options, reliable: true }), qos);
    if (policy !== null || state.isMatched(guid) || !this.#hasRoom(endpoint, peer, state.readerCount, false)) return policy;
    this.#noteMatch(endpoint, peer);
    const reader: MatchedReader = { guid, reliable: qos.reliable, transientLocal: qos.durability > 0, userData };
    state.match(reader, this.#options.now().seconds);
    options.onMatched?.(reader);
    this.#options.onWork();
    return null;
  }

  #warnOf(policy: string | null | undefined, { topic }: EndpointData, peer: Peer): void {
    if (policy) this.#options.log('warning', 'incompatible QoS: not matched', { topic, policy, peer: peer.data.name || peer.data.prefix });
  }

  #hasRoom(endpoint: EndpointData, peer: Peer, matched: number, isWriter: boolean): boolean {
    const hasTooMany = peer.matched.size >= LIMITS.matchedPerParticipant;
    if (!hasTooMany && matched < LIMITS.matchedPerEndpoint && this.matchedCount < LIMITS.matched) return true;
    if (!hasTooMany) this.#refuse(endpoint, isWriter);
    const { guid, topic } = endpoint;
    // The topic is no part of the kind of line, of which each is said once in a while: strangers may name a thousand.
    this.#options.log('warning', 'too many endpoints: one not matched', { topic, peer: peer.data.name || peer.data.prefix, guid });
    return false;
  }

  /** Also where it wants to be sent to, when that is another port of an address that is sent to anyway. */
  #noteMatch({ guid, unicast }: EndpointData, peer: Peer): void {
    peer.matched.add(guid);
    const own = unicast.find(({ address }) => address === peer.meta.address);
    if (own && own.port !== peer.user?.port) peer.ports.set(guid, own.port);
  }

  #unmatch(guid: Guid): void {
    this.#options.peers.get(prefixOf(guid))?.ports.delete(guid);
    for (const { state } of this.#writers.values()) state.unmatch(guid);
    for (const state of this.#readersOf.get(guid) ?? []) state.unmatch(guid);
    this.#readersOf.delete(guid);
  }
}

function ownQos({ reliable, transientLocal }: { readonly reliable: boolean; readonly transientLocal: boolean }): Qos {
  return { ...OWN_QOS, reliable, durability: transientLocal ? 1 : 0 };
}

function meets({ options }: LocalReader | LocalWriter, { topic, type }: EndpointData): boolean {
  return options.topic === topic && options.type === type;
}
