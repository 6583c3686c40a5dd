import type { SubscribedTopics } from '../../../src/ros/subscription.ts';

/** Where a service of this `node_name` publishes unless its topics are remapped: `robot1/health_monitor` in the namespace /robot1. */
export function expectedTopics(node: string): { readonly healthStatus: string; readonly alerts: string } {
  const namespace = node.split('/').slice(0, -1).join('/');
  const under = namespace === '' ? '' : `/${namespace}`;
  return { healthStatus: `${under}/health_status`, alerts: `${under}/alerts` };
}

const EVERYWHERE: SubscribedTopics = { healthStatus: null, alerts: null };
/** How long the watched node is listened for in one place before it is looked for in the other. */
export const LISTEN_SECONDS = 15;

/**
 * Which topics to listen to: those that the watched node should publish on, and, by turns until it is heard, all that have such messages.
 * In a fleet "all" are the statuses of every robot, which is why it stays there no longer than it must.
 */
export class TopicSearch {
  readonly #expected: SubscribedTopics;
  #topics: SubscribedTopics;
  #isSettled: boolean;

  /** `given`: the topics are known, nothing is searched. */
  constructor(node: string, given: SubscribedTopics | null) {
    this.#expected = expectedTopics(node);
    this.#topics = given ?? this.#expected;
    this.#isSettled = given !== null;
  }

  get topics(): SubscribedTopics {
    return this.#topics;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** The watched node was heard on this topic. True: other topics are to be listened to from now on. */
  heardOn(topic: string): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    const before = this.#topics;
    // Where its alerts go is told only once there is one; they are few, whoever raises them.
    if (before.healthStatus === null)
      this.#topics = topic === this.#expected.healthStatus ? this.#expected : { ...EVERYWHERE, healthStatus: topic };
    return this.#topics !== before;
  }

  /** It was not heard in time. True: other topics are to be listened to from now on. */
  giveUp(): boolean {
    if (this.#isSettled) return false;
    this.#topics = this.#topics.healthStatus === null ? this.#expected : EVERYWHERE;
    return true;
  }
}
