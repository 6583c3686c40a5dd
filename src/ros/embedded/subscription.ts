import type { Received } from '../../rtps/endpoints/reader.ts';
import { Participant } from '../../rtps/participant.ts';
import type { Arrived, GraphSubscription, SubscriptionOptions } from '../subscription.ts';
import { nameOf, topicOf } from './dds-names.ts';
import { NodeGraph } from './node-graph.ts';
import { type Joined, type JoinOptions, RejoiningSession, type SessionParticipant } from './rejoin.ts';
import { TopicReaders } from './topic-readers.ts';

/** Receives messages of the ROS 2 graph through an RTPS participant, without a ROS 2 installation. */
export class EmbeddedSubscription implements GraphSubscription {
  readonly #rejoining: RejoiningSession<Session>;

  constructor(options: SubscriptionOptions & JoinOptions) {
    this.#rejoining = new RejoiningSession(options, (participant) => new Session(options, participant));
  }

  start(): Promise<void> {
    return this.#rejoining.start();
  }

  async stop(): Promise<void> {
    this.#rejoining.stop();
  }
}

/** One participant with its readers, announced as a ROS 2 node. */
class Session implements Joined {
  readonly #participant: Participant;
  readonly #readers: TopicReaders;

  constructor({ listener, nodeName, topics }: SubscriptionOptions, participant: SessionParticipant) {
    this.#participant = new Participant({
      ...participant,
      name: `/${nodeName}`,
      onRemoteWriter: (endpoint) => this.#readers.onRemoteWriter(endpoint),
      onRemoteGone: (guid, hasLeft) => this.#readers.onRemoteGone(guid, hasLeft),
    });
    const graph = new NodeGraph(this.#participant, '/');
    const publishGraph = (): void => {
      graph.publish([{ name: nodeName, writers: [], readers: [...this.#readers.guids('health'), ...this.#readers.guids('alert')] }]);
    };
    this.#readers = new TopicReaders(this.#participant, {
      wants: ({ topic }, kind) => {
        const wanted = kind === 'health' ? topics.healthStatus : topics.alerts;
        return wanted === null ? topic.startsWith(topicOf('/')) : topic === topicOf(wanted);
      },
      onHealthStatus: (status, received, topic) => listener.onHealthStatus(status, arrived(received, topic)),
      onAlert: (alert, received, topic) => listener.onAlert(alert, arrived(received, topic)),
      onChange: publishGraph,
      log: participant.log,
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
