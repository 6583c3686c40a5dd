import { observersOf } from '../../core/observer.ts';
import { type GraphOptions, type RosDetails, type RosTransport, sharedShutdownNote } from '../graph.ts';
import { GraphPublisher, type PublishedTopic } from '../publisher.ts';
import { type JoinOptions, RejoiningSession } from './rejoin.ts';
import { Session } from './session.ts';

/** Period of the election of observers, and number of equal results before a change: discovery takes seconds. */
const ELECTION_SECONDS = 5;
const EQUAL_ELECTIONS = 2;

/** Joins the ROS 2 graph without a ROS 2 installation, through an RTPS participant with ROS 2's names, types and services. */
export class EmbeddedTransport extends GraphPublisher implements RosTransport {
  readonly #options: GraphOptions;
  readonly #rejoining: RejoiningSession<Session>;
  #refusedBefore = 0;
  #isObserving: boolean;
  #equalElections = 0;
  #electionTimer: NodeJS.Timeout | null = null;

  constructor(options: GraphOptions & JoinOptions) {
    super(options);
    this.#options = options;
    const { listener, localNode } = options;
    this.#isObserving = options.observe !== 'never';
    const sessionOptions: GraphOptions = {
      ...options,
      listener: {
        ...listener,
        onHealthStatus: (status, sender) => {
          if (status.node_name !== localNode) listener.onHealthStatus(status, sender);
          else this.reportConflict(sender);
        },
      },
    };
    // The new session takes over the last samples, so that late joiners still get them.
    this.#rejoining = new RejoiningSession<Session>(options, (participant, former) => {
      this.#refusedBefore += former?.participant.refused ?? 0;
      return new Session({ ...sessionOptions, isObserving: this.#isObserving }, participant, former);
    });
  }

  get isObserving(): boolean {
    return this.#isObserving;
  }

  async start(): Promise<void> {
    await this.#rejoining.start();
    // Without a session, `stop` was called during the start.
    if (this.#options.observe === 'auto' && this.#rejoining.session) this.#scheduleElection();
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
    return observersOf([{ name: localNode, mode: observe }, ...(this.#rejoining.session?.appliances.all() ?? [])]);
  }

  #scheduleElection(): void {
    this.#electionTimer = setTimeout(() => {
      this.#scheduleElection();
      this.#elect();
    }, ELECTION_SECONDS * 1000).unref();
  }

  /** Decides whether this appliance observes remote nodes. Repeated, because appliances join and leave. */
  #elect(): void {
    const { listener, localNode, log } = this.#options;
    const observers = this.observers();
    const isWanted = observers.includes(localNode);
    const { session } = this.#rejoining;
    // An appliance that loses all others at once, the observer among them, is itself cut off, and nobody could receive its alerts.
    const isCutOff = !this.#isObserving && session?.participant.peerCount === 0;
    this.#equalElections = isWanted === this.#isObserving || isCutOff ? 0 : this.#equalElections + 1;
    // An appliance that does not observe receives no status from which it could detect the conflict.
    const namesake = session?.ownNameSender() ?? null;
    if (namesake) this.reportConflict(namesake);
    if (!session) return;
    const isDecided = this.#equalElections >= EQUAL_ELECTIONS;
    if (isDecided) this.#isObserving = isWanted;
    session.observe(this.#isObserving, observers);
    if (!isDecided) return;
    this.#equalElections = 0;
    const appliances = session.appliances.expected();
    log('notice', isWanted ? 'this appliance observes the remote nodes' : 'another appliance observes the remote nodes', {
      observers,
      appliances: appliances.length,
    });
    listener.onObserving?.(isWanted, appliances);
  }

  get joinProblem(): string | null {
    return this.#rejoining.problem;
  }

  details(): RosDetails {
    const { problem, session } = this.#rejoining;
    const participant = session?.participant;
    return {
      peers: participant?.peerCount ?? null,
      subscribers: session?.subscriberCount('healthStatus') ?? null,
      refused: this.#refusedBefore + (participant?.refused ?? 0),
      problem: problem ?? this.conflictProblem,
      note: sharedShutdownNote(this.#options.names, session?.otherServers() ?? 0),
    };
  }
}
