import { type Api, ApiError, reasonOf } from '../model/api.ts';
import { type Connection, type ConnectionEvent, initialConnection, staleAfterMs, stepConnection } from '../model/connection.ts';
import { type ServerEvent, SseParser } from '../model/sse.ts';

/** Callbacks of the link. Each signal belongs to one attempt and is aborted when that attempt ends. */
export interface LinkCallbacks {
  /** `isPhaseChange`: false if only the time of the last byte or measurement has changed, which the page does not show. */
  readonly onConnection: (connection: Connection, isPhaseChange: boolean) => void;
  /** Loads what the stream does not carry, once it is open. Rejects on an error that ends the attempt. */
  readonly load: (signal: AbortSignal) => Promise<void>;
  readonly onEvent: (event: ServerEvent, signal: AbortSignal) => void;
  /** Sends a request while no measurements arrive, to distinguish a service that does not measure from one that hangs. */
  readonly probe: (signal: AbortSignal) => void;
  /** Configured publish rate of the local node. */
  readonly hertz: () => number;
}

/** The service closes old streams on purpose; a stream that ends sooner than this means that the service is shutting down. */
const MIN_STREAM_MS = 60_000;

/** Stays connected to /events. The table in connection.ts decides each transition; this class carries it out. */
export class Link {
  readonly #api: Api;
  readonly #callbacks: LinkCallbacks;
  #connection = initialConnection(performance.now());
  #attempt = new AbortController();
  #lastEventId = '';

  constructor(api: Api, callbacks: LinkCallbacks) {
    this.#api = api;
    this.#callbacks = callbacks;
  }

  /** Signal of the current attempt. */
  get signal(): AbortSignal {
    return this.#attempt.signal;
  }

  /** Whether the stream is open and everything loaded. */
  get isUp(): boolean {
    const { phase } = this.#connection;
    return phase === 'live' || phase === 'stale';
  }

  start(): void {
    this.#connection = initialConnection(performance.now());
    this.#callbacks.onConnection(this.#connection, true);
    void this.#connect();
  }

  stop(): void {
    this.#attempt.abort();
  }

  /** Applies an event to the connection and acts on a change of phase. */
  dispatch(event: ConnectionEvent): void {
    const before = this.#connection;
    const connection = stepConnection(before, event, performance.now(), staleAfterMs(this.#callbacks.hertz()));
    if (connection === before) return;
    this.#connection = connection;
    const isPhaseChange = connection.phase !== before.phase;
    this.#callbacks.onConnection(connection, isPhaseChange);
    if (isPhaseChange) this.#enter(connection);
  }

  /** Ends the attempt that `signal` belongs to. */
  handleError(error: unknown, signal: AbortSignal = this.signal): void {
    // Errors of an aborted or earlier attempt do not concern the current one.
    if (signal.aborted || (error as Error).name === 'AbortError') return;
    if (error instanceof ApiError && error.status === 401) this.dispatch({ kind: 'refused' });
    else this.dispatch({ kind: 'failed', reason: reasonOf(error) });
  }

  #enter({ isResponding, phase }: Connection): void {
    switch (phase) {
      case 'connecting':
        void this.#connect();
        break;
      case 'waiting':
      case 'locked':
        this.#attempt.abort();
        break;
      case 'stale':
        if (!isResponding) this.#callbacks.probe(this.signal);
        break;
      case 'loading':
      case 'live':
        break;
    }
  }

  /** Reads the event stream until it ends, and dispatches the event that matches the cause. */
  async #connect(): Promise<void> {
    this.#attempt.abort();
    this.#attempt = new AbortController();
    const { signal } = this.#attempt;
    try {
      for (let isFirst = true; ; isFirst = false) {
        const openedMs = performance.now();
        const reader = await this.#api.openEventStream(this.#lastEventId, signal);
        if (isFirst) {
          this.dispatch({ kind: 'opened' });
          void this.#callbacks.load(signal).catch((error) => this.handleError(error, signal));
        }
        await this.#follow(reader, signal);
        if (signal.aborted) return;
        // The service closes old streams; the next one resumes after the last event, so nothing has to be loaded again.
        if (performance.now() - openedMs < MIN_STREAM_MS) throw new ApiError(200, null);
      }
    } catch (error) {
      this.handleError(error, signal);
    }
  }

  /** Resolves when the service closes the stream or the attempt is aborted. */
  async #follow(reader: ReadableStreamDefaultReader<Uint8Array>, signal: AbortSignal): Promise<void> {
    const parser = new SseParser(this.#lastEventId);
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (signal.aborted || done) return;
      this.dispatch({ kind: 'received' });
      for (const event of parser.push(decoder.decode(value, { stream: true }))) this.#callbacks.onEvent(event, signal);
      this.#lastEventId = parser.lastEventId;
    }
  }
}
