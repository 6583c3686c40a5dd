import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { clientOf, isLocal, shareOf, type TurnQueue } from './context.ts';
import { Problem } from './problem.ts';
import { cutOff, sendRawResponse, stopParsing } from './raw-response.ts';

export type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/** Connections of this host beyond the maximum, so that remote clients cannot block local programs. */
const RESERVED_CONNECTIONS = 16;
/** Lower limit of the number of connections of one client. */
const LEAST_SHARE = 8;
/** Requests that may wait behind the one being served. Browsers do not pipeline; a client that sends more is disconnected. */
const MAX_WAITING = 64;
/** A client that reads nothing of a response for this long is dropped. */
export const WRITE_SECONDS = 20;
/** Fraction of WRITE_SECONDS between two regular checks of all connections. */
const CHECK_INTERVAL = 1 / 4;
/** Fraction of WRITE_SECONDS, the minimum between two checks caused by new connections. */
const MIN_CHECK_INTERVAL = 1 / 200;
/** After this fraction of WRITE_SECONDS, a client that reads nothing may be dropped in favour of a new connection. */
const STALLED = 1 / 10;
/** Limit of the unsent response data in this process. Above it, the clients that have not read for longest are dropped. */
const BUDGET_BYTES = 20 * 1024 * 1024;
/** Refused connections that are kept open until their response is sent; further ones are reset. */
const MAX_REFUSING = 16;

export interface ConnectionsOptions {
  readonly max: number;
  readonly serve: Serve;
  readonly turns: TurnQueue;
  /** Called with the response of a dropped client. */
  readonly onDrop?: (response: ServerResponse) => void;
  /** Smaller in tests. */
  readonly writeSeconds?: number;
  readonly budgetBytes?: number;
}

interface Connection {
  readonly socket: Socket;
  /** Null: this host. */
  readonly client: string | null;
  /** The response being sent; null: idle. */
  response: ServerResponse | null;
  /** Starts each of the requests that wait behind the current one. */
  readonly waiting: (() => void)[];
  /** The data that the response is made from, which stays in memory; several responses may share it. */
  held: { readonly body: object; readonly bytes: number } | null;
  /** Result of readProgress() at the last check. */
  progress: string;
  /** When `progress` last changed. */
  sinceMs: number;
}

