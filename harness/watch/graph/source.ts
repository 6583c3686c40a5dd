import { type Alert, nodeOfAlertId } from '../../../src/core/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { Log } from '../../../src/core/ports.ts';
import { graphPlace, type PlaceConfig } from '../../../src/ros/environment.ts';
import type { GraphPlace } from '../../../src/ros/graph.ts';
import type { Arrived, GraphSubscription, SubscribedTopics, SubscriptionOptions } from '../../../src/ros/subscription.ts';
import { rarely } from '../../../src/rtps/log.ts';
import type { GraphSource, WatchListener } from '../ports.ts';
import { type ChoiceOptions, chooseGraph } from './choice.ts';
import { Speakers } from './speaker.ts';
import { LISTEN_SECONDS, TopicSearch } from './topics.ts';

export { graphEnvironment } from './choice.ts';

/** As `ros2 node list` shows the watcher. */
export const HARNESS_NODE = 'edge_health_harness';

export interface GraphSourceOptions extends ChoiceOptions {
  /** The `ros` section of the service's configuration; nulls in it, or all of it null: as ROS 2's environment variables say. */
  readonly ros: PlaceConfig | null;
  /** The domain that the service says it is in (/status, ros.domain_id), which wins; null: not known. */
  readonly domainId?: number | null;
  /** The watched `node_name`. */
  readonly node: string;
  /** Where it publishes; null or not given: where its name says, else on whatever topic it is found. */
  readonly topics?: SubscribedTopics | null;
  readonly listener: WatchListener;
  readonly log: Log;
}

const NOTE_SECONDS = 60;
const AGAIN_MS = 10_000;
/** About this node's silence others raise alerts, each by what arrives there; the node itself never does. */
const SILENCE_METRIC = 'health_status';

const monotonicSeconds = (): number => performance.now() / 1000;

/** The watcher's own subscription on the graph. Rejects with what to do where there can never be one. */
export async function graphSource(options: GraphSourceOptions): Promise<GraphSource> {
  const { domainId = null, environment, listener, ros } = options;
  const config = ros ?? { domain_id: null, discovery_range: null, static_peers: null };
  const found = graphPlace({ ...config, domain_id: domainId ?? config.domain_id }, environment);
  if (!found.ok) throw new Error(found.problem);
  const { notes, place } = found;
  if (place.discoveryRange === 'OFF')
    throw new Error('the discovery range is OFF: nothing can be heard; use --transport off to go by /events');
  const choice = await chooseGraph(options, place);
  for (const note of notes) listener.onNote(note);
  // Each is loaded only when it is taken.
  if (choice.transport === 'rclnodejs') {
    const { RclnodejsSubscription } = await import('../../../src/ros/rclnodejs/subscription.ts');
    const { prepared } = choice;
    return new Watching(options, choice, place, (to) => new RclnodejsSubscription({ ...to, prepared, enclave: null }));
  }
  const { EmbeddedSubscription } = await import('../../../src/ros/embedded/subscription.ts');
  return new Watching(options, choice, place, (to) => new EmbeddedSubscription({ ...to, wallMilliseconds: () => Date.now() }));
}

class Watching implements GraphSource {
  readonly transport: GraphSource['transport'];
  readonly reason: string;
  readonly #options: GraphSourceOptions;
  readonly #log: Log;
  readonly #subscribe: (topics: SubscribedTopics) => GraphSubscription;
  readonly #search: TopicSearch;
  readonly #speakers = new Speakers();
  #subscription: GraphSubscription | null = null;
  /** Changes of the subscription, one after the other. */
  #changing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | null = null;
  #again: NodeJS.Timeout | null = null;
  #isStopped = false;
  #missing = 0;
  #notedSeconds = Number.NEGATIVE_INFINITY;

  constructor(
    options: GraphSourceOptions,
    { reason, transport }: Pick<GraphSource, 'reason' | 'transport'>,
    place: GraphPlace,
    create: (options: SubscriptionOptions) => GraphSubscription,
  ) {
    this.transport = transport;
    this.reason = `${reason} (domain ${place.domainId}, discovery range ${place.discoveryRange})`;
    this.#options = options;
    this.#search = new TopicSearch(options.node, options.topics ?? null);
    const note = rarely(
      (_level, message, fields = {}) => options.listener.onNote(`the graph: ${sentence(message, fields)}`),
      monotonicSeconds,
      NOTE_SECONDS,
    );
    this.#log = (level, message, fields) => {
      options.log(level, message, fields);
      if (level !== 'info' && level !== 'debug') note(level, message, fields);
    };
    this.#subscribe = (topics) =>
      create({
        place,
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
    await this.#listen();
    if (!this.#search.isSettled) this.#searchOn();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const timer of [this.#timer, this.#again]) if (timer) clearTimeout(timer);
    this.#noteMissing();
    await this.#changing;
    await this.#subscription?.stop();
    this.#subscription = null;
  }

  #onHealthStatus(status: HealthStatus, arrived: Arrived): void {
    if (this.#isStopped || status.node_name !== this.#options.node) return;
    const { interrupted, missing } = this.#speakers.hear(arrived);
    if (interrupted) this.#log('warning', `two publishers speak as ${status.node_name} by turns`, { topic: arrived.topic });
    this.#missing += missing;
    if (missing > 0 && monotonicSeconds() - this.#notedSeconds >= NOTE_SECONDS) this.#noteMissing();
    this.#options.listener.onStatus('topic', status);
    if (this.#search.heardOn(arrived.topic)) {
      this.#log('notice', `${status.node_name} publishes on ${arrived.topic}`);
      this.#change();
    }
  }

  #onAlert(alert: Alert): void {
    if (this.#isStopped || alert.metric === SILENCE_METRIC || nodeOfAlertId(alert.alert_id) !== this.#options.node) return;
    this.#options.listener.onAlert('topic', alert);
  }

  #noteMissing(): void {
    if (this.#missing === 0) return;
    this.#notedSeconds = monotonicSeconds();
    this.#options.listener.onNote(`the graph: ${this.#missing} statuses were published and never delivered, by their sequence numbers`);
    this.#missing = 0;
  }

  #searchOn(): void {
    this.#timer = setTimeout(() => {
      if (!this.#search.giveUp()) return;
      this.#change();
      this.#searchOn();
    }, LISTEN_SECONDS * 1000).unref();
  }

  async #listen(): Promise<void> {
    const subscription = this.#subscribe(this.#search.topics);
    await subscription.start();
    this.#subscription = subscription;
  }

  /** Listens to other topics, as another participant: what was announced to this one is not told again. */
  #change(): void {
    this.#changing = this.#changing
      .then(async () => {
        const former = this.#subscription;
        this.#subscription = null;
        await former?.stop();
        if (!this.#isStopped) await this.#listen();
      })
      .catch((error: Error) => {
        this.#log('error', 'cannot listen to the ROS 2 graph; trying again', { error: error.message });
        if (!this.#isStopped) this.#again = setTimeout(() => this.#change(), AGAIN_MS).unref();
      });
  }
}

function sentence(message: string, fields: Readonly<Record<string, unknown>>): string {
  const rest = Object.entries(fields).map(([name, value]) => `${name} ${String(value)}`);
  return rest.length === 0 ? message : `${message} (${rest.join(', ')})`;
}
