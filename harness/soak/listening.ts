import type { RestClient } from '../../src/client/rest.ts';
import { EventsSource } from '../observe/events.ts';
import type { Source, SourceListener } from '../observe/sources.ts';
import { topicSubscription } from '../observe/topic-subscription.ts';
import type { SoakOptions } from './options.ts';
import { IndependentPeer } from './peer.ts';
import type { SoakPlace } from './place.ts';
import { CannotRun, NODE } from './service.ts';
import type { Way } from './way.ts';

export interface ListeningOptions {
  readonly options: SoakOptions;
  readonly place: SoakPlace;
  readonly rest: RestClient;
  readonly ways: Readonly<Record<'topic' | 'events' | 'peer', Way>>;
  readonly onNote: (text: string) => void;
}

/** By then everybody has found everybody. */
const HEARD_SECONDS = 60;
const LOOK_MS = 50;

/** All that hears statuses and alerts: the harness's own subscription, the event stream, and a subscriber on another DDS implementation. */
export class Listening {
  readonly #options: ListeningOptions;
  readonly #sources: Source[] = [];
  #watcher: string | null = null;
  #peerInstead: string | null;
  #peer: IndependentPeer | null = null;

  constructor(options: ListeningOptions) {
    this.#options = options;
    this.#peerInstead = options.options.transport === 'off' ? 'the service is off the graph' : IndependentPeer.unavailable() || null;
  }

  /** How the topic is listened to; null: it is not. */
  get watcher(): string | null {
    return this.#watcher;
  }

  /** Why there is no independent subscriber; null: there is one. */
  get peer(): string | null {
    return this.#peerInstead;
  }

  /** Resolves once statuses are heard by every way. Throws CannotRun where they are not, or when it is ended before. */
  async start(ended: AbortSignal): Promise<void> {
    const { options, place, rest, ways } = this.#options;
    const listener: SourceListener = {
      onStatus: (by, { timestamp }) => ways[by].onStatus(timestamp),
      onAlert: (by, alert) => ways[by].onAlert(alert),
      onNote: this.#options.onNote,
    };
    const expected: (readonly [title: string, way: Way])[] = [['the event stream', ways.events]];
    const monotonicSeconds = (): number => performance.now() / 1000;
    this.#sources.push(new EventsSource({ rest, node: NODE, hertz: options.hertz, listener, monotonicSeconds }));
    if (options.transport !== 'off') {
      const graph = await topicSubscription({
        transport: 'embedded',
        environment: {},
        dataFolder: null,
        ros: { domain_id: place.domainId, discovery_range: place.discoveryRange, static_peers: [] },
        node: NODE,
        listener,
      });
      this.#watcher = `${graph.transport}: ${graph.reason}`;
      this.#sources.push(graph);
      expected.push(['the harness on the topic', ways.topic]);
    }
    if (this.#peerInstead === null) {
      this.#peer = await IndependentPeer.start(place.peer, ways.peer);
      expected.push(['the independent subscriber', ways.peer]);
    }
    for (const source of this.#sources) await source.start();
    const deadline = performance.now() + HEARD_SECONDS * 1000;
    for (const [title, way] of expected) {
      while (way.heard === 0) {
        if (ended.aborted) throw new CannotRun('ended before it began');
        if (performance.now() > deadline) throw new CannotRun(`${title} heard nothing within ${HEARD_SECONDS} s`);
        await new Promise((later) => setTimeout(later, LOOK_MS));
      }
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#sources.map((source) => source.stop()), this.#peer?.stop()]);
  }
}