/**
 * Bounds the number of connections and the memory that they use. Above the maximum, the connection idle for longest is closed, or else one
 * whose client has stopped reading, so that neither kind blocks new clients. A new connection is refused only if all others are being
 * served. The requests of one connection are served one after the other, so that pipelining does not multiply the memory of a connection.
 */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #all = new Map<Socket, Connection>();
  /** Connections without a request in progress, the longest idle first. */
  readonly #idle = new Set<Connection>();
  /** Number of connections of each client. */
  readonly #counts = new Map<string | null, number>();
  readonly #writeMs: number;
  #checkedMs = 0;
  #timer: NodeJS.Timeout | null = null;
  #refusing = 0;
  #evicted = 0;
  #dropped = 0;

  constructor(server: Server, options: ConnectionsOptions) {
    this.#options = options;
    this.#writeMs = (options.writeSeconds ?? WRITE_SECONDS) * 1000;
    this.add(server);
  }

  /** Serves the connections of a further server, within the same limits. */
  add(server: Server): void {
    server.on('connection', (socket) => this.#opened(socket));
    server.on('request', (request, response) => this.#requested(request, response));
    // A request with an unknown Expect header is served like any other.
    server.on('checkExpectation', (request, response) => this.#requested(request, response));
  }

  get count(): number {
    return this.#all.size;
  }

  /** Number of connections closed or refused because of the maximum. */
  get evicted(): number {
    return this.#evicted;
  }

  /** Number of connections closed because the client stopped reading, or because responses held too much memory. */
  get dropped(): number {
    return this.#dropped;
  }

  isBusy(socket: Socket): boolean {
    return this.#all.get(socket)?.response != null;
  }

  /** Records the data that the current response keeps in memory until it is sent. May drop other connections, or this one. */
  hold(socket: Socket, body: object, bytes: number): void {
    const connection = this.#all.get(socket);
    if (!connection) return;
    connection.held = { body, bytes };
    this.#enforceBudget();
  }

  #enforceBudget(): void {
    const { budgetBytes = BUDGET_BYTES } = this.#options;
    if (this.#heldBytes() <= budgetBytes) return;
    this.#checkThrottled();
    const unfinished = [...this.#all.values()].filter((one) => one.held !== null || unread(one) > 0);
    unfinished.sort((a, b) => a.sinceMs - b.sinceMs || size(b) - size(a));
    for (const one of unfinished) {
      if (this.#heldBytes() <= budgetBytes) return;
      this.#drop(one);
    }
  }

  #heldBytes(): number {
    const shared = new Map<object, number>();
    let bytes = 0;
    for (const one of this.#all.values()) {
      bytes += unread(one);
      if (one.held) shared.set(one.held.body, one.held.bytes);
    }
    return [...shared.values()].reduce((sum, more) => sum + more, bytes);
  }

  #opened(socket: Socket): void {
    const client = isLocal(socket) ? null : clientOf(socket);
    const connection: Connection = { socket, client, response: null, waiting: [], held: null, progress: '', sinceMs: performance.now() };
    this.#all.set(socket, connection);
    this.#idle.add(connection);
    this.#counts.set(client, this.#countOf(client) + 1);
    socket.once('close', () => this.#forget(connection));
    // If the server closed first, the kernel would keep unread data for minutes outside of any limit. The client therefore closes.
    socket.destroySoon = () => {
      socket.end();
      stopParsing(socket);
    };
    this.#timer ??= setInterval(() => {
      this.#check();
      this.#enforceBudget();
    }, this.#writeMs * CHECK_INTERVAL).unref();
    const { max } = this.#options;
    const share = shareOf(max, LEAST_SHARE);
    if (client !== null && this.#countOf(client) > share && !this.#evict(connection, (one) => one.client === client)) {
      this.#refuse(connection, `${client} has ${share} connections, the maximum for one client; close one`);
      return;
    }
    const reserved = Math.min(this.#countOf(null), RESERVED_CONNECTIONS);
    if (this.#all.size - reserved <= max) return;
    if (!this.#evict(connection, (one) => one.client !== null || this.#countOf(null) > RESERVED_CONNECTIONS))
      this.#refuse(connection, `all ${max} connections are being served; close one, or raise rest.max_connections`);
  }

  #countOf(client: string | null): number {
    return this.#counts.get(client) ?? 0;
  }

  /** Closes the connection idle for longest, or else stalled for longest, in favour of a new one; false: all are being served. */
  #evict(newcomer: Connection, may: (one: Connection) => boolean): boolean {
    const victim = [...this.#idle].find((one) => one !== newcomer && may(one)) ?? this.#longestStalled(may);
    if (!victim) return false;
    this.#evicted += 1;
    this.#close(victim);
    return true;
  }

  #longestStalled(may: (one: Connection) => boolean): Connection | undefined {
    this.#checkThrottled();
    const beforeMs = performance.now() - this.#writeMs * STALLED;
    const stalled = [...this.#all.values()].filter((one) => unread(one) > 0 && one.sinceMs <= beforeMs && may(one));
    return stalled.sort((a, b) => a.sinceMs - b.sinceMs)[0];
  }

  #refuse(connection: Connection, detail: string): void {
    const { socket } = connection;
    this.#evicted += 1;
    if (this.#refusing >= MAX_REFUSING) {
      this.#close(connection);
      return;
    }
    this.#forget(connection);
    this.#refusing += 1;
    socket.once('close', () => {
      this.#refusing -= 1;
    });
    sendRawResponse(socket, new Problem('too_many_connections', detail), 'Retry-After: 1\r\n');
  }

  /** Checks the connections, unless the last check was a moment ago: a check for each new connection would be too slow in a flood. */
  #checkThrottled(): void {
    if (performance.now() - this.#checkedMs > this.#writeMs * MIN_CHECK_INTERVAL) this.#check();
  }

  /** Updates the read progress of every connection and drops the clients that have stopped reading. */
  #check(): void {
    const nowMs = performance.now();
    this.#checkedMs = nowMs;
    for (const connection of this.#all.values()) {
      const progress = readProgress(connection.socket);
      const mustRead = unread(connection) > 0 || connection.socket.writableEnded;
      if (progress !== connection.progress || !mustRead) {
        connection.progress = progress;
        connection.sinceMs = nowMs;
      } else if (nowMs - connection.sinceMs >= this.#writeMs) this.#drop(connection);
    }
  }

  #drop(connection: Connection): void {
    this.#dropped += 1;
    this.#close(connection);
  }

  /** The connection is forgotten here and not on its close event, which comes later: the count must be exact at once. */
  #close(connection: Connection): void {
    const { response, socket } = connection;
    this.#forget(connection);
    if (response) this.#options.onDrop?.(response);
    cutOff(socket);
  }

  #forget(connection: Connection): void {
    if (!this.#all.delete(connection.socket)) return;
    this.#idle.delete(connection);
    connection.held = null;
    const remaining = this.#countOf(connection.client) - 1;
    if (remaining > 0) this.#counts.set(connection.client, remaining);
    else this.#counts.delete(connection.client);
    if (this.#all.size > 0 || !this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #requested(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#all.get(socket);
    if (!connection || !socket.writable) return; // The last response was already sent.
    const begin = (): void => {
      if (!socket.writable) return; // The client disconnected while the request waited.
      connection.response = response;
      connection.sinceMs = performance.now();
      response.once('close', () => this.#served(connection));
      this.#options.serve(request, response);
    };
    if (connection.response === null) {
      this.#idle.delete(connection);
      begin();
    } else if (connection.waiting.length < MAX_WAITING) {
      connection.waiting.push(begin);
    } else {
      this.#close(connection);
      stopParsing(socket);
    }
  }

  #served(connection: Connection): void {
    const { socket, waiting } = connection;
    connection.held = null;
    const next = socket.writable ? waiting.shift() : undefined;
    if (next) {
      // Requests of all connections share one turn queue. Otherwise thousands of them would delay the next sample.
      void this.#options.turns.next().then(next);
      return;
    }
    connection.response = null;
    if (this.#all.has(socket)) this.#idle.add(connection);
  }
}

/** Bytes in this process that the client of a connection has not read. */
function unread({ response, socket }: Connection): number {
  return response && !response.destroyed ? response.writableLength : socket.writableLength;
}

const size = (connection: Connection): number => Math.max(connection.held?.bytes ?? 0, unread(connection));

/** Changes whenever the kernel accepts more data, even within a single write: libuv queues the rest, whose size only the handle has. */
function readProgress(socket: Socket & { readonly _handle?: { readonly writeQueueSize?: number } | null }): string {
  return `${socket.bytesWritten - socket.writableLength} ${socket._handle?.writeQueueSize ?? 0}`;
}
