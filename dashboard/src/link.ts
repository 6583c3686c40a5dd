import { type Api, ApiError, reasonOf } from './api.ts';
import { type Connection, type ConnectionEvent, firstConnection, staleAfterMs, stepConnection } from './connection.ts';
import { type ServerEvent, SseParser } from './sse.ts';

/** What the page does as its link to the service goes on. Signals are those of one attempt, aborted when it is given up. */
export interface LinkTasks {
  /** `isSeen`: it says something else now, not only that something was received. */
  readonly onConnection: (connection: Connection, isSeen: boolean) => void;
  /** The stream is open: asks for everything that it does not tell. Rejects when there is no point in going on. */
  readonly load: (signal: AbortSignal) => Promise<void>;
  readonly onEvent: (event: ServerEvent, signal: AbortSignal) => void;
  /** No measurement comes: does the service measure nothing, or does it hang as a whole? */
  readonly probe: (signal: AbortSignal) => void;
  /** How often the machine is to publish. */
  readonly hertz: () => number;
}

/** A stream that ends sooner was not ended because it was old: the service goes away. */
const SHORTEST_STREAM_MS = 60_000;

/** Stays connected to /events. What is decided is decided by the connection's table; this class acts on it. */
export class Link {
  readonly #api: Api;
  readonly #tasks: LinkTasks;
  #connection = firstConnection(performance.now());
  #attempt = new AbortController();
  #lastEventId = '';

  constructor(api: Api, tasks: LinkTasks) {
    this.#api = api;
    this.#tasks = tasks;
  }

  /** Of the attempt that is under way. */
  get signal(): AbortSignal {
    return this.#attempt.signal;
  }

  /** Whether the stream is open and everything loaded. */
  get isUp(): boolean {
    const { phase } = this.#connection;
    return phase === 'live' || phase === 'stale';
  }

  start(): void {
    this.#connection = firstConnection(performance.now());
    this.#tasks.onConnection(this.#connection, true);
    void this.#connect();
  }

  stop(): void {
    this.#attempt.abort();
  }

  /** Something happened that the connection depends on. */
  tell(event: ConnectionEvent): void {
    const before = this.#connection;
    const connection = stepConnection(before, event, performance.now(), staleAfterMs(this.#tasks.hertz()));
    if (connection === before) return;
    this.#connection = connection;
    // Hearing something changes nothing that is shown.
    const isSeen = connection.phase !== before.phase;
    this.#tasks.onConnection(connection, isSeen);
    if (isSeen) this.#enter(connection);
  }

  /** A request failed in a way that ends the attempt it belongs to. */
  lost(error: unknown, signal: AbortSignal = this.signal): void {
    // What was given up on purpose, and what belongs to an attempt long over, says nothing about this one.
    if (signal.aborted || (error as Error).name === 'AbortError') return;
    if (error instanceof ApiError && error.status === 401) this.tell({ kind: 'refused' });
    else this.tell({ kind: 'failed', reason: reasonOf(error) });
  }

  #enter({ answers, phase }: Connection): void {
    switch (phase) {
      case 'connecting':
        void this.#connect();
        break;
      case 'waiting':
      case 'locked':
        this.#attempt.abort();
        break;
      case 'stale':
        if (!answers) this.#tasks.probe(this.signal);
        break;
      case 'loading':
      case 'live':
        break;
    }
  }

  /** Follows the event stream until it breaks off; whatever ends it is told to the connection's table. */
  async #connect(): Promise<void> {
    this.#attempt.abort();
    this.#attempt = new AbortController();
    const { signal } = this.#attempt;
    try {
      for (let isFirst = true; ; isFirst = false) {
        const openedMs = performance.now();
        const reader = await this.#api.events(this.#lastEventId, signal);
        if (isFirst) {
          this.tell({ kind: 'opened' });
          void this.#tasks.load(signal).catch((error) => this.lost(error, signal));
        }
        await this.#follow(reader, signal);
        if (signal.aborted) return;
        // The service ends a stream now and then; it goes on from the last event, and nothing else needs to be loaded.
        if (performance.now() - openedMs < SHORTEST_STREAM_MS) throw new ApiError(200, null);
      }
    } catch (error) {
      this.lost(error, signal);
    }
  }

  /** Resolves when the service has ended the stream. */
  async #follow(reader: ReadableStreamDefaultReader<Uint8Array>, signal: AbortSignal): Promise<void> {
    const parser = new SseParser(this.#lastEventId);
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (signal.aborted || done) return;
      this.tell({ kind: 'received' });
      for (const event of parser.push(decoder.decode(value, { stream: true }))) this.#tasks.onEvent(event, signal);
      this.#lastEventId = parser.lastEventId;
    }
  }
}
