import type { Alert } from '../../core/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import type { Log } from '../../core/ports.ts';
import type { ShutdownProgress } from '../../core/shutdown.ts';
import { encode } from '../../rtps/cdr.ts';
import { rarely } from '../../rtps/log.ts';
import { diagnosticArray } from '../diagnostics.ts';
import { type GraphOptions, type RosDetails, type RosTransport, type ShutdownServer, sharedShutdownProblem } from '../graph.ts';
import { ALERT, DIAGNOSTIC_ARRAY, HEALTH_STATUS, SHUTDOWN_STATUS } from '../interfaces.generated.ts';
import { alertMessage, healthStatusMessage, shutdownStatusMessage } from '../messages.ts';
import { Arrivals } from './arrivals.ts';
import { type RclPlace, withRcl } from './library.ts';
import { Session, type TopicName } from './session.ts';

export interface RclnodejsOptions extends GraphOptions, RclPlace {
  /** Serves the safe shutdown in place of rclnodejs, whose service takes calls from everybody; null: rclnodejs does, if it is offered. */
  readonly shutdownServer: ShutdownServer | null;
  readonly spinMilliseconds?: number;
}

/** The executor wakes up twice a second when nothing happens; a message or a request wakes it at once. */
const SPIN_MS = 500;
/** /diagnostics goes out at most this often, whatever the publish frequency: people and aggregators look at it. */
const DIAGNOSTICS_SECONDS = 1;
/** How often the graph is looked at for topics and nodes that came or went. */
const LOOK_MS = 5000;
/** How often programs are looked for that ask for parameters: a person waits for them. */
const PARAMETER_LOOK_MS = 1000;
/** By then discovery has found who was there before. */
const FIRST_LOOK_MS = 1000;
const LOG_PERIOD_SECONDS = 60;
/** A node that was killed stays on the graph until its lease ends: only a twin that stays longer is one. */
const TWIN_LOOKS = 8;

/** Takes part in the ROS 2 graph through rcl and whatever middleware is set up, by way of rclnodejs. */
export class RclnodejsTransport implements RosTransport {
  readonly #options: RclnodejsOptions;
  readonly #log: Log;
  readonly #arrivals: Arrivals;
  #session: Session | null = null;
  #lookTimer: NodeJS.Timeout | null = null;
  #parameterTimer: NodeJS.Timeout | null = null;
  #diagnosticsSeconds = Number.NEGATIVE_INFINITY;
  #problem: string | null = null;
  #peers: number | null = null;
  #twinLooks = 0;
  #otherServers = 0;

  constructor(options: RclnodejsOptions) {
    this.#options = options;
    this.#log = rarely(options.log, options.monotonicSeconds, LOG_PERIOD_SECONDS);
    this.#arrivals = new Arrivals(options);
  }

