import { decode, encode, HEADER_OCTETS, type Message } from '../../rtps/cdr.ts';
import type { LocalReader, LocalWriter } from '../../rtps/endpoints.ts';
import type { Logger } from '../../rtps/log.ts';
import type { Source } from '../../rtps/network.ts';
import type { ParameterList } from '../../rtps/parameters.ts';
import { ParameterWriter } from '../../rtps/parameters.ts';
import type { Participant } from '../../rtps/participant.ts';
import { ENTITY_KIND, entityOf, type Guid, type GuidPrefix, Malformed, PID, prefixOf, VENDOR } from '../../rtps/protocol.ts';
import type { Received } from '../../rtps/reader.ts';
import type { MatchedReader } from '../../rtps/writer.ts';
import type { ServiceType } from '../interfaces.ts';
import { clientIdOf, replyTopicOf, requestTopicOf, typeHashData } from './names.ts';

/** Who sent a request, as far as the datagram shows it. */
export interface Requester extends Source {
  /** Whether it came from this machine. */
  readonly local: boolean;
  /** The ports of this machine at which its participant receives; null: it receives elsewhere. */
  readonly receivingPorts: readonly number[] | null;
  /** Has its participant show that it receives what is sent to it now, at the same ports still; resolves within half a second. */
  prove(): Promise<boolean>;
  /**
   * Notes that the request is handled; false: it was before, and has come again. A handler that has to know who asks calls it only then:
   * whoever else may have forged the number of a request that is still to come.
   */
  isNew(): boolean;
}

/** Answers one request; null: no answer is sent. Never rejects. */
export type RequestHandler = (request: Message, requester: Requester) => Promise<Message | null>;

export interface ServiceServerOptions {
  /** Fully qualified, `/safe_shutdown`. */
  readonly name: string;
  readonly type: ServiceType;
  readonly handler: RequestHandler;
  readonly participant: Participant;
  readonly log: Logger;
}

/** How a reply finds its request, in the manner of the client's middleware. */
interface Correlation {
  /** Octets in front of the reply's message: rmw_cyclonedds' header, echoed. */
  readonly header: Buffer;
  /** Inline QoS of the reply; null: none. */
  readonly inlineQos: Buffer | null;
  /** Which of the readers of the reply topic is the client's; of one that does not tell, every one of its participant. */
  readonly isClient: (reader: MatchedReader) => boolean;
}

interface WaitingReply {
  readonly correlation: Correlation;
  readonly payload: Buffer;
  readonly timer: NodeJS.Timeout;
}

/** ROS 2's rmw_qos_profile_services_default keeps ten; fifty clients may ask at once. */
const DEPTH = 100;
/** The client's reply reader may be discovered after its request; on a bad network long after, when the word of it is lost several times. */
const WAIT_FOR_READER_MS = 20_000;
const MAX_WAITING = 256;
/** Writers of requests, and the last requests of each, that are remembered: one that comes again is not run again. */
const MAX_REMEMBERED = 1024;
const REMEMBERED_OF_EACH = 64;
const CYCLONE_HEADER_OCTETS = 16;

/**
 * A ROS 2 service over DDS topics, for the clients of both middlewares. rmw_cyclonedds puts the client's id and a number in front of the
 * message and expects them back; rmw_fastrtps names the reply's reader in inline QoS (DDS-RPC 1.0, 7.8.2) and expects that back.
 * Each reply goes to its client's reader alone.
 */
export class ServiceServer {
  readonly requests: LocalReader;
  readonly replies: LocalWriter;
  readonly #options: ServiceServerOptions;
  readonly #waiting = new Set<WaitingReply>();
  /** The numbers of handled requests, by their writers; each the most recent last. */
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

  stop(): void {
    for (const { timer } of this.#waiting) clearTimeout(timer);
    this.#waiting.clear();
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
      prove: async () => (await participant.prove(prefix)) && String(receivingPorts) === String(this.#receivingPorts(prefix)),
      isNew: () => this.#isNew(writer.guid, sequenceNumber, source),
    });
    void answer.then((response) => response && this.#reply(correlation, encode(type.response, response)));
  }

  /** Where a participant receives, if that is all on this machine. */
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
  if (payload.length < HEADER_OCTETS + CYCLONE_HEADER_OCTETS) throw new Malformed('a request without header');
  const header = Buffer.from(payload.subarray(HEADER_OCTETS, HEADER_OCTETS + CYCLONE_HEADER_OCTETS));
  // Replies are little endian: the numbers of a request that is not are turned round.
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
    // Fast DDS from 2.14 on reads only the standard number from other vendors, earlier ones only their own.
    inlineQos: new ParameterWriter().bytes(PID.RELATED_SAMPLE_IDENTITY, identity).bytes(PID.RELATED_SAMPLE_IDENTITY_FAST, identity).list(),
    isClient: ({ guid }) => (isReader ? guid === named : prefixOf(guid) === prefix),
  };
}

function identityIn(inlineQos: ParameterList | null): Guid | null {
  const guid = inlineQos?.guid(PID.RELATED_SAMPLE_IDENTITY) ?? inlineQos?.guid(PID.RELATED_SAMPLE_IDENTITY_FAST) ?? null;
  return guid === null || /^0+$/.test(guid) ? null : guid;
}

function first<T>(of: Map<T, unknown> | Set<T>): T {
  return of.keys().next().value as T;
}

/** As rmw_cyclonedds writes ids: sixteen octets in hexadecimal, with dots. */
function serviceId(prefix: string): string {
  const octets = [...Buffer.from(prefix, 'hex'), 0, 0, 0, 1];
  return octets.map((octet) => octet.toString(16)).join('.');
}
