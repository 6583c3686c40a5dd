import type { Alert } from '../core/alerts/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { ShutdownProgress } from '../core/shutdown/shutdown.ts';
import { encode } from '../rtps/wire/cdr.ts';
import { diagnosticArray, stampOf } from './diagnostics.ts';
import type { GraphNames, GraphOptions, Sender } from './graph.ts';
import {
  ALERT,
  ALERT_ARRAY,
  type AlertArrayMessage,
  type AlertMessage,
  DIAGNOSTIC_ARRAY,
  HEALTH_STATUS,
  SHUTDOWN_STATUS,
  type ShutdownStatusMessage,
} from './interfaces.generated.ts';
import { healthStatusMessage } from './messages.ts';

type PublisherOptions = Pick<GraphOptions, 'diagnostics' | 'listener' | 'localNode' | 'log' | 'monotonicSeconds'>;

export type PublishedTopic = keyof GraphNames['topics'];

/** Minimum time between two messages on /diagnostics at any publish frequency: its readers are people and aggregators. */
const DIAGNOSTICS_SECONDS = 1;
/** What resolves a name conflict. The name is read at the start only. */
export const RENAME = 'set another node_name on one of the two machines, then: sudo systemctl restart edge-health';
/** How long a name conflict is reported after it was last detected. */
const CONFLICT_SECONDS = 60;

/** Base of both transports: the messages of the published topics as CDR, which a transport sends, and the conflict of names. */
export abstract class GraphPublisher {
  readonly #options: PublisherOptions;
  #diagnosticsSeconds = Number.NEGATIVE_INFINITY;
  #conflictSeconds = Number.NEGATIVE_INFINITY;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  /** Does nothing while the transport is not on the graph. */
  protected abstract send(topic: PublishedTopic, message: Buffer): void;
  protected abstract hasSubscribers(topic: PublishedTopic): boolean;

  /**
   * To be called when another monitor with this one's name was found. Its statuses show it; alerts do not, because observers raise alerts
   * about this node and relays repeat those of an earlier run.
   */
  protected reportConflict(sender: Sender | null, topic?: string): void {
    const { listener, localNode, log } = this.#options;
    if (this.conflictProblem === null) {
      log('warning', 'another monitor on the graph has the same name; give each its own node_name', {
        node_name: localNode,
        address: sender?.address,
        topic,
      });
    }
    listener.onOwnName?.(sender);
    this.#conflictSeconds = this.#options.monotonicSeconds();
  }

  /** The problem that another monitor publishes under this one's name; null: none does. */
  protected get conflictProblem(): string | null {
    if (this.#options.monotonicSeconds() - this.#conflictSeconds >= CONFLICT_SECONDS) return null;
    return `another monitor on the graph is also named ${this.#options.localNode}; ${RENAME}`;
  }

  publishHealth(status: HealthStatus): void {
    this.send('healthStatus', encode(HEALTH_STATUS, healthStatusMessage(status)));
    const now = this.#options.monotonicSeconds();
    if (now - this.#diagnosticsSeconds < DIAGNOSTICS_SECONDS * 0.99 || !this.hasSubscribers('diagnostics')) return;
    this.#diagnosticsSeconds = now;
    this.send('diagnostics', encode(DIAGNOSTIC_ARRAY, diagnosticArray(status, this.#options.diagnostics())));
  }

  publishAlert(alert: Alert): void {
    const message: AlertMessage = alert;
    this.send('alerts', encode(ALERT, message));
  }

  publishOpenAlerts(alerts: readonly Alert[], timestamp: string): void {
    const message: AlertArrayMessage = { stamp: stampOf(timestamp), node_name: this.#options.localNode, alerts };
    this.send('openAlerts', encode(ALERT_ARRAY, message));
  }

  publishShutdown(progress: ShutdownProgress): void {
    const message: ShutdownStatusMessage = progress;
    this.send('shutdownStatus', encode(SHUTDOWN_STATUS, message));
  }
}
