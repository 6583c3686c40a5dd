import type { Alert } from '../../core/alerts/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import { type Appliance, observersOf } from '../../core/observer.ts';
import { rateLimited } from '../../core/platform/log.ts';
import type { Log } from '../../core/ports.ts';
import { type GraphOptions, type RosDetails, type RosTransport, type ShutdownServer, sharedShutdownNote } from '../graph.ts';
import { GraphPublisher, type PublishedTopic, RENAME } from '../publisher.ts';
import { Arrivals } from './arrivals.ts';
import { FIRST_SCAN_MS, SCAN_MS, SPIN_MS } from './follower.ts';
import { type RclOptions, withRcl } from './library.ts';
import { Session } from './session.ts';

export interface RclnodejsOptions extends GraphOptions, RclOptions {
  /** Serves the safe shutdown instead of rclnodejs, whose service cannot identify callers; null: rclnodejs does, if it is offered. */
  readonly shutdownServer: ShutdownServer | null;
  readonly spinMilliseconds?: number;
}

/** Period of scans for nodes that left, and for clients of parameter services, short because a person is waiting. */
const SHORT_SCAN_MS = 1000;
/**
 * A node that disappears from the graph within this time after a status has left. One that vanishes disappears when the lease of its
 * participant ends: after at least ten seconds without a datagram (Cyclone DDS; Fast DDS and the embedded participant: twenty).
 */
const LEFT_SECONDS = 8;
/** Number of consecutive scans that must find a duplicate node: one that was killed stays on the graph until its lease ends. */
const DUPLICATE_SCANS = 8;

/** Joins the ROS 2 graph through rclnodejs, rcl and the configured middleware. */
export class RclnodejsTransport extends GraphPublisher implements RosTransport {
  readonly #options: RclnodejsOptions;
  readonly #log: Log;
  readonly #arrivals: Arrivals;
  #session: Session | null = null;
  #scanTimer: NodeJS.Timeout | null = null;
  #shortScanTimer: NodeJS.Timeout | null = null;
  /** This transport always observes, without an election, so `auto` is announced as `always`. */
  readonly #appliance: Appliance;
  #observers: readonly string[] = [];
  /** Time of the last status of each node on the graph, by `node_name`; negative infinity: none was received. */
  readonly #lastStatusSeconds = new Map<string, number>();
  #problem: string | null = null;
  #peers: number | null = null;
  #duplicateScans = 0;
  #otherServers = 0;

