import type { Log } from '../../core/ports.ts';
import { ALERT, HEALTH_STATUS } from '../interfaces.generated.ts';
import type { MessageType } from '../interfaces.ts';
import { isProbeTopic } from '../names.ts';
import type { SubscribedTopics } from '../subscription.ts';
import type { Arrivals } from './arrivals.ts';
import {
  type GraphTopics,
  type GuardCondition,
  type QosClass,
  qosClassOf,
  qosOf,
  type RclNode,
  type Rclnodejs,
  type RclPublisherInfo,
  type RclSubscription,
  rawType,
} from './library.ts';

/** Longest wait of an executor; a message or a request ends it at once. */
export const SPIN_MS = 500;
/** Period of scans of the graph for new and removed topics. */
export const SCAN_MS = 5000;
/** Delay of the first scan: by then discovery has found the existing nodes. */
export const FIRST_SCAN_MS = 1000;

export interface FollowedTopic {
  readonly topic: string;
  readonly kind: 'health' | 'alert';
}

const TYPES: Readonly<Record<FollowedTopic['kind'], MessageType>> = { health: HEALTH_STATUS, alert: ALERT };
/** Limit of subscribed topics. */
export const MAX_FOLLOWED_TOPICS = 64;

export interface FollowerOptions {
  readonly library: Rclnodejs;
  /** The spinning node that has the subscriptions. */
  readonly node: RclNode;
  /** The topics that are subscribed from the start and stay so. */
  readonly permanent: SubscribedTopics;
  /** Whether to subscribe to another topic of the graph while it has a publisher. */
  readonly wants: (topic: FollowedTopic) => boolean;
  /** Whether a publisher belongs to this process and must be ignored; by default none does. */
  readonly isOwn?: (publisher: RclPublisherInfo) => boolean;
  readonly arrivals: Arrivals;
  readonly log: Log;
}

interface Following {
  /** One for each QoS class that its publishers offer. */
  readonly subscriptions: Map<QosClass, RclSubscription>;
  /** It has or had more than one subscription, so that the same message may be received several times. */
  isTwice: boolean;
  /** Consecutive scans that found no publisher. */
  scansWithoutPublisher: number;
}

/** Larger than a publisher's history: a topic may have many publishers, whose last ten messages each arrive at the same time. */
const DEPTH = 1000;
/** A topic without a publisher is unsubscribed after this many scans. */
const MAX_SCANS_WITHOUT_PUBLISHER = 12;

/** Subscribes to the wanted topics of health statuses and alerts, and follows changes of the graph. */
export class Follower {
  readonly #options: FollowerOptions;
  readonly #guard: GuardCondition;
  readonly #following = new Map<string, Following>();
  #changes: readonly (() => void)[] = [];

