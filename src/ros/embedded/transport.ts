import { observersOf } from '../../core/observer.ts';
import { rarely } from '../../rtps/log.ts';
import { type Network, UdpNetwork } from '../../rtps/net/network.ts';
import { type GraphOptions, type RosDetails, type RosTransport, sharedShutdownProblem } from '../graph.ts';
import { GraphPublisher, type PublishedTopic } from '../publisher.ts';
import { RejoiningSession } from './rejoin.ts';
import { Session, type SessionOptions } from './session.ts';
import { isLoopbackOnly } from './static-peers.ts';

export interface EmbeddedOptions extends GraphOptions {
  readonly wallMilliseconds: () => number;
  /** UDP by default; replaced in tests. */
  readonly network?: () => Network;
  /** The participant's default; shorter in tests. */
  readonly leaseSeconds?: number;
}

const LOG_PERIOD_SECONDS = 60;
/** Period of the election of observers, and number of equal results before a change: discovery takes seconds. */
const ELECTION_SECONDS = 5;
const EQUAL_ELECTIONS = 2;
/** How long a name conflict is reported after it was last detected. */
const CONFLICT_SECONDS = 60;

/** Joins the ROS 2 graph without a ROS 2 installation, through an RTPS participant with ROS 2's names, types and services. */
export class EmbeddedTransport extends GraphPublisher implements RosTransport {
  readonly #options: EmbeddedOptions;
  readonly #rejoining: RejoiningSession<Session>;
  #refusedBefore = 0;
  #conflictSeconds = Number.NEGATIVE_INFINITY;
  #isObserving: boolean;
  #equalElections = 0;
  #electionTimer: NodeJS.Timeout | null = null;

  constructor(options: EmbeddedOptions) {
    super(options);
    this.#options = options;
    const { listener, localNode, place } = options;
    const log = rarely(options.log, options.monotonicSeconds, LOG_PERIOD_SECONDS);
    const localhostOnly = place.discoveryRange === 'LOCALHOST';
    const network = options.network ?? (() => new UdpNetwork(isLoopbackOnly(place)));
    this.#isObserving = options.observe !== 'never';
    const sessionOptions: Omit<SessionOptions, 'staticPeers' | 'isObserving'> = {
      ...options,
      log,
      network: network(),
      localhostOnly,
      listener: {
        ...listener,
        onHealthStatus: (status) => {
          if (status.node_name !== localNode) listener.onHealthStatus(status);
          else this.#onConflict();
        },
        onAlert: (alert) => listener.onAlert(alert),
      },
      onAddressLost: () => this.#rejoining.rejoin('an address of this machine was removed'),
      onOtherServer: () =>
        log('warning', 'several machines offer the same safe shutdown service', {
          service: options.names.services.safeShutdown,
          call: options.names.services.ownSafeShutdown,
        }),
      onRefused: (topic, reason) => log('warning', 'message refused', { topic, reason }),
    };
    this.#rejoining = new RejoiningSession({
      place,
      log: options.log,
      // The new session takes over the last samples, so that late joiners still get them.
      create: (staticPeers, former) => {
        this.#refusedBefore += former?.participant.refused ?? 0;
        return new Session({ ...sessionOptions, staticPeers, isObserving: this.#isObserving }, former?.histories ?? null);
      },
    });
  }

  get isObserving(): boolean {
    return this.#isObserving;
  }

  start(): Promise<void> {
    if (this.#options.observe === 'auto') this.#scheduleElection();
    return this.#rejoining.start();
  }

  async stop(): Promise<void> {
    if (this.#electionTimer) clearTimeout(this.#electionTimer);
    this.#rejoining.stop();
  }

  protected send(topic: PublishedTopic, message: Buffer): void {
    this.#rejoining.session?.publish(topic, message);
  }

  protected hasSubscribers(topic: PublishedTopic): boolean {
    return (this.#rejoining.session?.subscriberCount(topic) ?? 0) > 0;
  }

  observers(): string[] {
    const { localNode, observe } = this.#options;
    return observersOf([{ name: localNode, mode: observe }, ...(this.#rejoining.session?.appliances() ?? [])]);
  }

  #scheduleElection(): void {
    this.#electionTimer = setTimeout(() => {
      this.#scheduleElection();
      this.#elect();
    }, ELECTION_SECONDS * 1000);
  }

  /** Decides whether this appliance observes remote nodes. Repeated, because appliances join and leave. */
  #elect(): void {
    const { listener, localNode, log } = this.#options;
    const observers = this.observers();
    const isWanted = observers.includes(localNode);
    this.#equalElections = isWanted === this.#isObserving ? 0 : this.#equalElections + 1;
    const { session } = this.#rejoining;
    if (this.#equalElections < EQUAL_ELECTIONS || !session) return;
    this.#equalElections = 0;
    this.#isObserving = isWanted;
    const appliances = [...session.vanished, ...session.appliances().map(({ name }) => name)];
    log('notice', isWanted ? 'this appliance observes the remote nodes' : 'another appliance observes the remote nodes', {
      observers,
      appliances: appliances.length,
    });
    // Remote endpoints without a match are not stored, so they must be discovered again.
    this.#rejoining.rejoin(isWanted ? 'observation of remote nodes started' : 'observation of remote nodes stopped');
    listener.onObserving?.(isWanted, appliances);
  }

  details(): RosDetails {
    const { problem, session } = this.#rejoining;
    const participant = session?.participant;
    const conflict = this.#options.monotonicSeconds() - this.#conflictSeconds < CONFLICT_SECONDS;
    return {
      peers: participant?.peerCount ?? null,
      subscribers: session?.subscriberCount('healthStatus') ?? null,
      refused: this.#refusedBefore + (participant?.refused ?? 0),
      problem:
        problem ??
        (conflict ? `another monitor on the graph is also named ${this.#options.localNode}; set node_name` : null) ??
        sharedShutdownProblem(this.#options.names, session?.otherServers() ?? 0),
    };
  }

  #onConflict(): void {
    const now = this.#options.monotonicSeconds();
    const isNew = now - this.#conflictSeconds >= CONFLICT_SECONDS;
    this.#conflictSeconds = now;
    if (isNew)
      this.#options.log('warning', 'another monitor on the graph has the same name; give each its own node_name', {
        node_name: this.#options.localNode,
      });
  }
}
