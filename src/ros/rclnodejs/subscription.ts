import { rateLimited } from '../../core/platform/log.ts';
import type { Arrived, GraphSubscription, SubscriptionOptions } from '../subscription.ts';
import { Arrivals } from './arrivals.ts';
import { FIRST_SCAN_MS, type FollowedTopic, Follower, SCAN_MS, SPIN_MS } from './follower.ts';
import { bareNode, type RclContext, type RclOptions, withRcl } from './library.ts';

export interface RclnodejsSubscriptionOptions extends SubscriptionOptions, RclOptions {}

/** No received message is this process's own: node names are not empty. */
const NO_NODE = '';

/** Receives messages of the ROS 2 graph through rclnodejs, rcl and the configured middleware. */
export class RclnodejsSubscription implements GraphSubscription {
  readonly #options: RclnodejsSubscriptionOptions;
  #context: RclContext | null = null;
  #follower: Follower | null = null;
  #scanTimer: NodeJS.Timeout | null = null;

  constructor(options: RclnodejsSubscriptionOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { listener, monotonicSeconds, nodeName, topics } = this.#options;
    const log = rateLimited(this.#options.log, monotonicSeconds);
    const arrived = (topic: string): Arrived => ({ topic, publisher: null, sequenceNumber: null });
    const arrivals = new Arrivals({
      localNode: NO_NODE,
      log,
      listener: {
        onHealthStatus: (status, topic) => listener.onHealthStatus(status, arrived(topic)),
        onAlert: (alert, topic) => listener.onAlert(alert, arrived(topic)),
      },
    });
    await withRcl(this.#options, (library, context) => {
      const node = bareNode(library, context, { name: nodeName, namespace: '/', log });
      const wants = ({ kind }: FollowedTopic): boolean => (kind === 'health' ? topics.healthStatus : topics.alerts) === null;
      this.#follower = new Follower({ library, node, permanent: topics, wants, arrivals, log });
      node.spin(SPIN_MS);
      this.#context = context;
    });
    this.#scanAfter(FIRST_SCAN_MS);
  }

  async stop(): Promise<void> {
    if (this.#scanTimer) clearTimeout(this.#scanTimer);
    const context = this.#context;
    this.#context = null;
    this.#follower = null;
    try {
      context?.shutdown();
    } catch (error) {
      this.#options.log('warning', 'rclnodejs did not stop cleanly', { error: (error as Error).message });
    }
  }

  #scanAfter(milliseconds: number): void {
    this.#scanTimer = setTimeout(() => {
      try {
        this.#follower?.scan();
      } catch (error) {
        this.#options.log('warning', 'cannot read the ROS 2 graph', { error: (error as Error).message });
      }
      this.#scanAfter(SCAN_MS);
    }, milliseconds).unref();
  }
}
