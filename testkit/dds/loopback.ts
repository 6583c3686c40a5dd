/**
 * Participants of the embedded transport on the loopback interface, with real UDP sockets, in the process of the test: readers and
 * writers of topics, and a service client, to communicate with a node or a service in another process. Other interfaces are not used.
 */
import { replyTopicOf, requestTopicOf, topicOf, typeHashData } from '../../src/ros/embedded/dds-names.ts';
import { newPrefix } from '../../src/ros/embedded/rejoin.ts';
import type { MessageType, ServiceType } from '../../src/ros/interfaces.ts';
import type { LocalReader, LocalWriter } from '../../src/rtps/endpoints/endpoints.ts';
import { UdpNetwork } from '../../src/rtps/net/network.ts';
import type { Participant } from '../../src/rtps/participant.ts';
import { participantOn } from '../../src/rtps/testing/participants.ts';
import { decode, encode, type Message } from '../../src/rtps/wire/cdr.ts';
import { ParameterWriter } from '../../src/rtps/wire/parameters.ts';
import { PID } from '../../src/rtps/wire/protocol.ts';
import type { Teardown } from '../folder.ts';
import { until } from '../wait.ts';

/** Much longer than other load may stall a participant. */
export const LONG_LEASE_SECONDS = 120;

export interface Sample<T> {
  /** Guid of the writer. */
  readonly writer: string;
  readonly message: T;
}

export interface TopicReader<T> {
  readonly samples: readonly Sample<T>[];
  readonly local: LocalReader;
}

const LOOPBACK = '127.0.0.1';

/**
 * A participant that is stopped at the end of the test. Create its endpoints before start(). `peer`: the host with which it communicates;
 * another one than this for test networks.
 */
export class LoopbackParticipant {
  readonly participant: Participant;

  constructor(t: Teardown, domain: number, peer = LOOPBACK) {
    const localhostOnly = peer === LOOPBACK;
    const participant = participantOn(new UdpNetwork(localhostOnly), () => performance.now() / 1000, {
      domain,
      prefix: newPrefix(),
      staticPeers: [peer],
      localhostOnly,
      leaseSeconds: LONG_LEASE_SECONDS,
      wallMilliseconds: Date.now,
    });
    t.teardown(() => participant.stop());
    this.participant = participant;
  }

  start(): Promise<void> {
    return this.participant.start();
  }

  /** Reads a topic by its ROS 2 name; `ddsName` overrides its DDS name. */
  read<T>(topic: string, type: MessageType, { transientLocal = true, ddsName = topicOf(topic) } = {}): TopicReader<T> {
    const samples: Sample<T>[] = [];
    const local = this.participant.createReader({
      topic: ddsName,
      type: type.ddsName,
      reliable: true,
      transientLocal,
      depth: 10,
      userData: typeHashData(type),
      onSample: ({ data, writer }) => {
        if (data.payload && !data.isKey) samples.push({ writer: writer.guid, message: decode(type, data.payload) as T });
      },
    });
    return { samples, local };
  }

  /** Creates a writer and returns the function that publishes. */
  write(topic: string, type: MessageType): (message: object) => void {
    const writer = this.participant.createWriter({
      topic: topicOf(topic),
      type: type.ddsName,
      transientLocal: true,
      depth: 10,
      userData: typeHashData(type),
    });
    return (message) => this.participant.write(writer, encode(type, { ...message }));
  }

  /** Creates a service client that works like that of rmw_fastrtps. */
  client(service: string, { request, response }: ServiceType): ServiceClient {
    const replies: Message[] = [];
    const reader = this.participant.createReader({
      topic: replyTopicOf(service),
      type: response.ddsName,
      reliable: true,
      transientLocal: false,
      depth: 10,
      userData: typeHashData(response),
      onSample: ({ data }) => {
        if (data.payload) replies.push(decode(response, data.payload));
      },
    });
    const writer = this.participant.createWriter({
      topic: requestTopicOf(service),
      type: request.ddsName,
      transientLocal: false,
      depth: 10,
      userData: typeHashData(request),
    });
    return new ServiceClient(this.participant, writer, reader, request, replies);
  }
}

/** One request writer with its reply reader. */
export class ServiceClient {
  /** All received replies, in order. */
  readonly replies: readonly Message[];
  readonly #participant: Participant;
  readonly writer: LocalWriter;
  readonly #reader: LocalReader;
  readonly #request: MessageType;
  readonly #identity: Buffer;

  constructor(participant: Participant, writer: LocalWriter, reader: LocalReader, request: MessageType, replies: readonly Message[]) {
    this.#participant = participant;
    this.writer = writer;
    this.#reader = reader;
    this.#request = request;
    this.replies = replies;
    // DDS-RPC 1.0, 7.8.2: the GUID of the reply reader, without a sequence number.
    const identity = Buffer.alloc(24);
    identity.write(reader.guid, 'hex');
    this.#identity = new ParameterWriter().bytes(PID.RELATED_SAMPLE_IDENTITY, identity).list();
  }

  /** Waits for a server, sends the request and resolves with the next reply. */
  async call(request: Message): Promise<Message> {
    await this.found();
    const before = this.replies.length;
    this.#participant.write(this.writer, encode(this.#request, request), { inlineQos: this.#identity });
    return await until('the reply', () => this.replies[before]);
  }

  /** Resolves when a server is matched. */
  async found(): Promise<void> {
    await until('a server of the service', () => this.writer.state.readerCount > 0 && this.#reader.state.writerCount > 0);
  }
}