  constructor(options: RclnodejsOptions) {
    super(options);
    this.#options = options;
    const { listener, localNode, monotonicSeconds, observe } = options;
    this.#log = rateLimited(options.log, monotonicSeconds);
    this.#appliance = { name: localNode, mode: observe === 'auto' ? 'always' : observe };
    this.#arrivals = new Arrivals({
      localNode,
      log: this.#log,
      listener: {
        // rcl does not reveal the publisher of a serialized message.
        onHealthStatus: (status) => {
          if (this.#lastStatusSeconds.has(status.node_name)) this.#lastStatusSeconds.set(status.node_name, monotonicSeconds());
          listener.onHealthStatus(status, null);
        },
        onAlert: (alert) => listener.onAlert(alert, null),
        onConflict: (topic) => this.reportConflict(null, topic),
      },
    });
  }

  /** Loads rclnodejs and initializes rcl. The process must have the environment of `environmentFor`. */
  async start(): Promise<void> {
    const spinMilliseconds = this.#options.spinMilliseconds ?? SPIN_MS;
    const options = { ...this.#options, log: this.#log, appliance: this.#appliance, arrivals: this.#arrivals, spinMilliseconds };
    const hasShutdownServer = options.shutdownServer !== null;
    this.#session = await withRcl(this.#options, (library, context) => new Session(library, context, { ...options, hasShutdownServer }));
    await this.#options.shutdownServer?.start();
    this.#scanAfter(FIRST_SCAN_MS);
    this.#shortScanTimer = setInterval(() => {
      if (this.isObserving) this.#read((session) => this.#scanNodes(session));
      if (!this.#isHumble) this.#session?.scanParameterClients();
    }, SHORT_SCAN_MS).unref();
  }

  async stop(): Promise<void> {
    const session = this.#session;
    this.#session = null;
    if (this.#scanTimer) clearTimeout(this.#scanTimer);
    if (this.#shortScanTimer) clearInterval(this.#shortScanTimer);
    this.#options.shutdownServer?.stop();
    try {
      session?.stop();
    } catch (error) {
      this.#options.log('warning', 'rclnodejs did not stop cleanly', { error: (error as Error).message });
    }
  }

  override publishHealth(status: HealthStatus): void {
    this.#arrivals.addSentHealth(status);
    super.publishHealth(status);
  }

  override publishAlert(alert: Alert): void {
    this.#arrivals.addSentAlert(alert);
    super.publishAlert(alert);
  }

  get isObserving(): boolean {
    return this.#options.observe !== 'never';
  }

  observers(): readonly string[] {
    return this.#observers;
  }

  get joinProblem(): string | null {
    return this.#options.shutdownServer?.problem ?? null;
  }

  details(): RosDetails {
    let subscribers: number | null = null;
    try {
      subscribers = this.#session?.subscriberCount('healthStatus') ?? null;
    } catch {
      // The count is not available.
    }
    const { names } = this.#options;
    return {
      peers: this.#peers,
      subscribers,
      refused: this.#arrivals.refused,
      problem: this.joinProblem ?? this.#problem ?? this.conflictProblem,
      note: sharedShutdownNote(names, this.#otherServers),
    };
  }

  /** In Humble, rclnodejs cannot count services and clients. */
  get #isHumble(): boolean {
    return this.#options.prepared.distro === 'humble';
  }

  protected hasSubscribers(topic: PublishedTopic): boolean {
    try {
      return (this.#session?.subscriberCount(topic) ?? 0) > 0;
    } catch {
      return false;
    }
  }

  /** An error of the middleware is logged and must not stop the service. */
  protected send(topic: PublishedTopic, message: Buffer): void {
    try {
      if (topic === 'shutdownStatus' && this.#options.shutdownServer) this.#options.shutdownServer.publish(message);
      else this.#session?.publish(topic, message);
    } catch (error) {
      this.#log('error', 'cannot publish through rclnodejs', { topic: this.#options.names.topics[topic], error: (error as Error).message });
    }
  }

  #scanAfter(milliseconds: number): void {
    this.#scanTimer = setTimeout(() => {
      this.#scan();
      this.#scanAfter(SCAN_MS);
    }, milliseconds).unref();
  }

  #scan(): void {
    this.#read((session) => {
      session.scan();
      const others = session.appliances().filter(({ name }) => name !== this.#appliance.name);
      this.#observers = observersOf([this.#appliance, ...others]);
      const { count, duplicates } = session.otherNodes();
      this.#peers = count;
      this.#setDuplicates(duplicates);
      if (!this.#isHumble) this.#setOtherServers(session.otherServers());
    });
  }

  /** Reports the nodes that have left the graph since the last scan. */
  #scanNodes(session: Session): void {
    const { listener, monotonicSeconds } = this.#options;
    const present = new Set(session.nodePaths().map((path) => path.slice(1)));
    for (const [name, seconds] of this.#lastStatusSeconds) {
      if (present.has(name)) continue;
      this.#lastStatusSeconds.delete(name);
      if (monotonicSeconds() - seconds < LEFT_SECONDS) listener.onPublisherGone?.(name, null, true);
    }
    for (const name of present) if (!this.#lastStatusSeconds.has(name)) this.#lastStatusSeconds.set(name, Number.NEGATIVE_INFINITY);
  }

  #read(graph: (session: Session) => void): void {
    if (!this.#session) return;
    try {
      graph(this.#session);
    } catch (error) {
      this.#log('warning', 'cannot read the ROS 2 graph', { error: (error as Error).message });
    }
  }

  #setOtherServers(others: number): void {
    const { safeShutdown, ownSafeShutdown } = this.#options.names.services;
    if (others > 0 && this.#otherServers === 0)
      this.#options.log('notice', 'several machines offer the same safe shutdown service', {
        service: safeShutdown,
        call: ownSafeShutdown,
      });
    this.#otherServers = others;
  }

  #setDuplicates([duplicate]: readonly string[]): void {
    this.#duplicateScans = duplicate === undefined ? 0 : this.#duplicateScans + 1;
    if (duplicate === undefined || this.#duplicateScans < DUPLICATE_SCANS) this.#problem = null;
    else if (this.#problem === null) {
      this.#problem = `another node on the graph is also named ${duplicate}; ${RENAME}`;
      this.#options.log('warning', 'another node on the graph has the same name', { node: duplicate });
    }
  }
}
