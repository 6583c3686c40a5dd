import type { EndpointData } from '../../rtps/discovery/discovery-data.ts';
import type { LocalWriter } from '../../rtps/endpoints/endpoints.ts';
import type { Change } from '../../rtps/endpoints/writer.ts';
import { Participant } from '../../rtps/participant.ts';
import { type GuidPrefix, prefixOf } from '../../rtps/wire/protocol.ts';
import { type GraphOptions, type Sender, THIS_HOST } from '../graph.ts';
import { HEALTH_STATUS } from '../interfaces.generated.ts';
import { applianceOf, applianceTopic, isApplianceTopic, nodePath } from '../names.ts';
import type { PublishedTopic } from '../publisher.ts';
import { Appliances } from './appliances.ts';
import { nameOf, topicOf, typeHashData } from './dds-names.ts';
import { type GraphNode, NodeGraph } from './node-graph.ts';
import { ParameterServices } from './parameter-services.ts';
import type { Joined, SessionParticipant } from './rejoin.ts';
import { ShutdownServices } from './shutdown-services.ts';
import { type Kind, TopicReaders } from './topic-readers.ts';
import { createTopicWriter } from './topic-writers.ts';

export interface SessionOptions extends GraphOptions {
  readonly isObserving: boolean;
}

/** The last samples of each topic, which a new session takes over from the former one. */
export type Histories = Readonly<Record<PublishedTopic, readonly Change[]>>;

/** The ROS 2 nodes of this process on one DDS participant: topics, services, and the readers for remote nodes. */
export class Session implements Joined {
  readonly #options: SessionOptions;
  readonly #participant: Participant;
  readonly #writers: Readonly<Record<PublishedTopic, LocalWriter>>;
  readonly #readers: TopicReaders;
  readonly #shutdown: ShutdownServices;
  readonly appliances: Appliances;
  #isObserving: boolean;
  /** The observers whose alerts are read while this appliance does not observe. */
  #followed: readonly GuidPrefix[] = [];
  readonly #applianceWriter: LocalWriter;
  readonly #parameters: ParameterServices;
  readonly #graph: NodeGraph;

