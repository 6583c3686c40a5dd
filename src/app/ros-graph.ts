import { type Alert, worstFirst } from '../core/alerts/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import { nullAfterTimeout } from '../core/platform/timeout.ts';
import type { Log, Publisher } from '../core/ports.ts';
import type { ShutdownProgress } from '../core/shutdown/shutdown.ts';
import { isoUtc, retryPauseMs } from '../core/time/time.ts';
import type { StatusDocument } from '../http/api/schema.ts';
import type { TransportChoice } from '../ros/choose.ts';
import { DEPTH, type RosTransport, TOPIC_DEPTH } from '../ros/graph.ts';
import type { PublishedAlerts } from './published-alerts.ts';

type RosState = StatusDocument['ros'];

export interface RosGraphOptions {
  /** The domain to join; null: none, and `choose` returns the reason. */
  readonly domainId: number | null;
  readonly choose: () => Promise<TransportChoice>;
  readonly create: (choice: TransportChoice) => Promise<RosTransport>;
  /** Whether the embedded participant takes over if rclnodejs fails. */
  readonly embeddedInstead: boolean;
  readonly published: Pick<PublishedAlerts, 'read' | 'has' | 'add' | 'flush'>;
  readonly wallMilliseconds: () => number;
  readonly log: Log;
}

/**
 * Interval of messages on /shutdown_status: `ros2 topic echo` queues five messages, and the steps of a procedure may follow each other
 * within milliseconds.
 */
const SHUTDOWN_PAUSE_MS = 50;
/** Delay of /open_alerts after a change, so that alerts that change together are published in one list. */
const OPEN_ALERTS_MS = 200;
/** Longest wait of an alert for the disk before it is published. */
const RECORD_SECONDS = 0.5;
/** How long resolutions from before the graph was joined are published in turn with open alerts, so that discovery is over by then. */
const MISSED_RESOLUTIONS_MS = 30_000;
/** Limit of the alerts on /open_alerts: those about as many nodes as are observed at most, in about 90 kB. */
const MAX_OPEN_ALERTS = 512;

interface Early {
  readonly health: HealthStatus[];
  readonly alerts: Alert[];
  readonly shutdown: ShutdownProgress[];
}

