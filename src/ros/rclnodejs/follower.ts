import type { Log } from '../../core/ports.ts';
import { ALERT, HEALTH_STATUS } from '../interfaces.generated.ts';
import type { Arrivals } from './arrivals.ts';
import { type FollowedTopic, type GraphTopics, offersLess } from './followed-topics.ts';
import { anyQos, type GuardCondition, type RclNode, type Rclnodejs, type RclSubscription, rawType, reliableQos } from './library.ts';

export interface FollowerOptions {
  readonly library: Rclnodejs;
  /** The node that the subscriptions belong to; it spins. */
  readonly node: RclNode;
  /** What to listen to, as the graph is now; of an empty graph: what is listened to from the start, and always. */
  readonly topics: (graph: GraphTopics) => readonly FollowedTopic[];
  readonly arrivals: Arrivals;
  readonly log: Log;
}

interface Following {
  readonly full: RclSubscription;
  /** For publishers that offer less; null: there are none. */
  any: RclSubscription | null;
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
    for (const wanted of options.topics([])) this.#follow(wanted, false);
  }

  /** How many subscriptions of this process there are to a topic. */
  subscriptionCount(topic: string): number {
    const following = this.#following.get(topic);
    return following ? 1 + (following.any === null ? 0 : 1) : 0;
  }

  /** Looks at the graph for topics that came or went, or whose publishers offer less than the contract asks for. */
  look(): void {
    const { node, topics } = this.#options;
    const wanted = topics(node.getTopicNamesAndTypes());
    const changes: (() => void)[] = [];
    for (const one of wanted) {
      const publishers = node.getPublishersInfoByTopic(one.topic);
      const following = this.#following.get(one.topic);
      if (following) following.silentLooks = publishers.length === 0 ? following.silentLooks + 1 : 0;
      const less = publishers.some(({ qos_profile }) => offersLess(qos_profile));
      if (!following || (less && following.any === null)) changes.push(() => this.#follow(one, less));
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
        this.#options.log('warning', 'cannot listen to a topic of the ROS 2 graph', { error: (error as Error).message });
      }
    }
  }

  /** `less`: also to publishers that offer less. */
  #follow(wanted: FollowedTopic, less: boolean): void {
    const following = this.#following.get(wanted.topic) ?? { full: this.#subscribe(wanted, true), any: null, silentLooks: 0 };
    this.#following.set(wanted.topic, following);
    if (less) following.any ??= this.#subscribe(wanted, false);
  }

  #leave(topic: string): void {
    const following = this.#following.get(topic);
    if (!following) return;
    this.#following.delete(topic);
    this.#options.node.destroySubscription(following.full);
    if (following.any) this.#options.node.destroySubscription(following.any);
  }

  #subscribe({ topic, kind }: FollowedTopic, full: boolean): RclSubscription {
    const { library, node, arrivals } = this.#options;
    const qos = full ? reliableQos(library, 'transient local', DEPTH) : anyQos(library, DEPTH);
    const type = rawType((kind === 'health' ? HEALTH_STATUS : ALERT).rosName);
    const twice = (): boolean => (this.#following.get(topic)?.any ?? null) !== null;
    // Out of native code's callback, as `later` says.
    return node.createSubscription(type, topic, { qos, isRaw: true }, (serialized) => {
      setImmediate(() => {
        if (kind === 'health') arrivals.onHealth(serialized, topic, twice());
        else arrivals.onAlert(serialized, topic, twice());
      });
    });
  }
}
