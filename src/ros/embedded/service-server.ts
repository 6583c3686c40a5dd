import type { DdsCaller } from '../../core/shutdown/shutdown.ts';
import type { LocalReader, LocalWriter } from '../../rtps/endpoints/endpoints.ts';
import type { Received } from '../../rtps/endpoints/reader.ts';
import type { MatchedReader } from '../../rtps/endpoints/writer.ts';
import type { Logger } from '../../rtps/log.ts';
import type { Source } from '../../rtps/net/network.ts';
import type { Participant } from '../../rtps/participant.ts';
import { decode, encode, HEADER_OCTETS, type Message } from '../../rtps/wire/cdr.ts';
import { type ParameterList, ParameterWriter } from '../../rtps/wire/parameters.ts';
import { ENTITY_KIND, entityOf, type Guid, type GuidPrefix, Malformed, PID, prefixOf, VENDOR } from '../../rtps/wire/protocol.ts';
import type { ServiceType } from '../interfaces.ts';
import { clientIdOf, replyTopicOf, requestTopicOf, typeHashData } from './dds-names.ts';

/** Responds to one request; null: no response is sent. Never rejects. */
export type RequestHandler = (request: Message, caller: DdsCaller) => Promise<Message | null>;

export interface ServiceServerOptions {
  /** Fully qualified, `/safe_shutdown`. */
  readonly name: string;
  readonly type: ServiceType;
  readonly handler: RequestHandler;
  readonly participant: Participant;
  readonly log: Logger;
}

/** Relates a reply to its request, as the client's middleware expects it. */
interface Correlation {
  /** Octets before the reply's message: the echoed header of rmw_cyclonedds. */
  readonly header: Buffer;
  /** Inline QoS of the reply; null: none. */
  readonly inlineQos: Buffer | null;
  /** Whether a reader of the reply topic is the client's. Without a client id all readers of its participant match. */
  readonly isClient: (reader: MatchedReader) => boolean;
}

interface WaitingReply {
  readonly correlation: Correlation;
  readonly payload: Buffer;
  readonly timer: NodeJS.Timeout;
}

/** More than the ten of rmw_qos_profile_services_default, since fifty clients may call at once. */
const DEPTH = 100;
/** The client's reply reader may be discovered after its request; on a lossy network its announcement may be repeated several times. */
const WAIT_FOR_READER_MS = 20_000;
const MAX_WAITING = 256;
/** A request is refused if its client's reply reader is discovered later than this after it. */
const DISCOVERY_MS = 100;
const DISCOVERY_TRIES = 20;
/** Reply readers that are challenged for a request; a client has one. */
const MAX_CHALLENGED = 8;
/** Writers of requests, and requests of each, that are remembered to ignore duplicates. */
const MAX_REMEMBERED = 1024;
const REMEMBERED_OF_EACH = 64;
const CYCLONE_HEADER_OCTETS = 16;

/**
 * A ROS 2 service over DDS topics, for clients of both middlewares. rmw_cyclonedds puts the client's id and a number before the message
 * and expects them in the reply; rmw_fastrtps names the reply's reader in inline QoS (DDS-RPC 1.0, 7.8.2) and expects that in the
 * reply. Each reply is sent to its client's reader alone.
 */
export class ServiceServer {
  readonly requests: LocalReader;
  readonly replies: LocalWriter;
  readonly #options: ServiceServerOptions;
  readonly #waiting = new Set<WaitingReply>();
  /** Sequence numbers of handled requests by writer, each list and the map in order of use. */
  readonly #handled = new Map<Guid, Set<number>>();

  constructor(options: ServiceServerOptions) {
    this.#options = options;
    const { name, participant, type } = options;
    const id = `serviceid=${serviceId(participant.prefix)};`;
    this.replies = participant.createWriter({
      topic: replyTopicOf(name),
      type: type.response.ddsName,
      transientLocal: false,
      depth: DEPTH,
      userData: id + typeHashData(type.response),
      onMatched: (reader) => this.#onReader(reader),
    });
    this.requests = participant.createReader({
      topic: requestTopicOf(name),
      type: type.request.ddsName,
      reliable: true,
      isUnordered: true,
      transientLocal: false,
      depth: DEPTH,
      userData: id + typeHashData(type.request),
      onSample: (received) => this.#onRequest(received),
    });
  }

