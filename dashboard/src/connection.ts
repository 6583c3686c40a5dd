/**
 * The connection to the service, as a table. Nothing here has a clock, a timer or a socket: the caller says what happened and
 * when, in milliseconds of a clock that never steps.
 *
 * connecting: the event stream was asked for. loading: it is open, and the API is being asked for the rest. live: measurements
 * arrive. stale: the service answers, but no measurement came for three periods. waiting: until the next attempt. locked:
 * until somebody enters a token.
 */
export type Phase = 'connecting' | 'loading' | 'live' | 'stale' | 'waiting' | 'locked';

export interface Connection {
  readonly phase: Phase;
  readonly sinceMs: number;
  /** Attempts that failed since a measurement last came. */
  readonly failures: number;
  /** When anything was last heard on the stream. */
  readonly receivedMs: number;
  /** When the last measurement was taken or came; null: there was none yet. */
  readonly measuredMs: number | null;
  /** Since it is stale, it has answered a request. */
  readonly answers: boolean;
  /** When waiting ends. */
  readonly retryMs: number;
  /** What the service itself said against it; null: it could not be reached, or went away. */
  readonly reason: string | null;
}

export type ConnectionEvent =
  | { readonly kind: 'opened' }
  /** The rest is loaded; the last measurement is this old, null: there is none. */
  | { readonly kind: 'loaded'; readonly ageMs: number | null }
  | { readonly kind: 'received' }
  | { readonly kind: 'measured' }
  /** A request beside the stream was answered. */
  | { readonly kind: 'answered' }
  | { readonly kind: 'failed'; readonly reason: string | null }
  /** A token is missing or wrong. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'token' }
  /** Somebody looks at the page again, or the network is back. */
  | { readonly kind: 'hurry' }
  | { readonly kind: 'tick' };

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 15_000;
/** For the answer to begin, and for everything to be loaded. */
const OPEN_WITHIN_MS = 10_000;
const LOAD_WITHIN_MS = 15_000;
/** The service sends a comment every 15 s. */
const QUIET_MS = 20_000;
const STALE_AFTER_PERIODS = 3;
/** What the network may add to three periods; and at high rates, where those pass in a blink, what it may take in all. */
const NETWORK_MS = 500;
const SHORTEST_STALE_MS = 2000;

/** How long no measurement may come before the last one no longer counts. */
export function staleAfterMs(hertz: number): number {
  return Math.max((STALE_AFTER_PERIODS * 1000) / hertz + NETWORK_MS, SHORTEST_STALE_MS);
}

/** 1, 2, 4, 8, 15, 15, … seconds. */
export function waitMs(failures: number): number {
  return Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(Math.max(0, failures - 1), 10));
}

export function firstConnection(nowMs: number): Connection {
  return {
    phase: 'connecting',
    sinceMs: nowMs,
    failures: 0,
    receivedMs: nowMs,
    measuredMs: null,
    answers: false,
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
  return { ...to(connection, 'waiting', nowMs), failures, reason, retryMs: nowMs + waitMs(failures) };
}

const failed: Handler<'failed'> = (connection, { reason }, nowMs) => fail(connection, reason, nowMs);
const refused: Handler<'refused'> = (connection, _event, nowMs) => to(connection, 'locked', nowMs);
const received: Handler<'received'> = (connection, _event, nowMs) => ({ ...connection, receivedMs: nowMs });
const measured = (connection: Connection, nowMs: number): Connection => ({ ...connection, receivedMs: nowMs, measuredMs: nowMs });

const isStale = ({ measuredMs }: Connection, nowMs: number, staleMs: number): boolean =>
  measuredMs === null || nowMs - measuredMs > staleMs;
const isQuiet = ({ receivedMs }: Connection, nowMs: number): boolean => nowMs - receivedMs > QUIET_MS;

/** Every transition there is; what is not listed changes nothing. */
const TABLE: Readonly<Record<Phase, Row>> = {
  connecting: {
    opened: (connection, _event, nowMs) => ({ ...to(connection, 'loading', nowMs), receivedMs: nowMs }),
    failed,
    refused,
    tick: (connection, _event, nowMs) => (nowMs - connection.sinceMs > OPEN_WITHIN_MS ? fail(connection, null, nowMs) : connection),
  },
  loading: {
    received,
    measured: (connection, _event, nowMs) => measured(connection, nowMs),
    loaded: (connection, { ageMs }, nowMs, staleMs) => {
      const toldMs = ageMs === null ? Number.NEGATIVE_INFINITY : nowMs - ageMs;
      const latestMs = Math.max(toldMs, connection.measuredMs ?? Number.NEGATIVE_INFINITY);
      const loaded = { ...connection, reason: null, answers: true, measuredMs: Number.isFinite(latestMs) ? latestMs : null };
      return to(loaded, isStale(loaded, nowMs, staleMs) ? 'stale' : 'live', nowMs);
    },
    failed,
    refused,
    tick: (connection, _event, nowMs) => (nowMs - connection.sinceMs > LOAD_WITHIN_MS ? fail(connection, null, nowMs) : connection),
  },
  live: {
    received,
    measured: (connection, _event, nowMs) => ({ ...measured(connection, nowMs), failures: 0 }),
    failed,
    refused,
    tick: (connection, _event, nowMs, staleMs) => {
      if (isQuiet(connection, nowMs)) return fail(connection, null, nowMs);
      return isStale(connection, nowMs, staleMs) ? { ...to(connection, 'stale', nowMs), answers: false } : connection;
    },
  },
  stale: {
    received,
    answered: (connection) => ({ ...connection, answers: true }),
    measured: (connection, _event, nowMs) => ({ ...to(measured(connection, nowMs), 'live', nowMs), failures: 0 }),
    failed,
    refused,
    tick: (connection, _event, nowMs) => (isQuiet(connection, nowMs) ? fail(connection, null, nowMs) : connection),
  },
  waiting: {
    hurry: (connection, _event, nowMs) => connect(connection, nowMs),
    tick: (connection, _event, nowMs) => (nowMs >= connection.retryMs ? connect(connection, nowMs) : connection),
  },
  locked: {
    token: (connection, _event, nowMs) => connect({ ...connection, failures: 0 }, nowMs),
  },
};

/** The connection after an event. `staleMs`: see staleAfterMs. */
export function stepConnection(connection: Connection, event: ConnectionEvent, nowMs: number, staleMs: number): Connection {
  const handler = TABLE[connection.phase][event.kind] as Handler<Kind> | undefined;
  return handler ? handler(connection, event, nowMs, staleMs) : connection;
}
