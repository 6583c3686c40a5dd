import { decode } from '../../rtps/cdr.ts';
import type { EndpointData } from '../../rtps/discovery-data.ts';
import type { LocalReader, LocalWriter } from '../../rtps/endpoints.ts';
import type { Network } from '../../rtps/network.ts';
import { Participant } from '../../rtps/participant.ts';
import { Malformed } from '../../rtps/protocol.ts';
import type { Received } from '../../rtps/reader.ts';
import type { Change } from '../../rtps/writer.ts';
import type { GraphOptions } from '../graph.ts';
import { ALERT, DIAGNOSTIC_ARRAY, HEALTH_STATUS, SAFE_SHUTDOWN, SHUTDOWN_STATUS } from '../interfaces.generated.ts';
import type { MessageType } from '../interfaces.ts';
import { alertFrom, type Checked, healthStatusFrom } from '../messages.ts';
import { topicOf, typeHashData } from './names.ts';
import { type GraphNode, NodeGraph } from './node-graph.ts';
import { ServiceServer } from './service-server.ts';

/** Keep last of every topic (contract). */
const DEPTH = 10;
/** Readers of topics that are taken in: two of each of 512 nodes in namespaces of their own, and some more. */
const MAX_GATHERING = 1088;
/**
 * So many of them everybody is told of, as of any subscription; of further ones only whoever publishes there. Each would be announced to
 * every participant, and several of each robot make that a square of their number.
 */
const MAX_KNOWN_TO_ALL = 32;

/** What a writer offers and a reader asks for. */
type Offer = 'whole' | 'volatile' | 'best effort';

/** As much as the writer promises: one that offers less than the contract asks for is read all the same. */
function offerOf({ reliable, transientLocal }: { readonly reliable: boolean; readonly transientLocal: boolean }): Offer {
  if (!reliable) return 'best effort';
  return transientLocal ? 'whole' : 'volatile';
}

export type TopicName = 'healthStatus' | 'alerts' | 'shutdownStatus' | 'diagnostics';

const TOPICS: Readonly<Record<TopicName, { readonly type: MessageType; readonly transientLocal: boolean }>> = {
  healthStatus: { type: HEALTH_STATUS, transientLocal: true },
  alerts: { type: ALERT, transientLocal: true },
  shutdownStatus: { type: SHUTDOWN_STATUS, transientLocal: true },
  // As diagnostic_updater publishes it.
  diagnostics: { type: DIAGNOSTIC_ARRAY, transientLocal: false },
};

export interface SessionOptions extends GraphOptions {
  readonly network: Network;
  readonly staticPeers: readonly string[];
  readonly localhostOnly: boolean;
  readonly wallMilliseconds: () => number;
  readonly onAddressLost: () => void;
  /** A message that was well-formed, but not what it should be. */
  readonly onRefused: (topic: string, reason: string) => void;
}

/** What a session that takes over begins with: the last samples of each topic. */
export type Histories = Readonly<Record<TopicName, readonly Change[]>>;

/** The ROS 2 nodes of this process on one DDS participant: its topics, its service, and what it reads of others. */
export class Session {
  readonly #options: SessionOptions;
  readonly #participant: Participant;
  readonly #writers: Readonly<Record<TopicName, LocalWriter>>;
  readonly #readers = new Map<string, { readonly type: MessageType; readonly reader: LocalReader }>();
  readonly #service: ServiceServer | null;
  readonly #graph: NodeGraph;