  get hasClient(): boolean {
    return this.requests.state.writerCount > 0 || this.replies.state.readerCount > 0;
  }

  stop(): void {
    for (const { timer } of this.#waiting) clearTimeout(timer);
    this.#waiting.clear();
  }

  /** Ends the service while its participant continues. */
  remove(): void {
    const { participant } = this.#options;
    this.stop();
    participant.removeReader(this.requests);
    participant.removeWriter(this.replies);
  }

  #onRequest(received: Received): void {
    const { data, source, writer } = received;
    const { payload, sequenceNumber } = data;
    if (!payload || data.isKey) return;
    const correlation = writer.vendor === VENDOR.CYCLONE_DDS ? cycloneCorrelation(received) : relatedIdentity(received);
    const { type, handler, participant } = this.#options;
    const request = decode(type.request, payload, correlation.header.length);
    const prefix = prefixOf(writer.guid);
    const receivingPorts = this.#receivingPorts(prefix);
    const answer = handler(request, {
      ...source,
      local: participant.isOwnAddress(source.address),
      receivingPorts,
      prove: async () =>
        (await participant.prove(prefix, source.address)) &&
        (await this.#proveClient(correlation)) &&
        String(receivingPorts) === String(this.#receivingPorts(prefix)),
      isNew: () => this.#isNew(writer.guid, sequenceNumber, source),
    });
    void answer.then((response) => response && this.#reply(correlation, encode(type.response, response)));
  }

  /** Whether the participant has the client in whose name the request was sent: the reader of its replies responds. */
  async #proveClient({ isClient }: Correlation): Promise<boolean> {
    const { participant } = this.#options;
    const readersOf = (): MatchedReader[] => this.replies.state.readers.filter(isClient).slice(0, MAX_CHALLENGED);
    let readers = readersOf();
    for (let tries = 0; readers.length === 0 && tries < DISCOVERY_TRIES; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, DISCOVERY_MS));
      readers = readersOf();
    }
    return (await Promise.all(readers.map(({ guid }) => participant.proveReader(this.replies, guid)))).includes(true);
  }

  /** The ports at which a participant receives, if all its locators are on this machine. */
  #receivingPorts(prefix: GuidPrefix): readonly number[] | null {
    const { participant } = this.#options;
    const locators = participant.locatorsOf(prefix);
    const isHere = locators.length > 0 && locators.every(({ address }) => participant.isOwnAddress(address));
    return isHere ? locators.map(({ port }) => port) : null;
  }

  #isNew(writer: Guid, sequenceNumber: number, { address, port }: Source): boolean {
    const numbers = this.#handled.get(writer) ?? new Set<number>();
    this.#handled.delete(writer);
    this.#handled.set(writer, numbers);
    if (this.#handled.size > MAX_REMEMBERED) this.#handled.delete(first(this.#handled));
    if (numbers.has(sequenceNumber)) {
      const { log, name } = this.#options;
      log('debug', 'duplicate service request ignored', { service: name, address, port, number: sequenceNumber });
      return false;
    }
    numbers.add(sequenceNumber);
    if (numbers.size > REMEMBERED_OF_EACH) numbers.delete(first(numbers));
    return true;
  }

  #reply(correlation: Correlation, encoded: Buffer): void {
    const { header } = correlation;
    const payload =
      header.length === 0 ? encoded : Buffer.concat([encoded.subarray(0, HEADER_OCTETS), header, encoded.subarray(HEADER_OCTETS)]);
    const readers = this.replies.state.readers.filter(correlation.isClient);
    for (const reader of readers) this.#send(correlation, payload, reader);
    if (readers.length > 0) return;
    if (this.#waiting.size >= MAX_WAITING) return;
    const waiting: WaitingReply = {
      correlation,
      payload,
      timer: setTimeout(() => {
        this.#waiting.delete(waiting);
        this.#options.log('debug', 'service response not delivered', { service: this.#options.name });
      }, WAIT_FOR_READER_MS),
    };
    waiting.timer.unref();
    this.#waiting.add(waiting);
  }

  #onReader(reader: MatchedReader): void {
    for (const waiting of this.#waiting) {
      if (!waiting.correlation.isClient(reader)) continue;
      this.#waiting.delete(waiting);
      clearTimeout(waiting.timer);
      this.#send(waiting.correlation, waiting.payload, reader);
    }
  }

  #send({ inlineQos }: Correlation, payload: Buffer, { guid }: MatchedReader): void {
    this.#options.participant.write(this.replies, payload, { only: guid, ...(inlineQos ? { inlineQos } : {}) });
  }
}