  /** Subscribes to the permanent topics; the node must not spin yet. */
  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#guard = options.node.createGuardCondition(() => this.#change());
    // The default QoS of publishers: until the next scan, a new publisher would report incompatible QoS for a more demanding reader.
    for (const wanted of topicsToFollow([], options)) this.#follow(wanted, ['volatile']);
  }

  /** Number of this process's subscriptions to a topic. */
  subscriptionCount(topic: string): number {
    return this.#following.get(topic)?.subscriptions.size ?? 0;
  }

  /** Scans the graph for new and removed topics, and for topics whose publishers offer another QoS than the subscriptions request. */
  scan(): void {
    const { isOwn, node } = this.#options;
    const wanted = topicsToFollow(node.getTopicNamesAndTypes(), this.#options);
    const changes: (() => void)[] = [];
    for (const one of wanted) {
      const publishers = node.getPublishersInfoByTopic(one.topic);
      const following = this.#following.get(one.topic);
      if (following) following.scansWithoutPublisher = publishers.length === 0 ? following.scansWithoutPublisher + 1 : 0;
      const others = publishers.filter((publisher) => !isOwn?.(publisher));
      const classes = [...new Set(others.map(({ qos_profile }) => qosClassOf(qos_profile)))];
      const { subscriptions } = following ?? {};
      // Without publishers the subscriptions are not changed.
      if (classes.length === 0 ? !following : classes.length !== subscriptions?.size || !classes.every((one) => subscriptions.has(one)))
        changes.push(() => this.#follow(one, classes));
    }
    const kept = new Set(topicsToFollow([], this.#options).map(({ topic }) => topic));
    for (const [topic, { scansWithoutPublisher }] of this.#following) {
      if (scansWithoutPublisher >= MAX_SCANS_WITHOUT_PUBLISHER && !kept.has(topic)) changes.push(() => this.#leave(topic));
    }
    this.#changes = changes;
    // The subscriptions of a spinning node are changed in a callback of its executor: at any other time the change would block the
    // event loop until the executor's wait ends.
    if (changes.length > 0) this.#guard.trigger();
  }

  #change(): void {
    const changes = this.#changes;
    this.#changes = [];
    for (const change of changes) {
      try {
        change();
      } catch (error) {
        this.#options.log('warning', 'cannot subscribe to a ROS 2 topic', { error: (error as Error).message });
      }
    }
  }

  /** Replaces the subscriptions of a topic with one per QoS class; without any class, with one that has the default of publishers. */
  #follow(wanted: FollowedTopic, classes: readonly QosClass[]): void {
    const following = this.#following.get(wanted.topic) ?? { subscriptions: new Map(), isTwice: false, scansWithoutPublisher: 0 };
    const { subscriptions } = following;
    const required: readonly QosClass[] = classes.length === 0 ? ['volatile'] : classes;
    for (const qosClass of required) if (!subscriptions.has(qosClass)) subscriptions.set(qosClass, this.#subscribe(wanted, qosClass));
    if (subscriptions.size > 1) following.isTwice = true;
    this.#following.set(wanted.topic, following);
    for (const [qosClass, subscription] of subscriptions) {
      if (required.includes(qosClass)) continue;
      subscriptions.delete(qosClass);
      this.#options.node.destroySubscription(subscription);
    }
  }

  #leave(topic: string): void {
    const following = this.#following.get(topic);
    if (!following) return;
    this.#following.delete(topic);
    for (const subscription of following.subscriptions.values()) this.#options.node.destroySubscription(subscription);
  }

  #subscribe({ topic, kind }: FollowedTopic, qosClass: QosClass): RclSubscription {
    const { library, node, arrivals } = this.#options;
    const qos = qosOf(library, qosClass, DEPTH);
    const type = rawType(TYPES[kind].rosName);
    const twice = (): boolean => this.#following.get(topic)?.isTwice ?? false;
    // Deferred for the reason given at `later`.
    return node.createSubscription(type, topic, { qos, isRaw: true }, (serialized) => {
      setImmediate(() => {
        if (kind === 'health') arrivals.onHealth(serialized, topic, twice());
        else arrivals.onAlert(serialized, topic, twice());
      });
    });
  }
}

/** The topics to subscribe to: the permanent ones first, then the wanted ones of the graph, by the type of their messages, sorted by name. */
export function topicsToFollow(graph: GraphTopics, { permanent, wants }: Pick<FollowerOptions, 'permanent' | 'wants'>): FollowedTopic[] {
  const topics: FollowedTopic[] = [];
  if (permanent.healthStatus !== null) topics.push({ topic: permanent.healthStatus, kind: 'health' });
  if (permanent.alerts !== null) topics.push({ topic: permanent.alerts, kind: 'alert' });
  for (const { name, types } of graph.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    if (isProbeTopic(name) || name === permanent.healthStatus || name === permanent.alerts) continue;
    for (const kind of ['health', 'alert'] as const) {
      if (types.includes(TYPES[kind].rosName) && wants({ topic: name, kind })) topics.push({ topic: name, kind });
    }
  }
  return topics.slice(0, MAX_FOLLOWED_TOPICS);
}
