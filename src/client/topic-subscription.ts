import { type Alert, nodeOfAlertId, STALE_METRIC } from '../core/alerts/alert.ts';
import { PROGRAMS } from '../core/files/programs.ts';
import { rosPaths } from '../core/files/ros-paths.ts';
import type { HealthStatus } from '../core/health-status.ts';
import { rateLimited } from '../core/platform/log.ts';
import type { Log } from '../core/ports.ts';
import { type DiscoveryConfig, discoverySettings } from '../ros/environment.ts';
import type { DiscoverySettings } from '../ros/graph.ts';
import { graphNames } from '../ros/names.ts';
import { environmentFor, findRos, type Prepared } from '../ros/rclnodejs/prepared.ts';
import { probe } from '../ros/rclnodejs/probe.ts';
import { isSecured, isSecurityEnforced } from '../ros/rclnodejs/ros-variables.ts';
import type { Arrived, GraphSubscription, SubscribedTopics, SubscriptionOptions } from '../ros/subscription.ts';

/** Receives the messages from the topics that concern the observed node. */
export interface TopicListener {
  onStatus(channel: 'topic', status: HealthStatus): void;
  onAlert(channel: 'topic', alert: Alert): void;
  /** Receives a note for the user, such as lost messages; the same text at most once a minute. */
  onNote(text: string): void;
}

export interface TransportOptions {
  readonly transport: 'auto' | 'embedded' | 'rclnodejs';
  readonly environment: NodeJS.ProcessEnv;
  /** Searched for rclnodejs as prepared by `edge-health ros-setup`, besides the usual folders; null: only those. */
  readonly dataFolder: string | null;
}

type TransportChoice =
  | { readonly transport: 'embedded'; readonly reason: string }
  | { readonly transport: 'rclnodejs'; readonly reason: string; readonly prepared: Prepared };

/** The observer's name in `ros2 node list`. */
const HARNESS_NODE = 'edge_health_harness';

export interface TopicSubscriptionOptions extends TransportOptions {
  /** Members that are null follow ROS 2's environment variables. */
  readonly ros: DiscoveryConfig;
  /** The observed `node_name`. */
  readonly node: string;
  readonly listener: TopicListener;
}

const NOTE_SECONDS = 60;
const RETRY_MS = 10_000;

const monotonicSeconds = (): number => performance.now() / 1000;

/** The observer's subscription on the ROS 2 graph. Rejects with a remedy if it can never work. */
export async function topicSubscription(options: TopicSubscriptionOptions): Promise<TopicSubscription> {
  const { environment, listener, ros } = options;
  const found = discoverySettings(ros, environment);
  if (!found.ok) throw new Error(found.problem);
  const { notes, discovery } = found;
  if (discovery.discoveryRange === 'OFF')
    throw new Error('the discovery range is OFF: no data can be received; use --transport off to use /events alone');
  const choice = await chooseTransport(options, discovery);
  for (const note of notes) listener.onNote(note);
  // Only the chosen transport is loaded.
  if (choice.transport === 'rclnodejs') {
    const { RclnodejsSubscription } = await import('../ros/rclnodejs/subscription.ts');
    const { prepared } = choice;
    return new TopicSubscription(options, choice, discovery, (to) => new RclnodejsSubscription({ ...to, prepared, enclave: null }));
  }
  const { EmbeddedSubscription } = await import('../ros/embedded/subscription.ts');
  return new TopicSubscription(options, choice, discovery, (to) => new EmbeddedSubscription({ ...to, wallMilliseconds: () => Date.now() }));
}

export class TopicSubscription {
  readonly transport: TransportChoice['transport'];
  /** Why this transport was chosen. */
  readonly reason: string;
  readonly #options: TopicSubscriptionOptions;
  readonly #log: Log;
  readonly #subscribe: (topics: SubscribedTopics) => GraphSubscription;
  readonly #search: TopicSearch;
  readonly #publishers = new Publishers();
  #subscription: GraphSubscription | null = null;
  /** Changes of the subscription run one at a time. */
  #changing: Promise<void> = Promise.resolve();
  #searchTimer: NodeJS.Timeout | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #isStopped = false;
  #missing = 0;
  #notedSeconds = Number.NEGATIVE_INFINITY;

