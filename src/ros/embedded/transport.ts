import type { Alert } from '../../core/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import { observersOf } from '../../core/observer.ts';
import type { ShutdownProgress } from '../../core/shutdown.ts';
import { encode } from '../../rtps/cdr.ts';
import { rarely } from '../../rtps/log.ts';
import { type Network, UdpNetwork } from '../../rtps/network.ts';
import { diagnosticArray } from '../diagnostics.ts';
import { type GraphOptions, type RosDetails, type RosTransport, sharedShutdownProblem } from '../graph.ts';
import { ALERT, DIAGNOSTIC_ARRAY, HEALTH_STATUS, SHUTDOWN_STATUS } from '../interfaces.generated.ts';
import { alertMessage, healthStatusMessage, shutdownStatusMessage } from '../messages.ts';
import { Membership } from './membership.ts';
import { Session, type SessionOptions } from './session.ts';
import { isLoopbackOnly } from './static-peers.ts';

export interface EmbeddedOptions extends GraphOptions {
  readonly wallMilliseconds: () => number;
  /** For tests; otherwise UDP. */
  readonly network?: () => Network;
  /** For tests; otherwise the participant's default. */
  readonly leaseSeconds?: number;
}

/** /diagnostics goes out at most this often, whatever the publish frequency: people and aggregators look at it. */
const DIAGNOSTICS_SECONDS = 1;
const LOG_PERIOD_SECONDS = 60;
/** Who observes is decided so often, and acted upon when it comes out the same so many times: discovery takes seconds. */
const DECIDE_SECONDS = 5;
const DECISIONS_IN_A_ROW = 2;
/** A conflict of names is shown for so long after it was last noticed. */
const CONFLICT_SECONDS = 60;

/** Takes part in the ROS 2 graph without ROS 2: an RTPS participant of our own, with ROS 2's names, types and services on it. */
export class EmbeddedTransport implements RosTransport {
  readonly #options: EmbeddedOptions;
  readonly #membership: Membership<Session>;
  #refusedBefore = 0;
  #diagnosticsSeconds = Number.NEGATIVE_INFINITY;
  #conflictSeconds = Number.NEGATIVE_INFINITY;
  #isObserving: boolean;
  #decisions = 0;
  #decisionTimer: NodeJS.Timeout | null = null;

  constructor(options: EmbeddedOptions) {
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
      onAddressLost: () => this.#membership.rejoin('an address of this machine is gone'),
      onOtherServer: () =>
        log('warning', 'several machines offer the same safe shutdown', {
          service: options.names.services.safeShutdown,
          call: options.names.services.ownSafeShutdown,
        }),
      onRefused: (topic, reason) => log('warning', 'message refused', { topic, reason }),
    };
    this.#membership = new Membership({
      place,
      log: options.log,
      // The last samples come along.
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
    if (this.#options.observe === 'auto') this.#decideLater();
    return this.#membership.start();
  }

  async stop(): Promise<void> {
    if (this.#decisionTimer) clearTimeout(this.#decisionTimer);
    this.#membership.stop();
  }

  publishHealth(status: HealthStatus): void {
    const { session } = this.#membership;
    if (!session) return;
    session.publish('healthStatus', encode(HEALTH_STATUS, { ...healthStatusMessage(status) }));
    const now = this.#options.monotonicSeconds();
    if (session.subscriberCount('diagnostics') === 0 || now - this.#diagnosticsSeconds < DIAGNOSTICS_SECONDS * 0.99) return;
    this.#diagnosticsSeconds = now;
    session.publish('diagnostics', encode(DIAGNOSTIC_ARRAY, { ...diagnosticArray(status, this.#options.diagnostics()) }));
  }

  publishAlert(alert: Alert): void {
    this.#membership.session?.publish('alerts', encode(ALERT, { ...alertMessage(alert) }));
  }

  publishShutdown(progress: ShutdownProgress): void {
    this.#membership.session?.publish('shutdownStatus', encode(SHUTDOWN_STATUS, { ...shutdownStatusMessage(progress) }));
  }

  observers(): string[] {
    const { localNode, observe } = this.#options;
    return observersOf([{ name: localNode, mode: observe }, ...(this.#membership.session?.appliances() ?? [])]);
  }

  #decideLater(): void {
    this.#decisionTimer = setTimeout(() => {
      this.#decideLater();
      this.#decide();
    }, DECIDE_SECONDS * 1000);
  }

  /** Whether to observe: decided again and again, since appliances come and go. */
  #decide(): void {
    const { listener, localNode, log } = this.#options;
    const observers = this.observers();
    const isWanted = observers.includes(localNode);
    this.#decisions = isWanted === this.#isObserving ? 0 : this.#decisions + 1;
    const { session } = this.#membership;
    if (this.#decisions < DECISIONS_IN_A_ROW || !session) return;
    this.#decisions = 0;
    this.#isObserving = isWanted;
    const appliances = [...session.vanished, ...session.appliances().map(({ name }) => name)];
    log('notice', isWanted ? 'this appliance observes the remote nodes' : 'another appliance observes the remote nodes', {
      observers,
      appliances: appliances.length,
    });
    // Remote endpoints that nothing was matched with are not kept: they are discovered again.
    this.#membership.rejoin(isWanted ? 'to receive other nodes' : 'to receive other nodes no longer');
    listener.onObserving?.(isWanted, appliances);
  }

  details(): RosDetails {
    const { problem, session } = this.#membership;
    const participant = session?.participant;
    const conflict = this.#options.monotonicSeconds() - this.#conflictSeconds < CONFLICT_SECONDS;
    return {
      peers: participant?.peerCount ?? null,
      subscribers: session?.subscriberCount('healthStatus') ?? null,
      refused: this.#refusedBefore + (participant?.refused ?? 0),
      problem:
        problem ??
        (conflict ? `another monitor on the graph is named ${this.#options.localNode} too; set node_name` : null) ??
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