  /** `former`: the session that this one replaces; null: none. */
  constructor(options: SessionOptions, participant: SessionParticipant, former: Session | null) {
    const { log, monotonicSeconds } = participant;
    const histories = former?.histories ?? null;
    this.appliances = new Appliances(former?.appliances ?? null, monotonicSeconds());
    this.#isObserving = options.isObserving;
    const { names } = options;
    this.#options = { ...options, log };
    this.#participant = new Participant({
      ...participant,
      name: nodePath(names.namespace, names.nodes.healthMonitor),
      onRemoteWriter: (endpoint) => {
        if (this.#shutdown.addWriter(endpoint)) this.#logOtherServer();
        this.#parameters.onRemoteEndpoint(endpoint);
        this.#addAppliance(endpoint);
        return this.#readers.onRemoteWriter(endpoint);
      },
      onRemoteReader: (endpoint) => this.#parameters.onRemoteEndpoint(endpoint),
      onRemoteGone: (guid, hasLeft) => this.#readers.onRemoteGone(guid, hasLeft),
      onParticipantGone: (key, hasLeft) => {
        const gone = this.appliances.remove(key, hasLeft, monotonicSeconds());
        if (gone) options.listener.onApplianceGone?.(gone.name, gone.hasLeft);
      },
    });
    this.#graph = new NodeGraph(this.#participant, names.namespace);
    const writer = (topic: PublishedTopic): LocalWriter => createTopicWriter(this.#participant, options, topic, histories?.[topic] ?? []);
    this.#writers = {
      healthStatus: writer('healthStatus'),
      alerts: writer('alerts'),
      openAlerts: writer('openAlerts'),
      shutdownStatus: writer('shutdownStatus'),
      diagnostics: writer('diagnostics'),
    };
    this.#applianceWriter = this.#participant.createWriter({
      topic: topicOf(applianceTopic({ name: options.localNode, mode: options.observe })),
      type: HEALTH_STATUS.ddsName,
      transientLocal: false,
      depth: 1,
      userData: typeHashData(HEALTH_STATUS),
    });
    this.#shutdown = new ShutdownServices(this.#participant, this.#options);
    const { safeShutdown, ...others } = names.nodes;
    this.#parameters = new ParameterServices({
      ...options,
      nodes: [...Object.values(others), ...(this.#shutdown.isOffered ? [safeShutdown] : [])].map((name) => nodePath(names.namespace, name)),
      participant: this.#participant,
      log,
    });
    this.#readers = new TopicReaders(this.#participant, {
      wants: (writer, kind) => this.#wants(writer, kind),
      onHealthStatus: (status, { writer }) => options.listener.onHealthStatus(status, this.#senderOf(prefixOf(writer.guid))),
      onAlert: (alert, { writer }) => options.listener.onAlert(alert, this.#senderOf(prefixOf(writer.guid))),
      onPublisherGone: (...gone) => options.listener.onPublisherGone?.(...gone),
      onChange: () => this.#publishGraph(),
      log,
    });
    if (options.isObserving) this.#readOwnTopics();
    this.#publishGraph();
  }

  /**
   * Starts or stops reading remote nodes. While others observe, only their alerts are read, which this appliance continues if it succeeds
   * them. The participant stays, so that nobody discovers it again.
   */
  observe(isObserving: boolean, observers: readonly string[]): void {
    const followed = isObserving ? [] : this.appliances.participantsOf(observers);
    if (isObserving === this.#isObserving && followed.join() === this.#followed.join()) return;
    this.#isObserving = isObserving;
    this.#followed = followed;
    this.#readers.restart(isObserving);
    if (isObserving) this.#readOwnTopics();
    this.#participant.rediscoverWriters(isObserving ? undefined : followed);
  }

  #readOwnTopics(): void {
    const { topics } = this.#options.names;
    this.#readers.read(topicOf(topics.healthStatus), 'health');
    this.#readers.read(topicOf(topics.alerts), 'alert');
  }

  get participant(): Participant {
    return this.#participant;
  }

  get histories(): Histories {
    const history = (topic: PublishedTopic): Change[] => this.#writers[topic].state.history;
    return {
      healthStatus: history('healthStatus'),
      alerts: history('alerts'),
      openAlerts: history('openAlerts'),
      shutdownStatus: history('shutdownStatus'),
      diagnostics: [],
    };
  }

  subscriberCount(topic: PublishedTopic): number {
    return this.#writers[topic].state.readerCount;
  }

  start(): Promise<void> {
    return this.#participant.start();
  }

  stop(): void {
    this.#shutdown.stop();
    this.#parameters.stop();
    this.#participant.stop();
  }

  publish(topic: PublishedTopic, payload: Buffer): void {
    this.#participant.write(this.#writers[topic], payload);
  }

  /** Another appliance with the name of this node; null: none. */
  ownNameSender(): Sender | null {
    const [namesake] = this.appliances.participantsOf([this.#options.localNode]);
    return namesake === undefined ? null : this.#senderOf(namesake);
  }

  #senderOf(participant: GuidPrefix): Sender {
    return { participant, address: this.#addressOf(participant), appliance: this.appliances.nameOf(participant) };
  }

  #addressOf(participant: GuidPrefix): string {
    const address = this.#participant.locatorsOf(participant)[0]?.address ?? '';
    return this.#participant.isOwnAddress(address) ? THIS_HOST : address;
  }

  #addAppliance({ guid, topic }: EndpointData): void {
    const appliance = applianceOf(nameOf(topic));
    const participant = prefixOf(guid);
    if (appliance) this.appliances.add(participant, appliance, this.#addressOf(participant), this.#options.monotonicSeconds());
  }

  /** Number of other participants that offer the shared name of the safe shutdown. */
  otherServers(): number {
    return this.#shutdown.otherServers();
  }

  #logOtherServer(): void {
    if (this.otherServers() === 0) return;
    const { log, names } = this.#options;
    const { ownSafeShutdown, safeShutdown } = names.services;
    log('notice', 'several machines offer the same safe shutdown service', { service: safeShutdown, call: ownSafeShutdown });
  }

  /** Whether to read a topic: health statuses and alerts of all namespaces, so that one appliance shows every robot. */
  #wants({ guid, topic }: EndpointData, kind: Kind): boolean {
    if (!this.#isObserving && !(kind === 'alert' && this.#followed.includes(prefixOf(guid)))) return false;
    const { topics } = this.#options.names;
    const [own, name] = kind === 'health' ? [topics.healthStatus, '/health_status'] : [topics.alerts, '/alerts'];
    return topic === topicOf(own) || (topic.startsWith('rt/') && topic.endsWith(name) && !isApplianceTopic(nameOf(topic)));
  }

  /** Publishes which endpoints belong to which node, for `ros2 node info`. */
  #publishGraph(): void {
    const { nodes } = this.#options.names;
    const { healthStatus, diagnostics, alerts, openAlerts, shutdownStatus } = this.#writers;
    const monitored = [healthStatus.guid, diagnostics.guid, this.#applianceWriter.guid];
    const graph: GraphNode[] = [
      { name: nodes.healthMonitor, writers: this.#shutdown.isOffered ? monitored : [...monitored, shutdownStatus.guid], readers: [] },
      { name: nodes.thresholdMonitor, writers: [], readers: this.#readers.guids('health') },
      { name: nodes.alertPublisher, writers: [alerts.guid, openAlerts.guid], readers: this.#readers.guids('alert') },
    ];
    if (this.#shutdown.isOffered) {
      const { readers, writers } = this.#shutdown.endpoints;
      graph.push({ name: nodes.safeShutdown, writers: [shutdownStatus.guid, ...writers], readers });
    }
    this.#graph.publish(graph);
  }
}