  constructor(
    options: TopicSubscriptionOptions,
    { reason, transport }: TransportChoice,
    discovery: DiscoverySettings,
    create: (options: SubscriptionOptions) => GraphSubscription,
  ) {
    this.transport = transport;
    this.reason = `${reason} (domain ${discovery.domainId}, discovery range ${discovery.discoveryRange})`;
    this.#options = options;
    this.#search = new TopicSearch(options.node);
    const note = rateLimited((_level, message, fields = {}) => {
      const details = Object.entries(fields).map(([name, value]) => `${name} ${String(value)}`);
      options.listener.onNote(`the graph: ${message}${details.length > 0 ? ` (${details.join(', ')})` : ''}`);
    }, monotonicSeconds);
    this.#log = (level, message, fields) => {
      if (level !== 'info' && level !== 'debug') note(level, message, fields);
    };
    this.#subscribe = (topics) =>
      create({
        discovery,
        nodeName: HARNESS_NODE,
        topics,
        log: this.#log,
        monotonicSeconds,
        listener: {
          onHealthStatus: (status, arrived) => this.#onHealthStatus(status, arrived),
          onAlert: (alert) => this.#onAlert(alert),
        },
      });
  }

  async start(): Promise<void> {
    await this.#open();
    this.#searchTimer = setInterval(() => {
      if (this.#search.tryOther()) this.#change();
      else clearInterval(this.#searchTimer);
    }, SEARCH_SECONDS * 1000).unref();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#searchTimer);
    clearTimeout(this.#retryTimer);
    this.#noteMissing();
    await this.#changing;
    await this.#subscription?.stop();
    this.#subscription = null;
  }

  #onHealthStatus(status: HealthStatus, arrived: Arrived): void {
    if (this.#isStopped || status.node_name !== this.#options.node) return;
    const { isAlternating, missing } = this.#publishers.receive(arrived);
    if (isAlternating) this.#log('warning', `two publishers send statuses of ${status.node_name}`, { topic: arrived.topic });
    this.#missing += missing;
    if (missing > 0 && monotonicSeconds() - this.#notedSeconds >= NOTE_SECONDS) this.#noteMissing();
    this.#options.listener.onStatus('topic', status);
    if (this.#search.foundOn(arrived.topic)) {
      this.#log('notice', `${status.node_name} publishes on ${arrived.topic}`);
      this.#change();
    }
  }

  #onAlert(alert: Alert): void {
    // Other nodes raise alerts of this metric about the observed node; it raises none itself.
    if (this.#isStopped || alert.metric === STALE_METRIC || nodeOfAlertId(alert.alert_id) !== this.#options.node) return;
    this.#options.listener.onAlert('topic', alert);
  }

  #noteMissing(): void {
    if (this.#missing === 0) return;
    this.#notedSeconds = monotonicSeconds();
    this.#options.listener.onNote(`the graph: ${this.#missing} statuses were published and never delivered, by their sequence numbers`);
    this.#missing = 0;
  }

  async #open(): Promise<void> {
    const subscription = this.#subscribe(this.#search.topics);
    await subscription.start();
    this.#subscription = subscription;
  }

  /** Subscribes to other topics as a new participant: publishers are not announced to the same participant twice. */
  #change(): void {
    this.#changing = this.#changing
      .then(async () => {
        const former = this.#subscription;
        this.#subscription = null;
        await former?.stop();
        if (!this.#isStopped) await this.#open();
      })
      .catch((error: Error) => {
        this.#log('error', 'cannot subscribe on the ROS 2 graph, retrying', { error: error.message });
        if (!this.#isStopped) this.#retryTimer = setTimeout(() => this.#change(), RETRY_MS).unref();
      });
  }
}

/** The topics of a service with this `node_name`, unless they are remapped: `robot1/health_monitor` publishes in the namespace /robot1. */
export function expectedTopics(node: string): { readonly healthStatus: string; readonly alerts: string } {
  const namespace = node.split('/').slice(0, -1).join('/');
  const under = namespace === '' ? '' : `/${namespace}`;
  return { healthStatus: `${under}/health_status`, alerts: `${under}/alerts` };
}

const EVERYWHERE: SubscribedTopics = { healthStatus: null, alerts: null };
/** How long to wait for the observed node on one set of topics before trying the other. */
const SEARCH_SECONDS = 15;

/**
 * Chooses the topics to subscribe to: alternately those on which the observed node should publish and all topics with such messages, until
 * a status of the node is received. In a fleet, all topics carry the statuses of every robot, so that subscription is kept no longer than
 * needed.
 */
export class TopicSearch {
  readonly #expected: SubscribedTopics;
  #topics: SubscribedTopics;
  #isSettled = false;

  constructor(node: string) {
    this.#expected = expectedTopics(node);
    this.#topics = this.#expected;
  }

  get topics(): SubscribedTopics {
    return this.#topics;
  }

  /** A status of the observed node was received on this topic. Returns whether `topics` has changed. */
  foundOn(topic: string): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    const before = this.#topics;
    // The topic of the node's alerts is unknown until it publishes one; alerts are few, so all topics with alerts stay subscribed.
    if (before.healthStatus === null)
      this.#topics = topic === this.#expected.healthStatus ? this.#expected : { ...EVERYWHERE, healthStatus: topic };
    return this.#topics !== before;
  }

  /** No status was received in time. Returns whether `topics` has changed. */
  tryOther(): boolean {
    if (this.#isSettled) return false;
    this.#topics = this.#topics.healthStatus === null ? this.#expected : EVERYWHERE;
    return true;
  }
}

interface Publisher {
  readonly id: string;
  last: number;
}

/**
 * Follows the sequence numbers of the publishers of the observed node. A restart of the service is a new publisher, after which the former
 * one sends nothing.
 */
export class Publishers {
  #current: Publisher | null = null;
  #former: Publisher | null = null;

  /** `missing`: messages that were written before this one and never received. `isAlternating`: two publishers send for the same node. */
  receive({ publisher, sequenceNumber }: Arrived): { readonly missing: number; readonly isAlternating: boolean } {
    if (publisher === null || sequenceNumber === null) return { missing: 0, isAlternating: false };
    if (this.#current?.id === publisher) {
      const missing = Math.max(0, sequenceNumber - this.#current.last - 1);
      // A rejoin delivers the last messages again.
      this.#current.last = Math.max(this.#current.last, sequenceNumber);
      return { missing, isAlternating: false };
    }
    const isAlternating = this.#former?.id === publisher;
    const next = isAlternating && this.#former ? this.#former : { id: publisher, last: sequenceNumber };
    next.last = Math.max(next.last, sequenceNumber);
    this.#former = this.#current;
    this.#current = next;
    return { missing: 0, isAlternating };
  }
}

const ENFORCED = 'ROS_SECURITY_STRATEGY is Enforce, and the embedded participant has no security';

/**
 * Chooses how to subscribe: `auto` is the embedded participant, which is light and independent of the installation that the service may
 * use, except where SROS2 is enforced. Rejects with a remedy if the requested transport cannot be used.
 */
async function chooseTransport(options: TransportOptions, discovery: DiscoverySettings): Promise<TransportChoice> {
  const { environment, transport } = options;
  const isEnforced = isSecurityEnforced(environment);
  if (transport === 'embedded' && isEnforced)
    throw new Error(`${ENFORCED}: use --transport rclnodejs, or --transport off to go by /events`);
  if (transport === 'embedded') return { transport: 'embedded', reason: 'requested' };
  if (transport === 'auto' && !isEnforced) {
    return { transport: 'embedded', reason: 'light, and independent of the ROS 2 that the service may use' };
  }
  const why = transport === 'auto' ? ENFORCED : 'requested';
  const found = findRos(environment, rosPaths(options.dataFolder));
  const instead = isEnforced ? 'or --transport off to go by /events' : 'or use --transport embedded';
  if (found.state !== 'prepared') throw new Error(`rclnodejs cannot be used: ${found.reason}; ${instead}`);
  // In a separate process, since native code may crash. With SROS2 only the real node has permissions, so there is no probe.
  const names = graphNames({ node_name: 'health_monitor', namespace: null }, []);
  const attempt = { program: PROGRAMS.rosProbe, environment, discovery, names, enclave: null };
  const problem = isSecured(environment) ? null : await probe(found.prepared, attempt);
  if (problem !== null) throw new Error(`rclnodejs does not work with the sourced ROS 2 ${found.ros.distro}: ${problem}; ${instead}`);
  return { transport: 'rclnodejs', reason: `${why}; ROS 2 ${found.ros.distro} is sourced and prepared`, prepared: found.prepared };
}

/**
 * The environment with which this process must be replaced (process.execve) before it can use rclnodejs, since the dynamic linker reads
 * the library path only at the start; null: the current one suffices.
 */
export function transportEnvironment({ dataFolder, environment, transport }: TransportOptions): NodeJS.ProcessEnv | null {
  if (transport === 'embedded' || (transport === 'auto' && !isSecurityEnforced(environment))) return null;
  const found = findRos(environment, rosPaths(dataFolder));
  return found.state === 'prepared' ? environmentFor(found.prepared, environment) : null;
}
