import type { Appliance } from '../../core/observer.ts';
import { LIMITS } from '../../rtps/limits.ts';
import { type GraphOptions, healthQos, TOPIC_DEPTH } from '../graph.ts';
import { ALERT, ALERT_ARRAY, DIAGNOSTIC_ARRAY, HEALTH_STATUS, SAFE_SHUTDOWN, SHUTDOWN_STATUS } from '../interfaces.generated.ts';
import { applianceOf, applianceTopic, nodePath } from '../names.ts';
import type { PublishedTopic } from '../publisher.ts';
import type { Arrivals } from './arrivals.ts';
import { Follower } from './follower.ts';
import {
  bareNode,
  later,
  type QosPeriods,
  qosOf,
  type RclContext,
  type RclNode,
  type Rclnodejs,
  type RclPublisher,
  rawType,
} from './library.ts';
import { ParameterServices } from './parameter-services.ts';

export interface SessionOptions extends GraphOptions {
  /** Whether another participant has the node of the safe shutdown, with its services and /shutdown_status. */
  readonly hasShutdownServer: boolean;
  /** As this process is announced. */
  readonly appliance: Appliance;
  readonly arrivals: Arrivals;
  /** Longest wait of an executor. Stopping takes this long for each spinning node. */
  readonly spinMilliseconds: number;
}

/** How long `stop` waits for subscribers to acknowledge the last alerts and shutdown steps. */
const ACKNOWLEDGEMENT_TIMEOUT_NS = 250_000_000n;

/** The nodes in one context (four, or three without the service) with publishers, subscriptions and the service. */
export class Session {
  readonly #context: RclContext;
  readonly #healthMonitor: RclNode;
  /** Null: another participant publishes the topic. */
  readonly #publishers: Readonly<Record<PublishedTopic, RclPublisher | null>>;
  readonly #follower: Follower | null;
  readonly #parameterServices: ParameterServices;
  readonly #options: SessionOptions;
  readonly #hasService: boolean;

  /** `context` must be initialized. If the constructor throws, the caller must shut the context down, which destroys the nodes. */
  constructor(library: Rclnodejs, context: RclContext, options: SessionOptions) {
    this.#context = context;
    this.#options = options;
    const { names, listener, spinMilliseconds } = options;
    const byPath = new Map<string, RclNode>();
    const node = (name: string): RclNode => {
      const made = bareNode(library, context, { name, namespace: names.namespace, log: options.log });
      byPath.set(nodePath(names.namespace, name), made);
      return made;
    };
    const healthMonitor = node(names.nodes.healthMonitor);
    const thresholdMonitor = node(names.nodes.thresholdMonitor);
    const alertPublisher = node(names.nodes.alertPublisher);
    const handler = options.hasShutdownServer ? null : listener.onSafeShutdown;
    const safeShutdown = handler ? node(names.nodes.safeShutdown) : null;
    this.#healthMonitor = healthMonitor;
    const transientLocal = (topic: PublishedTopic) => ({ qos: qosOf(library, 'transient local', TOPIC_DEPTH[topic]) });
    const { topics } = names;
    const { deadlineSeconds, livelinessLeaseSeconds } = healthQos(options.publishSeconds);
    const periods: QosPeriods = {
      deadlineMilliseconds: Math.round(1000 * deadlineSeconds),
      leaseMilliseconds: Math.round(1000 * livelinessLeaseSeconds),
    };
    this.#publishers = {
      healthStatus: healthMonitor.createPublisher(rawType(HEALTH_STATUS.rosName), topics.healthStatus, {
        qos: Object.assign(transientLocal('healthStatus').qos, periods),
      }),
      alerts: alertPublisher.createPublisher(rawType(ALERT.rosName), topics.alerts, transientLocal('alerts')),
      openAlerts: alertPublisher.createPublisher(rawType(ALERT_ARRAY.rosName), topics.openAlerts, transientLocal('openAlerts')),
      shutdownStatus: options.hasShutdownServer
        ? null
        : (safeShutdown ?? healthMonitor).createPublisher(
            rawType(SHUTDOWN_STATUS.rosName),
            topics.shutdownStatus,
            transientLocal('shutdownStatus'),
          ),
      // As diagnostic_updater publishes it.
      diagnostics: healthMonitor.createPublisher(rawType(DIAGNOSTIC_ARRAY.rosName), topics.diagnostics, {
        qos: qosOf(library, 'volatile', TOPIC_DEPTH.diagnostics),
      }),
    };
    const { arrivals, log } = options;
    const announcement = applianceTopic(options.appliance);
    try {
      healthMonitor.createPublisher(rawType(HEALTH_STATUS.rosName), announcement, { qos: qosOf(library, 'volatile', 1) });
    } catch (error) {
      log('info', 'observer role not announced to other appliances', { topic: announcement, error: (error as Error).message });
    }
    const own = new Set(Object.values(names.nodes).map((name) => nodePath(names.namespace, name)));
    this.#follower =
      options.observe !== 'never'
        ? new Follower({
            library,
            node: thresholdMonitor,
            permanent: names.topics,
            wants: ({ topic, kind }) => topic.endsWith(kind === 'health' ? '/health_status' : '/alerts'),
            isOwn: ({ node_name, node_namespace }) => own.has(nodePath(node_namespace, node_name)),
            arrivals,
            log,
          })
        : null;
    this.#hasService = listener.onSafeShutdown !== null;
    for (const name of [names.services.safeShutdown, names.services.ownSafeShutdown]) {
      safeShutdown?.createService(SAFE_SHUTDOWN.rosName, name, { qos: library.QoS.profileServicesDefault }, (request) => {
        const call = {
          reason: String(request['reason']),
          requested_by: String(request['requested_by']),
          timeout: Number(request['timeout']),
        };
        // rcl does not provide the origin of a request; callers are restricted by SROS2.
        return later(async () => ({ ...(await handler?.(call, { dds: null, mayBeForAnother: () => false })) }));
      });
    }
    const spinning = new Set<RclNode>();
    const spin = (node: RclNode): void => {
      if (!spinning.has(node)) node.spin(spinMilliseconds);
      spinning.add(node);
    };
    this.#parameterServices = new ParameterServices({ ...options, library, nodes: byPath, spin });
    // Only nodes with a subscription or a service need an executor.
    if (this.#follower) spin(thresholdMonitor);
    if (safeShutdown) spin(safeShutdown);
  }

