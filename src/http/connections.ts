import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { answerBare, cutOff, stopParsing } from './bare.ts';
import { clientOf, isLocal, shareOf } from './clients.ts';
import { Problem } from './problem.ts';
import type { TurnQueue } from './queues.ts';

export type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/** Connections of this host that are beyond the maximum, so that no remote client keeps its programs out. */
const RESERVED_CONNECTIONS = 16;
/** One client has at least so many of the maximum. */
const LEAST_SHARE = 8;
/** Requests that may wait behind the one being served. Browsers do not pipeline; a client that sends more is cut off. */
const MAX_WAITING = 64;
/** A reader that takes nothing of a response for this long is dropped. */
export const WRITE_SECONDS = 20;
/** Parts of that time: how often readers are checked, and at least between two checks that new connections cause. */
const CHECK = 1 / 4;
const CHECK_AGAIN = 1 / 200;
/** After this part of it a reader that takes nothing may be dropped for a new connection. */
const STALLED = 1 / 10;
/** What responses may hold in this process until their readers have taken it; beyond it the readers that have taken nothing for longest are dropped. */
const BUDGET_BYTES = 20 * 1024 * 1024;
/** Refused connections that are kept open for their answer; further ones are reset. */
const MAX_REFUSING = 16;

export interface ConnectionsOptions {
  readonly max: number;
  readonly serve: Serve;
  readonly turns: TurnQueue;
  /** Called with a response whose reader is dropped. */
  readonly onDrop?: (response: ServerResponse) => void;
  /** Smaller in tests. */
  readonly writeSeconds?: number;
  readonly budgetBytes?: number;
}

interface Connection {
  readonly socket: Socket;
  /** Null: this host. */
  readonly client: string | null;
  /** What is being served; null: idle. */
  response: ServerResponse | null;
  /** The requests behind it. */
  readonly waiting: (() => void)[];
  /** What its response is made from and keeps in memory; several responses may share it. */
  held: { readonly body: object; readonly bytes: number } | null;
  /** How much the reader had taken when that last changed, and when that was. */
  taken: string;
  sinceMs: number;
}

/**
 * Bounds the connections and what they hold. Beyond the maximum the one that has been without a request the longest is closed, or one whose
 * reader takes nothing, so that neither idle connections nor stalled ones keep a client out; only when all others are being served is the new
 * one refused. What one connection asks is served in turn, so that pipelining multiplies nothing that one connection can hold.
 */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #all = new Map<Socket, Connection>();
  /** Those without a request under way, the longest idle first. */
  readonly #idle = new Set<Connection>();
  /** Connections of each client. */
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
    server.on('connection', (socket) => this.#opened(socket));
    server.on('request', (request, response) => this.#requested(request, response));
    // Whatever else a client expects, it gets the answer.
    server.on('checkExpectation', (request, response) => this.#requested(request, response));
  }

  get count(): number {
    return this.#all.size;
  }

  /** Closed or refused because there were too many. */
  get evicted(): number {
    return this.#evicted;
  }

  /** Closed because their readers took nothing, or because responses held too much. */
  get dropped(): number {
    return this.#dropped;
  }

  isBusy(socket: Socket): boolean {
    return this.#all.get(socket)?.response != null;
  }

  /** Counts what the response under way keeps in memory until it is sent. May drop other connections, or this one. */
  hold(socket: Socket, body: object, bytes: number): void {
    const connection = this.#all.get(socket);
    if (!connection) return;
    connection.held = { body, bytes };
    this.#enforceBudget();
  }

  #enforceBudget(): void {
    const { budgetBytes = BUDGET_BYTES } = this.#options;
    if (this.#heldBytes() <= budgetBytes) return;
    this.#checkAgain();
    const holding = [...this.#all.values()].filter((one) => one.held !== null || unread(one) > 0);
    holding.sort((a, b) => a.sinceMs - b.sinceMs || size(b) - size(a));
    for (const one of holding) {
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
    const connection: Connection = { socket, client, response: null, waiting: [], held: null, taken: '', sinceMs: performance.now() };
    this.#all.set(socket, connection);
    this.#idle.add(connection);
    this.#counts.set(client, this.#countOf(client) + 1);
    socket.once('close', () => this.#forget(connection));
    // Where this side closes first, the kernel keeps what is unread for minutes, and nothing counts it: so the reader does.
    socket.destroySoon = () => {
      socket.end();
      stopParsing(socket);
    };
    this.#timer ??= setInterval(() => {
      this.#check();
      this.#enforceBudget();
    }, this.#writeMs * CHECK).unref();
    const { max } = this.#options;
    const share = shareOf(max, LEAST_SHARE);
    if (client !== null && this.#countOf(client) > share && !this.#evict(connection, (one) => one.client === client)) {
      this.#refuse(connection, `${client} has ${share} connections already, as many as one client may have; close one`);
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

  /** Closes the connection that matters least for a new one; false: all of them are being served. */
  #evict(newcomer: Connection, may: (one: Connection) => boolean): boolean {
    const victim = [...this.#idle].find((one) => one !== newcomer && may(one)) ?? this.#longestStalled(may);
    if (!victim) return false;
    this.#evicted += 1;
    this.#close(victim);
    return true;
  }

  #longestStalled(may: (one: Connection) => boolean): Connection | undefined {
    this.#checkAgain();
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
    answerBare(socket, new Problem('too_many_connections', detail), 'Retry-After: 1\r\n');
  }

  /** A flood of connections is not worth a check each. */
  #checkAgain(): void {
    if (performance.now() - this.#checkedMs > this.#writeMs * CHECK_AGAIN) this.#check();
  }

  /** Finds out which readers take what they are sent, and drops those that have not for too long. */
  #check(): void {
    const nowMs = performance.now();
    this.#checkedMs = nowMs;
    for (const connection of this.#all.values()) {
      const taken = takenOf(connection.socket);
      const isWaitedFor = unread(connection) > 0 || connection.socket.writableEnded;
      if (taken !== connection.taken || !isWaitedFor) {
        connection.taken = taken;
        connection.sinceMs = nowMs;
      } else if (nowMs - connection.sinceMs >= this.#writeMs) this.#drop(connection);
    }
  }

  #drop(connection: Connection): void {
    this.#dropped += 1;
    this.#close(connection);
  }

  /** The close is reported later; the count must be right now. */
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
    const left = this.#countOf(connection.client) - 1;
    if (left > 0) this.#counts.set(connection.client, left);
    else this.#counts.delete(connection.client);
    if (this.#all.size > 0 || !this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #requested(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#all.get(socket);
    if (!connection || !socket.writable) return; // Answered for the last time already.
    const begin = (): void => {
      if (!socket.writable) return; // Gone while it waited.
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
      // Each waits for its turn, whatever connection it came by: thousands of them would hold up samples otherwise.
      void this.#options.turns.next().then(next);
      return;
    }
    connection.response = null;
    if (this.#all.has(socket)) this.#idle.add(connection);
  }
}

/** Bytes that wait in this process for the reader of a connection. */
function unread({ response, socket }: Connection): number {
  return response && !response.destroyed ? response.writableLength : socket.writableLength;
}

const size = (connection: Connection): number => Math.max(connection.held?.bytes ?? 0, unread(connection));

/** Differs whenever the kernel has taken more, also of what was written in one piece: libuv has the rest, which Node shows in its handle alone. */
function takenOf(socket: Socket & { readonly _handle?: { readonly writeQueueSize?: number } | null }): string {
  return `${socket.bytesWritten - socket.writableLength} ${socket._handle?.writeQueueSize ?? 0}`;
}
