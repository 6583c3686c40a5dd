/**
 * The states of the connection to the service, as a table without clock, timer or socket: the caller passes each event and its
 * time, in milliseconds of a monotonic clock.
 *
 * connecting: the event stream was requested. loading: the stream is open and the REST requests are in progress. live:
 * measurements arrive. stale: the stream is open, but no measurement arrived for three periods. waiting: the next attempt starts
 * at `retryMs`. locked: a token must be entered.
 */
export type Phase = 'connecting' | 'loading' | 'live' | 'stale' | 'waiting' | 'locked';

export interface Connection {
  readonly phase: Phase;
  readonly sinceMs: number;
  /** Failed attempts since the last measurement. */
  readonly failures: number;
  /** When the stream last delivered any bytes, heartbeat comments included. */
  readonly receivedMs: number;
  /** When the last measurement was taken or received; null: none so far. */
  readonly measuredMs: number | null;
  /** Whether a request has received a response since the connection became stale. */
  readonly isResponding: boolean;
  /** When the next attempt starts. */
  readonly retryMs: number;
  /** The error that the service returned; null: the service could not be reached, or the stream was interrupted. */
  readonly reason: string | null;
}

export type ConnectionEvent =
  | { readonly kind: 'opened' }
  /** The REST requests are complete. `ageMs`: age of the last measurement; null: there is none. */
  | { readonly kind: 'loaded'; readonly ageMs: number | null }
  | { readonly kind: 'received' }
  | { readonly kind: 'measured' }
  /** A REST request received a response. */
  | { readonly kind: 'answered' }
  | { readonly kind: 'failed'; readonly reason: string | null }
  /** A token is missing or wrong. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'token' }
  /** The page is visible again, or the network is back. */
  | { readonly kind: 'reconnect' }
  | { readonly kind: 'tick' };

const MIN_RETRY_DELAY_MS = 1000;
const MAX_RETRY_DELAY_MS = 15_000;
/** Limits for the response headers of the stream, and for the REST requests that follow. */
const OPEN_TIMEOUT_MS = 10_000;
const LOAD_TIMEOUT_MS = 15_000;
/** The service sends a comment every 15 s, so a longer pause means a lost connection. */
export const STREAM_TIMEOUT_MS = 20_000;
const STALE_AFTER_PERIODS = 3;
/** Allowance for network delay. At high rates, where three periods are short, MIN_STALE_MS applies instead. */
const NETWORK_MS = 500;
const MIN_STALE_MS = 2000;

/** A measurement older than this is stale. */
export function staleAfterMs(hertz: number): number {
  return Math.max((STALE_AFTER_PERIODS * 1000) / hertz + NETWORK_MS, MIN_STALE_MS);
}

/** 1, 2, 4, 8, 15, 15, … seconds. */
export function retryDelayMs(failures: number): number {
  return Math.min(MAX_RETRY_DELAY_MS, MIN_RETRY_DELAY_MS * 2 ** Math.min(Math.max(0, failures - 1), 10));
}

export function initialConnection(nowMs: number): Connection {
  return {
    phase: 'connecting',
    sinceMs: nowMs,
    failures: 0,
    receivedMs: nowMs,
    measuredMs: null,
    isResponding: false,
    retryMs: nowMs,
    reason: null,
  };
}

type Kind = ConnectionEvent['kind'];
type Handler<K extends Kind> = (
  connection: Connection,
  event: Extract<ConnectionEvent, { kind: K }>,
  nowMs: number,
  staleMs: number,
) => Connection;
type Row = { readonly [K in Kind]?: Handler<K> };

const to = (connection: Connection, phase: Phase, nowMs: number): Connection => ({ ...connection, phase, sinceMs: nowMs });

const connect = (connection: Connection, nowMs: number): Connection => ({ ...to(connection, 'connecting', nowMs), receivedMs: nowMs });

