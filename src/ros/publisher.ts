import type { Alert } from '../core/alerts/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { ShutdownProgress } from '../core/shutdown/shutdown.ts';
import { encode } from '../rtps/wire/cdr.ts';
import { diagnosticArray } from './diagnostics.ts';
import type { GraphNames, GraphOptions } from './graph.ts';
import {
  ALERT,
  type AlertMessage,
  DIAGNOSTIC_ARRAY,
  HEALTH_STATUS,
  SHUTDOWN_STATUS,
  type ShutdownStatusMessage,
} from './interfaces.generated.ts';
import { healthStatusMessage } from './messages.ts';

export type PublishedTopic = keyof GraphNames['topics'];

/** Minimum time between two messages on /diagnostics at any publish frequency: its readers are people and aggregators. */
const DIAGNOSTICS_SECONDS = 1;

/** Base of both transports: the messages of the published topics as CDR, which a transport sends. */
export abstract class GraphPublisher {
  readonly #options: Pick<GraphOptions, 'diagnostics' | 'monotonicSeconds'>;
  #diagnosticsSeconds = Number.NEGATIVE_INFINITY;

  constructor(options: Pick<GraphOptions, 'diagnostics' | 'monotonicSeconds'>) {
    this.#options = options;
  }

  /** Does nothing while the transport is not on the graph. */
  protected abstract send(topic: PublishedTopic, message: Buffer): void;
  protected abstract hasSubscribers(topic: PublishedTopic): boolean;

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

  publishShutdown(progress: ShutdownProgress): void {
    const message: ShutdownStatusMessage = progress;
    this.send('shutdownStatus', encode(SHUTDOWN_STATUS, message));
  }
}
