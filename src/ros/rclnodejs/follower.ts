import type { Log } from '../../core/ports.ts';
import { ALERT, HEALTH_STATUS } from '../interfaces.generated.ts';
import type { Arrivals } from './arrivals.ts';
import { type Asking, askingFor, type FollowedTopic, type GraphTopics } from './followed-topics.ts';
import {
  anyQos,
  type GuardCondition,
  type RclNode,
  type Rclnodejs,
  type RclPublisherInfo,
  type RclSubscription,
  rawType,
  reliableQos,
} from './library.ts';

export interface FollowerOptions {
  readonly library: Rclnodejs;
  /** The node that the subscriptions belong to; it spins. */
  readonly node: RclNode;
  /** What to listen to, as the graph is now; of an empty graph: what is listened to from the start, and always. */
  readonly topics: (graph: GraphTopics) => readonly FollowedTopic[];
  /** Publishers of this process, which are not listened to; by default none is. */
  readonly isOwn?: (publisher: RclPublisherInfo) => boolean;
  readonly arrivals: Arrivals;
  readonly log: Log;
}

interface Following {
  /** One for each thing that its publishers offer. */
  readonly subscriptions: Map<Asking, RclSubscription>;
  /** It was subscribed to in more than one way, now or before: the same message may have come before. */
  isTwice: boolean;
  /** Looks in a row that saw no publisher. */
  silentLooks: number;
}

/** One topic may have many publishers, and their last ten messages each come at once: more is kept than each of them keeps. */
const DEPTH = 1000;
/** Subscriptions to topics that nobody publishes on any more go after so many looks. */
const SILENT_LOOKS = 12;

/** Keeps subscriptions to the topics of health statuses and alerts on the graph that are wanted. */
export class Follower {
  readonly #options: FollowerOptions;
  readonly #guard: GuardCondition;
  readonly #following = new Map<string, Following>();
  #changes: readonly (() => void)[] = [];

  /** Subscribes at once to what is always listened to; the node must not spin yet. */
  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#guard = options.node.createGuardCondition(() => this.#change());
    // What a publisher offers by default: one that came before the next look would report incompatible QoS if more were asked for.
    for (const wanted of options.topics([])) this.#follow(wanted, ['volatile']);
  }

  /** How many subscriptions of this process there are to a topic. */
  subscriptionCount(topic: string): number {
    return this.#following.get(topic)?.subscriptions.size ?? 0;
  }

  /** Looks at the graph for topics that came or went, or whose publishers offer something else than is asked for. */
  look(): void {
    const { isOwn, node, topics } = this.#options;
    const wanted = topics(node.getTopicNamesAndTypes());
    const changes: (() => void)[] = [];
    for (const one of wanted) {
      const publishers = node.getPublishersInfoByTopic(one.topic);
      const following = this.#following.get(one.topic);
      if (following) following.silentLooks = publishers.length === 0 ? following.silentLooks + 1 : 0;
      const others = publishers.filter((publisher) => !isOwn?.(publisher));
      const asking = [...new Set(others.map(({ qos_profile }) => askingFor(qos_profile)))];
      const { subscriptions } = following ?? {};
      // Without publishers the subscriptions stay as they are.
      if (asking.length === 0 ? !following : asking.length !== subscriptions?.size || !asking.every((one) => subscriptions.has(one)))
        changes.push(() => this.#follow(one, asking));
    }
    const kept = new Set(topics([]).map(({ topic }) => topic));
    for (const [topic, { silentLooks }] of this.#following) {
      if (silentLooks >= SILENT_LOOKS && !kept.has(topic)) changes.push(() => this.#leave(topic));
    }
    this.#changes = changes;
    // The subscriptions of a spinning node are changed while its executor waits for the event loop: at any other time the
    // change would block the loop until the executor's wait is over.
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

  /** Subscribes in these ways and no other; without any, as publishers offer by default. */
  #follow(wanted: FollowedTopic, asking: readonly Asking[]): void {
    const following = this.#following.get(wanted.topic) ?? { subscriptions: new Map(), isTwice: false, silentLooks: 0 };
    const { subscriptions } = following;
    const ways: readonly Asking[] = asking.length === 0 ? ['volatile'] : asking;
    for (const way of ways) if (!subscriptions.has(way)) subscriptions.set(way, this.#subscribe(wanted, way));
    if (subscriptions.size > 1) following.isTwice = true;
    this.#following.set(wanted.topic, following);
    for (const [way, subscription] of subscriptions) {
      if (ways.includes(way)) continue;
      subscriptions.delete(way);
      this.#options.node.destroySubscription(subscription);
    }
  }

  #leave(topic: string): void {
    const following = this.#following.get(topic);
    if (!following) return;
    this.#following.delete(topic);
    for (const subscription of following.subscriptions.values()) this.#options.node.destroySubscription(subscription);
  }

  #subscribe({ topic, kind }: FollowedTopic, asking: Asking): RclSubscription {
    const { library, node, arrivals } = this.#options;
    const qos = asking === 'best effort' ? anyQos(library, DEPTH) : reliableQos(library, asking, DEPTH);
    const type = rawType((kind === 'health' ? HEALTH_STATUS : ALERT).rosName);
    const twice = (): boolean => this.#following.get(topic)?.isTwice ?? false;
    // Out of native code's callback, as `later` says.
    return node.createSubscription(type, topic, { qos, isRaw: true }, (serialized) => {
      setImmediate(() => {
        if (kind === 'health') arrivals.onHealth(serialized, topic, twice());
        else arrivals.onAlert(serialized, topic, twice());
      });
    });
  }
}