/** Connects this process to the ROS 2 graph. Monitoring never waits for it and continues without it. */
export class RosGraph implements Publisher {
  readonly #options: RosGraphOptions;
  #transport: RosTransport | null = null;
  #name: RosState['transport'] = 'off';
  #reason = 'not decided yet';
  /** Why the connection is off although the configuration enables it. */
  #offProblem: string | null = null;
  /** Messages published before the transport started; null: it has started, or none will. */
  #early: Early | null = { health: [], alerts: [], shutdown: [] };
  /** Messages handed to a transport; compared with the samples taken and those received by a subscriber, this locates losses. */
  #healthPublished = 0;
  #alertsPublished = 0;
  /**
   * Alerts that late subscribers must receive, in the order of their last publication: the open ones that this machine publishes and, for a
   * while after the graph was joined, resolutions of alerts that an earlier run has published.
   */
  readonly #held = new Map<string, Alert>();
  #openAlertsTimer: NodeJS.Timeout | null = null;
  /** Ids of the alerts in the last messages on /alerts, which a late subscriber receives. */
  readonly #recent: string[] = [];
  /** Time of the last status after which an open alert was published again. */
  #republished = '';
  /** Queued messages on /shutdown_status. */
  readonly #shutdownQueue: ShutdownProgress[] = [];
  #shutdownTimer: NodeJS.Timeout | null = null;
  #joining: Promise<void> | null = null;
  #retryTimer: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(options: RosGraphOptions) {
    this.#options = options;
  }

  /** Loads and returns the alerts that an earlier run has published and that subscribers may hold as open. */
  restore(): Alert[] {
    return this.#options.published.read();
  }

  /**
   * Records an alert before it is published for the first time, so that its resolution is published also if this process is killed in
   * between. Resolves once that is written, or after half a second.
   */
  async recordPublication(alert: Alert): Promise<void> {
    if (this.#transport) await nullAfterTimeout(RECORD_SECONDS, this.#options.published.add(alert));
  }

  /** Whether subscribers of /alerts may hold the alert as open. */
  hasPublished(id: string): boolean {
    return this.#options.published.has(id);
  }

  /** Begins to join; the result is logged and in `state`. */
  start(): void {
    this.#joining = this.#join().catch((error: Error) => this.#disable(error.message, true));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#retryTimer) clearTimeout(this.#retryTimer);
    await this.#joining;
    const transport = this.#transport;
    if (this.#shutdownTimer) clearTimeout(this.#shutdownTimer);
    if (this.#openAlertsTimer) this.#publishOpenAlerts();
    for (const progress of this.#shutdownQueue.splice(0)) transport?.publishShutdown(progress);
    this.#transport = null;
    await transport?.stop();
    await this.#options.published.flush();
  }

  /** Why this node, or its safe shutdown service, is not on the graph although the configuration enables it; null: it is, or is to be off. */
  get problem(): string | null {
    return this.#offProblem ?? this.#transport?.joinProblem ?? null;
  }

  state(): RosState {
    const details = this.#transport?.details();
    return {
      transport: this.#name,
      reason: this.#reason,
      domain_id: this.#transport ? this.#options.domainId : null,
      peers: details?.peers ?? null,
      subscribers: details?.subscribers ?? null,
      refused: details?.refused ?? 0,
      published: this.#transport ? { health_status: this.#healthPublished, alerts: this.#alertsPublished } : null,
      observing: this.#transport?.isObserving ?? false,
      observers: this.observers().slice(),
      problem: details?.problem ?? this.#offProblem,
      note: details?.note ?? null,
    };
  }

  /** Empty: not on the graph, or not yet. */
  observers(): readonly string[] {
    return this.#transport?.observers() ?? [];
  }

  publishHealth(status: HealthStatus): void {
    if (this.#transport) this.#handHealth(this.#transport, status);
    else keep(this.#early?.health, status, DEPTH);
    // A late subscriber receives fewer alerts than are open, so they are published again in turn, one per second.
    const second = status.timestamp.slice(0, 19);
    if (this.#held.size <= DEPTH || second === this.#republished) return;
    this.#republished = second;
    this.#republishOldest();
  }

  publishAlert(alert: Alert): void {
    this.#held.delete(alert.alert_id);
    if (!alert.resolved || (!this.#transport && this.hasPublished(alert.alert_id))) this.#held.set(alert.alert_id, alert);
    if (this.#transport) this.#handAlert(this.#transport, alert);
    else keep(this.#early?.alerts, alert, DEPTH);
    this.#republishHeld();
    if (this.#transport) this.#openAlertsTimer ??= setTimeout(() => this.#publishOpenAlerts(), OPEN_ALERTS_MS);
  }

  publishShutdown(progress: ShutdownProgress): void {
    if (this.#transport) {
      this.#shutdownQueue.push(progress);
      if (this.#shutdownTimer === null) this.#publishNextShutdown();
    } else keep(this.#early?.shutdown, progress, TOPIC_DEPTH.shutdownStatus);
  }

  async #join(): Promise<void> {
    const choice = await this.#options.choose();
    if (choice.transport === 'off') this.#disable(choice.reason, choice.fallback);
    else await this.#attempt(choice, 1);
  }

  /** Starts the transport. If that fails, starts embedded instead where it is allowed, otherwise repeats it with growing pauses. */
  async #attempt(choice: TransportChoice, number: number): Promise<void> {
    const { embeddedInstead, log } = this.#options;
    const problem = await this.#startAs(choice);
    if (problem === null || this.#stopped) return;
    const failed = `${choice.transport} could not be started: ${problem}`;
    if (choice.transport === 'rclnodejs' && embeddedInstead) {
      log('warning', failed);
      return this.#attempt({ ...choice, transport: 'embedded', reason: `${failed}; embedded instead`, fallback: true }, 1);
    }
    if (failed !== this.#offProblem) log('error', 'not on the ROS 2 graph; will retry', { reason: failed });
    this.#reason = failed;
    this.#offProblem = failed;
    this.#retryTimer = setTimeout(() => {
      this.#joining = this.#attempt(choice, number + 1);
    }, retryPauseMs(number));
  }

  /** Null: running; else the reason why not. */
  async #startAs(choice: TransportChoice): Promise<string | null> {
    if (this.#stopped) return null;
    let transport: RosTransport;
    try {
      transport = await this.#options.create(choice);
      await transport.start();
    } catch (error) {
      return (error as Error).message.split('\n')[0] ?? 'unknown';
    }
    this.#transport = transport;
    this.#name = choice.transport as RosState['transport'];
    this.#reason = choice.reason;
    this.#offProblem = null;
    const fields = { transport: choice.transport, reason: choice.reason, domain_id: this.#options.domainId };
    if (transport.joinProblem === null) this.#options.log(choice.fallback ? 'warning' : 'notice', 'on the ROS 2 graph', fields);
    this.#publishEarly(transport);
    return null;
  }

  #publishEarly(transport: RosTransport): void {
    const early = this.#early;
    this.#early = null;
    for (const status of early?.health ?? []) this.#handHealth(transport, status);
    for (const alert of early?.alerts ?? []) this.#handAlert(transport, alert);
    this.#republishHeld();
    this.#publishOpenAlerts();
    setTimeout(() => this.#releaseResolved(), MISSED_RESOLUTIONS_MS).unref();
    for (const progress of early?.shutdown ?? []) this.publishShutdown(progress);
  }

  /** Publishes an alert again, unchanged, that is no longer among the last messages, so that a late subscriber receives every open one. */
  #republishHeld(): void {
    while (this.#held.size <= DEPTH && this.#republishOldest());
  }

  #releaseResolved(): void {
    for (const [id, { resolved }] of this.#held) if (resolved) this.#held.delete(id);
  }

  /** False: all of them are still among the last messages. */
  #republishOldest(): boolean {
    const [oldest] = this.#held.values();
    if (!oldest || !this.#transport || this.#recent.includes(oldest.alert_id)) return false;
    this.#held.delete(oldest.alert_id);
    this.#held.set(oldest.alert_id, oldest);
    this.#handAlert(this.#transport, oldest);
    return true;
  }

  /** Publishes all open alerts in one message, the worst first; late subscribers receive the last one. */
  #publishOpenAlerts(): void {
    if (this.#openAlertsTimer) clearTimeout(this.#openAlertsTimer);
    this.#openAlertsTimer = null;
    const open = [...this.#held.values()].filter(({ resolved }) => !resolved).sort((a, b) => worstFirst(a.severity, b.severity));
    this.#transport?.publishOpenAlerts(open.slice(0, MAX_OPEN_ALERTS), isoUtc(this.#options.wallMilliseconds()));
  }

  #publishNextShutdown(): void {
    const progress = this.#shutdownQueue.shift();
    if (progress) this.#transport?.publishShutdown(progress);
    this.#shutdownTimer = progress ? setTimeout(() => this.#publishNextShutdown(), SHUTDOWN_PAUSE_MS) : null;
  }

  #handHealth(transport: RosTransport, status: HealthStatus): void {
    transport.publishHealth(status);
    this.#healthPublished += 1;
  }

  #handAlert(transport: RosTransport, alert: Alert): void {
    transport.publishAlert(alert);
    this.#alertsPublished += 1;
    keep(this.#recent, alert.alert_id, DEPTH);
    void this.#options.published.add(alert);
  }

  #disable(reason: string, isUnintended: boolean): void {
    this.#early = null;
    this.#reason = reason;
    if (isUnintended) this.#offProblem = reason;
    this.#options.log(isUnintended ? 'error' : 'notice', 'not on the ROS 2 graph', { reason });
  }
}

function keep<T>(kept: T[] | undefined, item: T, depth: number): void {
  if (!kept) return;
  kept.push(item);
  if (kept.length > depth) kept.shift();
}
