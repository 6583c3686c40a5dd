import type { IncomingMessage } from 'node:http';
import { type RestClient, ServiceRefused } from '../../src/client/rest.ts';
import { type Alert, nodeOfAlertId, SEVERITIES } from '../../src/core/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { EventParser, type StreamEvent } from './event-parser.ts';
import { Notes } from './notes.ts';
import type { EventsSource, WatchListener } from './ports.ts';

export interface EventStreamOptions {
  readonly rest: RestClient;
  /** Whose statuses and alerts are told; those of others are left aside. */
  readonly node: string;
  /** How often a status is due. */
  readonly hertz: number;
  /** To go on from; null: from now on. */
  readonly lastEventId: string | null;
  readonly listener: WatchListener;
  readonly monotonicSeconds: () => number;
  /** How long no byte may come; without it, by `hertz`. */
  readonly silenceSeconds?: number;
}

/** Statuses that are overdue before a connection counts as dead. */
const PERIODS = 10;
/** At the least, whatever the rate: the service may wait for a slow disk. */
const MIN_SILENCE_SECONDS = 10;
/** At the most: the service says every 15 s that it is there. */
const MAX_SILENCE_SECONDS = 45;
/** A stream that ends sooner was not ended because it was old. */
const SHORTEST_STREAM_SECONDS = 60;
const FIRST_PAUSE_SECONDS = 0.5;
const MAX_PAUSE_SECONDS = 5;

/** Follows /events of the service: over breaks it goes on from the last event seen, so that nothing that was stored is missed. */
export class EventStream implements EventsSource {
  readonly #options: EventStreamOptions;
  readonly #silenceSeconds: number;
  readonly #notes: Notes;
  readonly #path: string;
  #lastEventId: string | null;
  #abort: AbortController | null = null;
  #following: Promise<void> | null = null;
  /** Since when there is no stream; null: there is one. */
  #awaySince: number | null = null;

  constructor(options: EventStreamOptions) {
    this.#options = options;
    this.#lastEventId = options.lastEventId;
    const due = PERIODS / options.hertz;
    this.#silenceSeconds = options.silenceSeconds ?? Math.min(MAX_SILENCE_SECONDS, Math.max(MIN_SILENCE_SECONDS, due));
    this.#notes = new Notes((text) => options.listener.onNote(text), options.monotonicSeconds);
    this.#path = `/events?events=health,alert&node=${encodeURIComponent(options.node)}`;
  }

  get lastEventId(): string | null {
    return this.#lastEventId;
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

  async #follow(signal: AbortSignal): Promise<void> {
    let pause = FIRST_PAUSE_SECONDS;
    while (!signal.aborted) {
      const openedSeconds = this.#options.monotonicSeconds();
      try {
        await this.#read(signal, () => {
          pause = FIRST_PAUSE_SECONDS;
        });
        // The service ends each stream after a while, to go on from the last event.
        if (this.#options.monotonicSeconds() - openedSeconds >= SHORTEST_STREAM_SECONDS) continue;
        this.#broke('the service ended it');
      } catch (error) {
        if (signal.aborted) return;
        if (this.#isPlaceRefused(error)) continue;
        this.#broke((error as Error).message);
      }
      await pauseFor(pause, signal);
      pause = Math.min(MAX_PAUSE_SECONDS, pause * 2);
    }
  }

  /** One connection, to its end. */
  async #read(signal: AbortSignal, onEvent: () => void): Promise<void> {
    const { rest } = this.#options;
    const headers = { Accept: 'text/event-stream', ...(this.#lastEventId === null ? {} : { 'Last-Event-ID': this.#lastEventId }) };
    const response = await rest.stream(this.#path, { headers, signal, timeoutSeconds: this.#silenceSeconds });
    const type = response.headers['content-type'] ?? 'no type';
    if (!type.startsWith('text/event-stream')) {
      response.destroy();
      throw new Error(`${rest.base}/events answers with ${type}: is it edge-health?`);
    }
    this.#isBack();
    const parser = new EventParser((event) => {
      onEvent();
      this.#take(event);
    });
    await ended(response, (text) => parser.take(text));
  }

  #take({ data, id, kind }: StreamEvent): void {
    if (id !== '') this.#lastEventId = id;
    const { listener, node } = this.#options;
    const found: unknown = parsed(data);
    if (kind === 'health' && isStatus(found)) {
      if (found.node_name === node) listener.onStatus('events', found);
    } else if (kind === 'alert' && isAlert(found)) {
      if (nodeOfAlertId(found.alert_id) === node) listener.onAlert('events', found);
    } else if (kind === 'health' || kind === 'alert') {
      this.#notes.note(`/events sent something that is no ${kind === 'alert' ? 'alert' : 'health status'}: ${data.slice(0, 100)}`);
    }
  }

  /** The service does not know the place to go on from any more, as after its data was removed: from now on, then. */
  #isPlaceRefused(error: unknown): boolean {
    const isRefused = error instanceof ServiceRefused && (error.status === 400 || error.status === 410) && this.#lastEventId !== null;
    if (!isRefused) return false;
    this.#notes.note(`/events cannot go on from ${this.#lastEventId}, and goes on from now: ${(error as Error).message}`);
    this.#lastEventId = null;
    return true;
  }

  #broke(why: string): void {
    if (this.#awaySince !== null) return;
    this.#awaySince = this.#options.monotonicSeconds();
    this.#notes.note(`the event stream broke off: ${why}`);
  }

  #isBack(): void {
    if (this.#awaySince === null) return;
    const seconds = this.#options.monotonicSeconds() - this.#awaySince;
    this.#awaySince = null;
    this.#notes.note(`the event stream is back after ${seconds.toFixed(1)} s`);
  }
}

/** Resolves at the end of a body that the other side ended; rejects when it broke off, or when `take` throws. */
function ended(response: IncomingMessage, take: (text: string) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    response.setEncoding('utf8');
    response.on('data', (text: string) => {
      try {
        take(text);
      } catch (error) {
        response.destroy(error as Error);
      }
    });
    response.once('end', resolve);
    response.once('error', reject);
    response.once('close', () => reject(new Error('the connection was closed')));
  });
}

function pauseFor(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, seconds * 1000);
    signal.addEventListener('abort', done);
    if (signal.aborted) done();
  });
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