function fail(connection: Connection, reason: string | null, nowMs: number): Connection {
  const failures = connection.failures + 1;
  return { ...to(connection, 'waiting', nowMs), failures, reason, retryMs: nowMs + retryDelayMs(failures) };
}

const failed: Handler<'failed'> = (connection, { reason }, nowMs) => fail(connection, reason, nowMs);
const refused: Handler<'refused'> = (connection, _event, nowMs) => to(connection, 'locked', nowMs);
const received: Handler<'received'> = (connection, _event, nowMs) => ({ ...connection, receivedMs: nowMs });
const measured = (connection: Connection, nowMs: number): Connection => ({ ...connection, receivedMs: nowMs, measuredMs: nowMs });

const isStale = ({ measuredMs }: Connection, nowMs: number, staleMs: number): boolean =>
  measuredMs === null || nowMs - measuredMs > staleMs;
const isStreamTimedOut = ({ receivedMs }: Connection, nowMs: number): boolean => nowMs - receivedMs > STREAM_TIMEOUT_MS;

/** All transitions; an event that is not listed for a phase is ignored. */
const TABLE: Readonly<Record<Phase, Row>> = {
  connecting: {
    opened: (connection, _event, nowMs) => ({ ...to(connection, 'loading', nowMs), receivedMs: nowMs }),
    failed,
    refused,
    tick: (connection, _event, nowMs) => (nowMs - connection.sinceMs > OPEN_TIMEOUT_MS ? fail(connection, null, nowMs) : connection),
  },
  loading: {
    received,
    measured: (connection, _event, nowMs) => measured(connection, nowMs),
    loaded: (connection, { ageMs }, nowMs, staleMs) => {
      const reportedMs = ageMs === null ? Number.NEGATIVE_INFINITY : nowMs - ageMs;
      const latestMs = Math.max(reportedMs, connection.measuredMs ?? Number.NEGATIVE_INFINITY);
      const loaded = { ...connection, reason: null, isResponding: true, measuredMs: Number.isFinite(latestMs) ? latestMs : null };
      return to(loaded, isStale(loaded, nowMs, staleMs) ? 'stale' : 'live', nowMs);
    },
    failed,
    refused,
    tick: (connection, _event, nowMs) => (nowMs - connection.sinceMs > LOAD_TIMEOUT_MS ? fail(connection, null, nowMs) : connection),
  },
  live: {
    received,
    measured: (connection, _event, nowMs) => ({ ...measured(connection, nowMs), failures: 0 }),
    failed,
    refused,
    tick: (connection, _event, nowMs, staleMs) => {
      if (isStreamTimedOut(connection, nowMs)) return fail(connection, null, nowMs);
      return isStale(connection, nowMs, staleMs) ? { ...to(connection, 'stale', nowMs), isResponding: false } : connection;
    },
  },
  stale: {
    received,
    answered: (connection) => ({ ...connection, isResponding: true }),
    measured: (connection, _event, nowMs) => ({ ...to(measured(connection, nowMs), 'live', nowMs), failures: 0 }),
    failed,
    refused,
    tick: (connection, _event, nowMs) => (isStreamTimedOut(connection, nowMs) ? fail(connection, null, nowMs) : connection),
  },
  waiting: {
    reconnect: (connection, _event, nowMs) => connect(connection, nowMs),
    tick: (connection, _event, nowMs) => (nowMs >= connection.retryMs ? connect(connection, nowMs) : connection),
  },
  locked: {
    token: (connection, _event, nowMs) => connect({ ...connection, failures: 0 }, nowMs),
  },
};

/** Returns the connection after an event. `staleMs`: see staleAfterMs. */
export function stepConnection(connection: Connection, event: ConnectionEvent, nowMs: number, staleMs: number): Connection {
  const handler = TABLE[connection.phase][event.kind] as Handler<Kind> | undefined;
  return handler ? handler(connection, event, nowMs, staleMs) : connection;
}
