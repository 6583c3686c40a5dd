import { type Api, ApiError, reasonOf } from '../model/api.ts';
import { type Connection, type ConnectionEvent, initialConnection, staleAfterMs, stepConnection } from '../model/connection.ts';
import { followEvents } from '../model/event-stream.ts';
import type { ServerEvent } from '../model/sse.ts';

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
    this.#reset();
    if (this.#connection.phase === 'connecting') void this.#connect();
  }

  /** After a pause, the page loads the present state instead of the events that it missed. */
  stop(): void {
    this.#attempt.abort();
    this.#lastEventId = '';
    this.#reset();
  }

  /** A page that needs a token still needs it after a pause. */
  #reset(): void {
    if (this.#connection.phase === 'locked') return;
    this.#connection = initialConnection(performance.now());
    this.#callbacks.onConnection(this.#connection, true);
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

  /** Follows the event stream until it fails, and dispatches the event that matches the cause. */
  async #connect(): Promise<void> {
    this.#attempt.abort();
    this.#attempt = new AbortController();
    const { signal } = this.#attempt;
    let isOpen = false;
    let hasEvents = false;
    try {
      await followEvents(
        this.#api,
        this.#lastEventId,
        {
          opened: () => {
            isOpen = true;
            this.dispatch({ kind: 'opened' });
            void this.#callbacks.load(signal).catch((error) => this.handleError(error, signal));
          },
          received: (events, lastEventId) => {
            if (signal.aborted) return;
            this.dispatch({ kind: 'received' });
            hasEvents ||= events.length > 0;
            for (const event of events) this.#callbacks.onEvent(event, signal);
            this.#lastEventId = lastEventId;
          },
        },
        signal,
      );
    } catch (error) {
      // The service ends a stream whose missed events it cannot read. The page loads the present state, so it can do without them.
      if (isOpen && !hasEvents) this.#lastEventId = '';
      this.handleError(error, signal);
    }
  }
}
