import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { shareReads } from '../core/platform/shared-read.ts';
import type { TurnQueue } from './context.ts';
import { Problem } from './problem.ts';
import { cutOff, sendRawResponse, stopParsing } from './raw-response.ts';
import { type Client, type Clients, clientByAddress, type FindUsers, Shares, userClient } from './shares.ts';

export type Serve = (request: IncomingMessage, response: ServerResponse) => void;

const LIMITS = { leastShare: 8, reserved: 16, perUser: 4 } as const;
/** Connections of this host beyond the limits that wait until their users are known; further ones are refused. */
const MAX_UNDECIDED = 256;
/** Minimum time between two lookups of users. */
const LOOKUP_PAUSE_MS = 250;
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
  readonly findUsers: FindUsers;
  /** Called with the response of a dropped client. */
  readonly onDrop?: (response: ServerResponse) => void;
  /** Smaller in tests. */
  readonly writeSeconds?: number;
  readonly budgetBytes?: number;
}

interface Connection {
  readonly socket: Socket;
  client: Client;
  /** Whether it waits until its user is known. Until then it does not count, and no request of it is served. */
  isUndecided: boolean;
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
export class Connections implements Clients {
  readonly #options: ConnectionsOptions;
  readonly #all = new Map<Socket, Connection>();
  /** Connections without a request in progress, the longest idle first. */
  readonly #idle = new Set<Connection>();
  readonly #shares: Shares;
  #undecided = 0;
  readonly #writeMs: number;
  #checkedMs = 0;
  #timer: NodeJS.Timeout | null = null;
  #refusing = 0;
  #evicted = 0;
  #dropped = 0;

  constructor(server: Server, options: ConnectionsOptions) {
    this.#options = options;
    this.#shares = new Shares({ ...LIMITS, max: options.max });
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
    return this.#all.size - this.#undecided;
  }

  clientOf(socket: Socket): Client {
    return this.#all.get(socket)?.client ?? clientByAddress(socket);
  }

  readonly lookUpUsers = shareReads(async () => {
    const unknown = [...this.#all.values()].filter(({ client }) => client === null);
    const users = await this.#options.findUsers(unknown.map(({ socket }) => socket));
    for (const [index, connection] of unknown.entries()) {
      const isCounted = this.#all.has(connection.socket) && !connection.isUndecided;
      if (isCounted) this.#shares.add(connection.client, -1);
      connection.client = userClient(users[index] ?? null);
      if (isCounted) this.#shares.add(connection.client);
    }
  }, LOOKUP_PAUSE_MS);

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
    const connection: Connection = {
      socket,
      client: clientByAddress(socket),
      isUndecided: false,
      response: null,
      waiting: [],
      held: null,
      progress: '',
      sinceMs: performance.now(),
    };
    this.#all.set(socket, connection);
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
    if (!this.#shares.needsUser(connection.client)) this.#decide(connection);
    // Another one of a user not known either makes way, as long as there is an idle one.
    else if (this.#evict(connection, (one) => one.client === null)) this.#count(connection);
    else if (this.#undecided < MAX_UNDECIDED) void this.#decideLater(connection);
    else {
      this.#count(connection);
      this.#refuse(connection, `${MAX_UNDECIDED} connections of this host wait to be accepted; try again`);
    }
  }

  /** Decides about a connection of this host once its user is known. */
  async #decideLater(connection: Connection): Promise<void> {
    connection.isUndecided = true;
    this.#undecided += 1;
    await this.lookUpUsers();
    if (!connection.isUndecided) return; // It was closed.
    connection.isUndecided = false;
    this.#undecided -= 1;
    if (!this.#decide(connection)) return;
    const begin = connection.waiting.shift();
    if (!begin) return;
    this.#idle.delete(connection);
    begin();
  }

  #count(connection: Connection): void {
    this.#shares.add(connection.client);
    this.#idle.add(connection);
  }

  /** Counts a connection, and closes another one or refuses it if it is beyond the limits. Returns whether it is open. */
  #decide(connection: Connection): boolean {
    const { client } = connection;
    const excess = this.#shares.excessOf(client);
    this.#count(connection);
    if (excess === null) return true;
    if (excess === 'share') {
      if (this.#evict(connection, (one) => one.client === client)) return true;
      const share = this.#shares.shareOf(client);
      this.#refuse(connection, `${client ?? 'this host'} has ${share} connections, the maximum for one client; close one`);
      return false;
    }
    if (this.#evict(connection, (one) => !this.#shares.isReserved(one.client))) return true;
    this.#refuse(connection, `all ${this.#options.max} connections are being served; close one, or raise rest.max_connections`);
    return false;
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
    if (connection.isUndecided) this.#undecided -= 1;
    else this.#shares.add(connection.client, -1);
    connection.isUndecided = false;
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
    if (connection.response === null && !connection.isUndecided) {
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
