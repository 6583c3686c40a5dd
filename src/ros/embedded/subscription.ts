import type { Received } from '../../rtps/endpoints/reader.ts';
import { rarely } from '../../rtps/log.ts';
import { type Network, UdpNetwork } from '../../rtps/net/network.ts';
import { Participant } from '../../rtps/participant.ts';
import type { Arrived, GraphSubscription, SubscriptionOptions } from '../subscription.ts';
import { ENCLAVE_DATA, newPrefix } from './identity.ts';
import { nameOf, topicOf } from './names.ts';
import { NodeGraph } from './node-graph.ts';
import { RejoiningSession } from './rejoin.ts';
import { isLoopbackOnly } from './static-peers.ts';
import { TopicReaders } from './topic-readers.ts';

export interface EmbeddedSubscriptionOptions extends SubscriptionOptions {
  readonly wallMilliseconds: () => number;
  /** UDP by default; replaced in tests. */
  readonly network?: () => Network;
}

const LOG_PERIOD_SECONDS = 60;

/** Receives messages of the ROS 2 graph through an RTPS participant, without a ROS 2 installation. */
export class EmbeddedSubscription implements GraphSubscription {
  readonly #rejoining: RejoiningSession<Session>;

  constructor(options: EmbeddedSubscriptionOptions) {
    const log = rarely(options.log, options.monotonicSeconds, LOG_PERIOD_SECONDS);
    const localhostOnly = options.place.discoveryRange === 'LOCALHOST';
    const network = options.network?.() ?? new UdpNetwork(isLoopbackOnly(options.place));
    this.#rejoining = new RejoiningSession({
      place: options.place,
      log: options.log,
      create: (staticPeers) =>
        new Session({
          ...options,
          log,
          staticPeers,
          localhostOnly,
          network: () => network,
          onAddressLost: () => this.#rejoining.rejoin('an address of this machine was removed'),
        }),
    });
  }

  start(): Promise<void> {
    return this.#rejoining.start();
  }

  async stop(): Promise<void> {
    this.#rejoining.stop();
  }
}

interface SessionOptions extends EmbeddedSubscriptionOptions {
  readonly network: () => Network;
  readonly staticPeers: readonly string[];
  readonly localhostOnly: boolean;
  readonly onAddressLost: () => void;
}

/** One participant with its readers, announced as a ROS 2 node. */
class Session {
  readonly #participant: Participant;
  readonly #readers: TopicReaders;

  constructor(options: SessionOptions) {
    const { listener, log, nodeName, onAddressLost, topics } = options;
    this.#participant = new Participant({
      domain: options.place.domainId,
      prefix: newPrefix(),
      name: `/${nodeName}`,
      userData: ENCLAVE_DATA,
      network: options.network(),
      staticPeers: options.staticPeers,
      localhostOnly: options.localhostOnly,
      log,
      monotonicSeconds: options.monotonicSeconds,
      wallMilliseconds: options.wallMilliseconds,
      onRemoteWriter: (endpoint) => this.#readers.onRemoteWriter(endpoint),
      onAddressLost,
    });
    const graph = new NodeGraph(this.#participant, '/');
    const publishGraph = (): void => {
      graph.publish([{ name: nodeName, writers: [], readers: [...this.#readers.guids('health'), ...this.#readers.guids('alert')] }]);
    };
    this.#readers = new TopicReaders(this.#participant, {
      wants: (topic, kind) => {
        const wanted = kind === 'health' ? topics.healthStatus : topics.alerts;
        return wanted === null ? topic.startsWith(topicOf('/')) : topic === topicOf(wanted);
      },
      onHealthStatus: (status, received, topic) => listener.onHealthStatus(status, arrived(received, topic)),
      onAlert: (alert, received, topic) => listener.onAlert(alert, arrived(received, topic)),
      onRefused: (topic, reason) => log('warning', 'message refused', { topic, reason }),
      onChange: publishGraph,
      log,
    });
    publishGraph();
    if (topics.healthStatus !== null) this.#readers.read(topicOf(topics.healthStatus), 'health');
    if (topics.alerts !== null) this.#readers.read(topicOf(topics.alerts), 'alert');
  }

  start(): Promise<void> {
    return this.#participant.start();
  }

  stop(): void {
    this.#participant.stop();
  }
}

function arrived({ data, writer }: Received, topic: string): Arrived {
  return { topic: nameOf(topic), publisher: writer.guid, sequenceNumber: data.sequenceNumber };
}
