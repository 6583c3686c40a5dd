import { followEvents, type ServerEvent } from '../../src/client/event-stream.ts';
import type { RestClient } from '../../src/client/rest.ts';
import { type Alert, nodeOfAlertId, SEVERITIES } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { rateLimited } from '../../src/core/platform/log.ts';
import type { Channel } from '../record/entries.ts';

/** Receives statuses and alerts of the observed node from the topic and the event stream; those of other nodes are ignored. */
export interface SourceListener {
  onStatus(channel: Channel, status: HealthStatus): void;
  onAlert(channel: Channel, alert: Alert): void;
  /** Receives information for the report, such as an interrupted stream; the same text arrives at most once a minute. */
  onNote(text: string): void;
}

export interface EventsSourceOptions {
  readonly rest: RestClient;
  /** The node whose statuses and alerts are reported; those of other nodes are ignored. */
  readonly node: string;
  /** Statuses per second. */
  readonly hertz: number;
  readonly listener: SourceListener;
  readonly monotonicSeconds: () => number;
  /** A connection without data for this long is closed; the default depends on `hertz`. */
  readonly dataTimeoutSeconds?: number;
}

/** A connection is closed after this many missing statuses. */
const PERIODS = 10;
/** The shortest timeout at any rate, because the service may wait for a slow disk. */
const MIN_TIMEOUT_SECONDS = 10;
/** The longest timeout. The service sends a comment every 15 s. */
const MAX_TIMEOUT_SECONDS = 45;
/** The service ends a stream after 15 minutes and at its own end. A stream that ends earlier than this was interrupted. */
const SHORTEST_STREAM_SECONDS = 60;
const MIN_PAUSE_MS = 500;
const MAX_PAUSE_MS = 5000;

/** Follows /events of the service. After an interruption, it resumes after the last received event, so that no stored event is missed. */
export class EventsSource {
  readonly #options: EventsSourceOptions;
  readonly #dataTimeoutSeconds: number;
  readonly #note: (text: string) => void;
  /** Null to start with the next event. */
  #lastEventId: string | null = null;
  #abort: AbortController | null = null;
  #following: Promise<void> | null = null;
  /** Null while the stream is open. */
  #interruptedSince: number | null = null;

  constructor(options: EventsSourceOptions) {
    this.#options = options;
    const due = PERIODS / options.hertz;
    this.#dataTimeoutSeconds = options.dataTimeoutSeconds ?? Math.min(MAX_TIMEOUT_SECONDS, Math.max(MIN_TIMEOUT_SECONDS, due));
    const log = rateLimited((_level, text) => options.listener.onNote(text), options.monotonicSeconds);
    this.#note = (text) => log('notice', text);
  }

  async start(): Promise<void> {
    if (this.#abort) return;
    this.#abort = new AbortController();
    this.#following = this.#follow(this.#abort.signal);
  }

  async stop(): Promise<void> {
    this.#abort?.abort();
    await this.#following;
    this.#abort = null;
  }

  #follow(signal: AbortSignal): Promise<void> {
    const { monotonicSeconds, node, rest } = this.#options;
    let startedSeconds = 0;
    return followEvents({
      rest,
      path: `/events?events=health,alert&node=${encodeURIComponent(node)}`,
      signal,
      dataTimeoutSeconds: this.#dataTimeoutSeconds,
      minPauseMs: MIN_PAUSE_MS,
      maxPauseMs: MAX_PAUSE_MS,
      lastEventId: () => {
        startedSeconds = monotonicSeconds();
        return this.#lastEventId;
      },
      onOpen: () => this.#restored(),
      onEvent: (event) => this.#take(event),
      onCursorLost: ({ message }) => {
        this.#note(`/events cannot resume after ${this.#lastEventId}, continuing with new events: ${message}`);
        this.#lastEventId = null;
      },
      onClose: (error) => {
        if (error || monotonicSeconds() - startedSeconds < SHORTEST_STREAM_SECONDS)
          this.#interrupted(error?.message ?? 'the service ended it');
      },
    });
  }

  #take({ data, event, id }: ServerEvent): void {
    if (id !== null) this.#lastEventId = id;
    const { listener, node } = this.#options;
    const found: unknown = parsed(data);
    if (event === 'health' && isStatus(found)) {
      if (found.node_name === node) listener.onStatus('events', found);
    } else if (event === 'alert' && isAlert(found)) {
      if (nodeOfAlertId(found.alert_id) === node) listener.onAlert('events', found);
    } else if (event === 'health' || event === 'alert') {
      this.#note(`/events sent something that is no ${event === 'alert' ? 'alert' : 'health status'}: ${data.slice(0, 100)}`);
    }
  }

  #interrupted(reason: string): void {
    if (this.#interruptedSince !== null) return;
    this.#interruptedSince = this.#options.monotonicSeconds();
    this.#note(`the event stream was interrupted: ${reason}`);
  }

  #restored(): void {
    if (this.#interruptedSince === null) return;
    const seconds = this.#options.monotonicSeconds() - this.#interruptedSince;
    this.#interruptedSince = null;
    this.#note(`the event stream is back after ${seconds.toFixed(1)} s`);
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}

function isStatus(value: unknown): value is HealthStatus {
  const { node_name, timestamp } = (value ?? {}) as Partial<Record<keyof HealthStatus, unknown>>;
  return typeof node_name === 'string' && typeof timestamp === 'string' && !Number.isNaN(Date.parse(timestamp));
}

function isAlert(value: unknown): value is Alert {
  const { alert_id, metric, resolved, severity, timestamp } = (value ?? {}) as Partial<Record<keyof Alert, unknown>>;
  const texts = [alert_id, metric, timestamp].every((text) => typeof text === 'string');
  return texts && typeof resolved === 'boolean' && SEVERITIES.some((known) => known === severity);
}