/** rmw_cyclonedds_cpp, serdata.cpp: client guid and sequence number, eight octets each, in front of the message. */
function cycloneCorrelation({ data, writer }: Received): Correlation {
  const payload = data.payload as Buffer;
  if (payload.length < HEADER_OCTETS + CYCLONE_HEADER_OCTETS) throw new Malformed('request without header');
  const header = Buffer.from(payload.subarray(HEADER_OCTETS, HEADER_OCTETS + CYCLONE_HEADER_OCTETS));
  // Replies are little endian, so the header of a big-endian request is byte-swapped.
  if ((payload.readUInt16BE(0) & 1) === 0) header.swap64();
  const client = clientIdOf(writer.userData);
  const prefix = prefixOf(writer.guid);
  return {
    header,
    inlineQos: null,
    isClient: ({ guid, userData }) => prefixOf(guid) === prefix && (client === null || clientIdOf(userData) === client),
  };
}

/** rmw_fastrtps_shared_cpp, rmw_request.cpp and rmw_response.cpp: the reply names the client's reply reader and the request's number. */
function relatedIdentity({ data, writer }: Received): Correlation {
  const named = identityIn(data.inlineQos);
  const isReader = named !== null && (entityOf(named) & 0x3f & ENTITY_KIND.READER_NO_KEY) !== 0;
  const identity = Buffer.alloc(24);
  identity.write(isReader ? named : writer.guid, 'hex');
  identity.writeUInt32LE(Math.floor(data.sequenceNumber / 2 ** 32), 16);
  identity.writeUInt32LE(data.sequenceNumber % 2 ** 32, 20);
  const prefix = prefixOf(writer.guid);
  return {
    header: Buffer.alloc(0),
    // From other vendors, Fast DDS reads only the standard parameter id since 2.14, and only its own id before that.
    inlineQos: new ParameterWriter().bytes(PID.RELATED_SAMPLE_IDENTITY, identity).bytes(PID.RELATED_SAMPLE_IDENTITY_FAST, identity).list(),
    // The prefix here may differ from that on the wire.
    isClient: ({ guid }) => prefixOf(guid) === prefix && (!isReader || entityOf(guid) === entityOf(named)),
  };
}

function identityIn(inlineQos: ParameterList | null): Guid | null {
  const guid = inlineQos?.guid(PID.RELATED_SAMPLE_IDENTITY) ?? inlineQos?.guid(PID.RELATED_SAMPLE_IDENTITY_FAST) ?? null;
  return guid === null || /^0+$/.test(guid) ? null : guid;
}

function first<T>(of: Map<T, unknown> | Set<T>): T {
  return of.keys().next().value as T;
}

/** An id in the format of rmw_cyclonedds: sixteen octets in hexadecimal, separated by dots. */
function serviceId(prefix: string): string {
  const octets = [...Buffer.from(prefix, 'hex'), 0, 0, 0, 1];
  return octets.map((octet) => octet.toString(16)).join('.');
}