  publish(topic: PublishedTopic, serialized: Buffer): void {
    this.#publishers[topic]?.publish(serialized);
  }

  /** Matched subscriptions of other processes. */
  subscriberCount(topic: PublishedTopic): number {
    const own = this.#follower?.subscriptionCount(this.#options.names.topics[topic]) ?? 0;
    return Math.max(0, (this.#publishers[topic]?.subscriptionCount ?? 0) - own);
  }

  /** Fully qualified names of all nodes on the graph. */
  nodePaths(): string[] {
    return this.#healthMonitor.getNodeNamesAndNamespaces().map(({ name, namespace }) => nodePath(namespace, name));
  }

  /** The appliances on the graph, usually including this one. */
  appliances(): Appliance[] {
    const topics = this.#healthMonitor.getTopicNamesAndTypes();
    return topics.flatMap(({ name }) => applianceOf(name) ?? []).slice(0, LIMITS.participants);
  }

  /** The nodes of other processes; `duplicates`: fully qualified names of those named like a node of this process. */
  otherNodes(): { readonly count: number; readonly duplicates: readonly string[] } {
    const { namespace, nodes } = this.#options.names;
    const own = new Set(Object.values(nodes).map((name) => nodePath(namespace, name)));
    const seen = new Set<string>();
    const others = this.nodePaths().filter((name) => {
      const first = !seen.has(name);
      seen.add(name);
      return !(own.has(name) && first);
    });
    return { count: others.length, duplicates: others.filter((name) => own.has(name)) };
  }

  /** Number of other processes that offer the shared name of the safe shutdown. */
  otherServers(): number {
    if (!this.#hasService) return 0;
    return this.#healthMonitor.countServices(this.#options.names.services.safeShutdown) - 1;
  }

  /** Offers the parameter services while they have a client; not with Humble. */
  scanParameterClients(): void {
    this.#parameterServices.scan();
  }

  /** Scans the graph for new and removed topics. */
  scan(): void {
    this.#follower?.scan();
  }

  /** Destroys the nodes; blocks until the waits of the executors end. Publishing throws afterwards. */
  stop(): void {
    for (const topic of ['alerts', 'shutdownStatus'] as const) {
      try {
        this.#publishers[topic]?.waitForAllAcked(ACKNOWLEDGEMENT_TIMEOUT_NS);
      } catch {
        // Not every middleware supports it.
      }
    }
    this.#context.shutdown();
  }
}
