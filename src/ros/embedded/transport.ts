import type { Alert } from '../../core/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import type { ShutdownProgress } from '../../core/shutdown.ts';
import { encode } from '../../rtps/cdr.ts';
import { rarely } from '../../rtps/log.ts';
import { type Network, UdpNetwork } from '../../rtps/network.ts';
import { diagnosticArray } from '../diagnostics.ts';
import type { GraphOptions, RosDetails, RosTransport } from '../graph.ts';
import { ALERT, DIAGNOSTIC_ARRAY, HEALTH_STATUS, SHUTDOWN_STATUS } from '../interfaces.generated.ts';
import { alertMessage, healthStatusMessage, shutdownStatusMessage } from '../messages.ts';
import { Session, type SessionOptions } from './session.ts';
import { addressesOf } from './static-peers.ts';

export interface EmbeddedOptions extends GraphOptions {
  readonly wallMilliseconds: () => number;
  /** For tests; otherwise UDP. */
  readonly network?: () => Network;
}

/** /diagnostics goes out at most this often, whatever the publish frequency: people and aggregators look at it. */
const DIAGNOSTICS_SECONDS = 1;
const REJOIN_AGAIN_MS = 10_000;
const LOG_PERIOD_SECONDS = 60;
/** A conflict of names is shown for so long after it was last noticed. */
const CONFLICT_SECONDS = 60;

/** Takes part in the ROS 2 graph without ROS 2: an RTPS participant of our own, with ROS 2's names, types and services on it. */
export class EmbeddedTransport implements RosTransport {
  readonly #options: EmbeddedOptions;
  readonly #sessionOptions: SessionOptions;
  #session: Session | null = null;
  /** Addresses, as the names of the configuration were last resolved. */
  #staticPeers: readonly string[] = [];
  #refusedBefore = 0;
  #diagnosticsSeconds = Number.NEGATIVE_INFINITY;
  #conflictSeconds = Number.NEGATIVE_INFINITY;
  #rejoinTimer: NodeJS.Timeout | null = null;
  #problem: string | null = null;
  #stopped = false;

  constructor(options: EmbeddedOptions) {
    this.#options = options;
    const { listener, localNode, place } = options;
    const log = rarely(options.log, options.monotonicSeconds, LOG_PERIOD_SECONDS);
    const localhostOnly = place.discoveryRange === 'LOCALHOST';
    const network = options.network ?? (() => new UdpNetwork(localhostOnly));
    this.#sessionOptions = {
      ...options,
      log,
      network: network(),
      localhostOnly,
      staticPeers: [],
      listener: {
        ...listener,
        onHealthStatus: (status) => {
          if (status.node_name !== localNode) listener.onHealthStatus(status);
          else this.#onConflict();
        },
        onAlert: (alert) => listener.onAlert(alert),
      },
      onAddressLost: () => this.#rejoin(),
      onRefused: (topic, reason) => log('warning', 'refused a message', { topic, reason }),
    };
  }

  async start(): Promise<void> {
    const { place, log } = this.#options;
    this.#staticPeers = await addressesOf(place, log);
    const session = new Session({ ...this.#sessionOptions, staticPeers: this.#staticPeers }, null);
    await session.start();
    // It may have been stopped meanwhile.
    if (this.#stopped) session.stop();
    else this.#session = session;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#rejoinTimer) clearTimeout(this.#rejoinTimer);
    this.#session?.stop();
    this.#session = null;
  }

  publishHealth(status: HealthStatus): void {
    const session = this.#session;
    if (!session) return;
    session.publish('healthStatus', encode(HEALTH_STATUS, { ...healthStatusMessage(status) }));
    const now = this.#options.monotonicSeconds();
    if (session.subscriberCount('diagnostics') === 0 || now - this.#diagnosticsSeconds < DIAGNOSTICS_SECONDS * 0.99) return;
    this.#diagnosticsSeconds = now;
    session.publish('diagnostics', encode(DIAGNOSTIC_ARRAY, { ...diagnosticArray(status, this.#options.diagnostics()) }));
  }

  publishAlert(alert: Alert): void {
    this.#session?.publish('alerts', encode(ALERT, { ...alertMessage(alert) }));
  }

  publishShutdown(progress: ShutdownProgress): void {
    this.#session?.publish('shutdownStatus', encode(SHUTDOWN_STATUS, { ...shutdownStatusMessage(progress) }));
  }

  details(): RosDetails {
    const participant = this.#session?.participant;
    const conflict = this.#options.monotonicSeconds() - this.#conflictSeconds < CONFLICT_SECONDS;
    return {
      peers: participant?.peerCount ?? null,
      subscribers: this.#session?.subscriberCount('healthStatus') ?? null,
      refused: this.#refusedBefore + (participant?.refused ?? 0),
      problem: this.#problem ?? (conflict ? `another monitor on the graph is named ${this.#options.localNode} too; set node_name` : null),
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

  /**
   * Joins anew under another identity: others cannot be told that a known participant has moved, and would go on sending to an address
   * that is gone. The last samples come along.
   */
  #rejoin(): void {
    const old = this.#session;
    if (!old || this.#stopped) return;
    this.#refusedBefore += old.participant.refused;
    old.stop();
    const session = new Session({ ...this.#sessionOptions, staticPeers: this.#staticPeers }, old.histories);
    this.#session = session;
    session.start().then(
      () => {
        this.#problem = null;
        this.#options.log('notice', 'joined the ROS 2 graph anew, because an address of this machine is gone');
      },
      (error: Error) => {
        if (this.#stopped) return;
        this.#problem = `cannot join the ROS 2 graph: ${error.message}`;
        this.#options.log('error', 'cannot join the ROS 2 graph; trying again', { error: error.message });
        this.#rejoinTimer = setTimeout(() => this.#rejoin(), REJOIN_AGAIN_MS);
      },
    );
  }
}