  constructor(options: SessionOptions, histories: Histories | null) {
    this.#options = options;
    const { names, place } = options;
    this.#participant = new Participant({
      domain: place.domainId,
      prefix: newPrefix(),
      name: `${names.namespace === '/' ? '' : names.namespace}/${names.nodes.healthMonitor}`,
      // SROS2's name of the place that security rules are looked up at; peers show it.
      userData: 'enclave=/;',
      network: options.network,
      staticPeers: options.staticPeers,
      localhostOnly: options.localhostOnly,
      log: options.log,
      monotonicSeconds: options.monotonicSeconds,
      wallMilliseconds: options.wallMilliseconds,
      onRemoteWriter: (endpoint) => this.#onRemoteWriter(endpoint),
      onAddressLost: options.onAddressLost,
    });
    this.#graph = new NodeGraph(this.#participant, names.namespace);
    const writer = (topic: TopicName): LocalWriter => this.#createWriter(topic, histories?.[topic] ?? []);
    this.#writers = {
      healthStatus: writer('healthStatus'),
      alerts: writer('alerts'),
      shutdownStatus: writer('shutdownStatus'),
      diagnostics: writer('diagnostics'),
    };
    this.#service = this.#createService();
    if (options.gather) {
      this.#read(topicOf(names.topics.healthStatus), HEALTH_STATUS, 'whole');
      this.#read(topicOf(names.topics.alerts), ALERT, 'whole');
    }
    this.#publishGraph();
  }

  get participant(): Participant {
    return this.#participant;
  }

  get histories(): Histories {
    const history = (topic: TopicName): Change[] => this.#writers[topic].state.history;
    return { healthStatus: history('healthStatus'), alerts: history('alerts'), shutdownStatus: history('shutdownStatus'), diagnostics: [] };
  }

  subscriberCount(topic: TopicName): number {
    return this.#writers[topic].state.readerCount;
  }

  start(): Promise<void> {
    return this.#participant.start();
  }

  stop(): void {
    this.#service?.stop();
    this.#participant.stop();
  }

  publish(topic: TopicName, payload: Buffer): void {
    this.#participant.write(this.#writers[topic], payload);
  }

  #createWriter(topic: TopicName, history: readonly Change[]): LocalWriter {
    const { type, transientLocal } = TOPICS[topic];
    const writer = this.#participant.createWriter({
      topic: topicOf(this.#options.names.topics[topic]),
      type: type.ddsName,
      transientLocal,
      depth: DEPTH,
      userData: typeHashData(type),
    });
    for (const { payload, timestampMs } of history) this.#participant.write(writer, payload, { timestampMs });
    return writer;
  }

  #createService(): ServiceServer | null {
    const { listener, log, names } = this.#options;
    const answer = listener.onSafeShutdown;
    if (!answer) return null;
    return new ServiceServer({
      name: names.services.safeShutdown,
      type: SAFE_SHUTDOWN,
      participant: this.#participant,
      log,
      handler: async (request, caller) => {
        const { reason, requested_by, timeout } = request as { reason: string; requested_by: string; timeout: number };
        return { ...(await answer({ reason, requested_by, timeout }, caller)) };
      },
    });
  }

  /** One appliance shows every robot: whoever publishes health statuses or alerts, in whatever namespace, is read. */
  #onRemoteWriter({ topic, type, qos }: EndpointData): void {
    if (!this.#options.gather) return;
    const { topics } = this.#options.names;
    for (const [layout, name, own] of [
      [HEALTH_STATUS, '/health_status', topics.healthStatus],
      [ALERT, '/alerts', topics.alerts],
    ] as const) {
      if (type !== layout.ddsName || !(topic === topicOf(own) || (topic.startsWith('rt/') && topic.endsWith(name)))) continue;
      this.#read(topic, layout, offerOf({ reliable: qos.reliable, transientLocal: qos.durability > 0 }));
    }
  }

  #read(topic: string, type: MessageType, offer: Offer): void {
    const key = `${topic} ${offer}`;
    if (this.#readers.has(key)) return;
    const { listener, log } = this.#options;
    if (this.#readers.size >= MAX_GATHERING) {
      log('warning', 'too many topics of others: one is not read', { topic, most: MAX_GATHERING });
      return;
    }
    const take =
      type === HEALTH_STATUS
        ? this.#taking(topic, type, healthStatusFrom, (status) => listener.onHealthStatus(status))
        : this.#taking(topic, type, alertFrom, (alert) => listener.onAlert(alert));
    const isDiscreet = this.#readers.size >= MAX_KNOWN_TO_ALL;
    const reader = this.#participant.createReader({
      topic,
      isDiscreet,
      type: type.ddsName,
      reliable: offer !== 'best effort',
      transientLocal: offer === 'whole',
      depth: DEPTH,
      userData: typeHashData(type),
      // A writer that offers more is matched here too, and read by the reader that asks for that.
      onSample: (received) => {
        if (offerOf(received.writer) === offer) take(received);
      },
    });
    this.#readers.set(key, { type, reader });
    if (!isDiscreet) this.#publishGraph();
  }

  #taking<T>(
    topic: string,
    type: MessageType,
    check: (message: unknown) => Checked<T>,
    take: (value: T) => void,
  ): (received: Received) => void {
    return ({ data, address }) => {
      if (!data.payload || data.isKey) return;
      const checked = check(decode(type, data.payload));
      if (checked.ok) take(checked.value);
      else {
        this.#options.onRefused(topic, `${checked.reason} (from ${address})`);
        throw new Malformed(checked.reason);
      }
    };
  }

  /** Which endpoint is of which node, for `ros2 node info`. */
  #publishGraph(): void {
    // Readers are made before the rest in the constructor's last steps; until then there is nothing to tell.
    if (!this.#writers) return;
    const { nodes } = this.#options.names;
    const { healthStatus, diagnostics, alerts, shutdownStatus } = this.#writers;
    const ofType = (type: MessageType): string[] =>
      [...this.#readers.values()]
        .filter((entry) => entry.type === type && !entry.reader.options.isDiscreet)
        .map(({ reader }) => reader.guid);
    const graph: GraphNode[] = [
      { name: nodes.healthMonitor, writers: [healthStatus.guid, diagnostics.guid], readers: [] },
      { name: nodes.thresholdMonitor, writers: [], readers: ofType(HEALTH_STATUS) },
      { name: nodes.alertPublisher, writers: [alerts.guid], readers: ofType(ALERT) },
    ];
    if (this.#service) {
      const { replies, requests } = this.#service;
      graph.push({ name: nodes.safeShutdown, writers: [shutdownStatus.guid, replies.guid], readers: [requests.guid] });
    }
    this.#graph.publish(graph);
  }
}

/** Unlike any other, which is all that is asked of it (8.2.4.2): no secret. Begins with the vendor id (9.3.1.5). */
function newPrefix(): string {
  const octets = Buffer.alloc(12);
  octets.writeUInt32BE((process.pid ^ (Date.now() >>> 0)) >>> 0, 2);
  for (let i = 6; i < 12; i += 1) octets[i] = Math.floor(Math.random() * 256);
  return octets.toString('hex');
}