  /** Loads rclnodejs and initialises rcl: to be called in a process whose environment is that of `environmentFor`. */
  async start(): Promise<void> {
    const spinMilliseconds = this.#options.spinMilliseconds ?? SPIN_MS;
    const options = { ...this.#options, log: this.#log, arrivals: this.#arrivals, spinMilliseconds };
    const hasShutdownServer = options.shutdownServer !== null;
    this.#session = await withRcl(this.#options, (library, context) => new Session(library, context, { ...options, hasShutdownServer }));
    await this.#options.shutdownServer?.start();
    this.#lookAfter(FIRST_LOOK_MS);
    if (!this.#isHumble) this.#parameterTimer = setInterval(() => this.#session?.lookForParameterClients(), PARAMETER_LOOK_MS).unref();
  }

  async stop(): Promise<void> {
    const session = this.#session;
    this.#session = null;
    if (this.#lookTimer) clearTimeout(this.#lookTimer);
    if (this.#parameterTimer) clearInterval(this.#parameterTimer);
    this.#options.shutdownServer?.stop();
    try {
      session?.stop();
    } catch (error) {
      this.#options.log('warning', 'rclnodejs did not stop cleanly', { error: (error as Error).message });
    }
  }

  publishHealth(status: HealthStatus): void {
    this.#arrivals.willReturnHealth(status);
    this.#publish('healthStatus', () => encode(HEALTH_STATUS, { ...healthStatusMessage(status) }));
    const now = this.#options.monotonicSeconds();
    if (now - this.#diagnosticsSeconds < DIAGNOSTICS_SECONDS * 0.99 || !this.#isHeard('diagnostics')) return;
    this.#diagnosticsSeconds = now;
    this.#publish('diagnostics', () => encode(DIAGNOSTIC_ARRAY, { ...diagnosticArray(status, this.#options.diagnostics()) }));
  }

  publishAlert(alert: Alert): void {
    this.#arrivals.willReturnAlert(alert);
    this.#publish('alerts', () => encode(ALERT, { ...alertMessage(alert) }));
  }

  publishShutdown(progress: ShutdownProgress): void {
    this.#publish('shutdownStatus', () => encode(SHUTDOWN_STATUS, { ...shutdownStatusMessage(progress) }));
  }

  get isObserving(): boolean {
    return this.#options.observe !== 'never';
  }

  observers(): null {
    return null;
  }

  details(): RosDetails {
    let subscribers: number | null = null;
    try {
      subscribers = this.#session?.subscriberCount('healthStatus') ?? null;
    } catch {
      // Not known.
    }
    const { names, shutdownServer } = this.#options;
    const { refused, problem } = this.#arrivals;
    return {
      peers: this.#peers,
      subscribers,
      refused,
      problem: this.#problem ?? shutdownServer?.problem ?? problem ?? sharedShutdownProblem(names, this.#otherServers),
    };
  }

  /** Whose rclnodejs cannot count services and clients. */
  get #isHumble(): boolean {
    return this.#options.prepared.distro === 'humble';
  }

  #isHeard(topic: TopicName): boolean {
    try {
      return (this.#session?.subscriberCount(topic) ?? 0) > 0;
    } catch {
      return false;
    }
  }

  /** The service goes on whatever the middleware says. */
  #publish(topic: TopicName, serialize: () => Buffer): void {
    if (!this.#session) return;
    try {
      this.#session.publish(topic, serialize());
    } catch (error) {
      this.#log('error', 'cannot publish through rclnodejs', { topic: this.#options.names.topics[topic], error: (error as Error).message });
    }
  }

  #lookAfter(milliseconds: number): void {
    this.#lookTimer = setTimeout(() => {
      this.#look();
      this.#lookAfter(LOOK_MS);
    }, milliseconds).unref();
  }

  #look(): void {
    const session = this.#session;
    if (!session) return;
    try {
      session.look();
      const { count, twins } = session.otherNodes();
      this.#peers = count;
      this.#noteTwins(twins);
      if (!this.#isHumble) this.#noteServers(session.otherServers());
    } catch (error) {
      this.#log('warning', 'cannot read the ROS 2 graph', { error: (error as Error).message });
    }
  }

  #noteServers(others: number): void {
    const { safeShutdown, ownSafeShutdown } = this.#options.names.services;
    if (others > 0 && this.#otherServers === 0)
      this.#options.log('warning', 'several machines offer the same safe shutdown', { service: safeShutdown, call: ownSafeShutdown });
    this.#otherServers = others;
  }

  #noteTwins([twin]: readonly string[]): void {
    this.#twinLooks = twin === undefined ? 0 : this.#twinLooks + 1;
    if (twin === undefined || this.#twinLooks < TWIN_LOOKS) this.#problem = null;
    else if (this.#problem === null) {
      this.#problem = `another node on the graph is named ${twin} too; set node_name or ros.namespace`;
      this.#options.log('warning', 'another node on the graph has the same name', { node: twin });
    }
  }
}
