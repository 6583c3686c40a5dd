import { rarely } from '../../rtps/log.ts';
import type { Arrived, GraphSubscription, SubscriptionOptions } from '../subscription.ts';
import { Arrivals } from './arrivals.ts';
import { subscribedTopics } from './followed-topics.ts';
import { Follower } from './follower.ts';
import { bareNode, type RclContext, type RclPlace, withRcl } from './library.ts';

export interface RclnodejsSubscriptionOptions extends SubscriptionOptions, RclPlace {}

/** The executor wakes up twice a second when nothing happens; a message wakes it at once. */
const SPIN_MS = 500;
/** How often the graph is looked at for topics that came or went. */
const LOOK_MS = 5000;
/** By then discovery has found who was there before. */
const FIRST_LOOK_MS = 1000;
const LOG_PERIOD_SECONDS = 60;
/** Nothing that arrives is this process's own: no node is called so. */
const NOBODY = '';

/** Listens on the ROS 2 graph through rcl and whatever middleware is set up, by way of rclnodejs. */
export class RclnodejsSubscription implements GraphSubscription {
  readonly #options: RclnodejsSubscriptionOptions;
  #context: RclContext | null = null;
  #follower: Follower | null = null;
  #lookTimer: NodeJS.Timeout | null = null;

  constructor(options: RclnodejsSubscriptionOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { listener, monotonicSeconds, nodeName, topics } = this.#options;
    const log = rarely(this.#options.log, monotonicSeconds, LOG_PERIOD_SECONDS);
    const told = (topic: string): Arrived => ({ topic, publisher: null, sequenceNumber: null });
    const arrivals = new Arrivals({
      localNode: NOBODY,
      log,
      monotonicSeconds,
      listener: {
        onHealthStatus: (status, topic) => listener.onHealthStatus(status, told(topic)),
        onAlert: (alert, topic) => listener.onAlert(alert, told(topic)),
      },
    });
    await withRcl(this.#options, (library, context) => {
      const node = bareNode(library, context, { name: nodeName, namespace: '/', log });
      this.#follower = new Follower({ library, node, topics: (graph) => subscribedTopics(graph, topics), arrivals, log });
      node.spin(SPIN_MS);
      this.#context = context;
    });
    this.#lookAfter(FIRST_LOOK_MS);
  }

  async stop(): Promise<void> {
    if (this.#lookTimer) clearTimeout(this.#lookTimer);
    const context = this.#context;
    this.#context = null;
    this.#follower = null;
    try {
      context?.shutdown();
    } catch (error) {
      this.#options.log('warning', 'rclnodejs did not stop cleanly', { error: (error as Error).message });
    }
  }

  #lookAfter(milliseconds: number): void {
    this.#lookTimer = setTimeout(() => {
      try {
        this.#follower?.look();
      } catch (error) {
        this.#options.log('warning', 'cannot read the ROS 2 graph', { error: (error as Error).message });
      }
      this.#lookAfter(LOOK_MS);
    }, milliseconds).unref();
  }
}
