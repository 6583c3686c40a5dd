import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { turn } from './context.ts';

export type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/** Requests that may wait behind the one being served. Nobody's browser pipelines; who sends more is cut off. */
const MAX_WAITING = 64;

/**
 * Bounds the connections. When there are too many, the one that has been without a request the longest is closed, so that
 * ten thousand idle connections cannot keep one real client out; only when every one is being served is the new one closed.
 * What one connection asks is served in turn, so that pipelining multiplies nothing that one connection can hold.
 */
export class Connections {
  readonly #max: number;
  readonly #serve: Serve;
  readonly #all = new Set<Socket>();
  /** Those without a request under way, the longest idle first. */
  readonly #idle = new Set<Socket>();
  /** Those with a request under way, and what waits behind it. */
  readonly #waiting = new Map<Socket, (() => void)[]>();
  #evicted = 0;

  constructor(server: Server, max: number, serve: Serve) {
    this.#max = max;
    this.#serve = serve;
    server.on('connection', (socket) => this.#opened(socket));
    server.on('request', (request, response) => this.#requested(request, response));
    // Whatever else a client expects, it gets the answer.
    server.on('checkExpectation', (request, response) => this.#requested(request, response));
  }

  get count(): number {
    return this.#all.size;
  }

  get evicted(): number {
    return this.#evicted;
  }

  isBusy(socket: Socket): boolean {
    return this.#waiting.has(socket);
  }

  #opened(socket: Socket): void {
    this.#all.add(socket);
    this.#idle.add(socket);
    socket.once('close', () => {
      this.#all.delete(socket);
      this.#idle.delete(socket);
      this.#waiting.delete(socket);
    });
    if (this.#all.size <= this.#max) return;
    const [longest] = this.#idle;
    this.#evicted += 1;
    // destroy() reports the close later; the count must be right for the next one now.
    const victim = longest ?? socket;
    this.#all.delete(victim);
    this.#idle.delete(victim);
    victim.destroy();
  }

  #requested(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    if (!socket.writable) return; // Answered for the last time already.
    const begin = (): void => {
      if (!socket.writable) return; // Gone while it waited.
      response.once('close', () => this.#served(socket));
      this.#serve(request, response);
    };
    const waiting = this.#waiting.get(socket);
    if (!waiting) {
      this.#idle.delete(socket);
      this.#waiting.set(socket, []);
      begin();
    } else if (waiting.length < MAX_WAITING) {
      waiting.push(begin);
    } else {
      socket.destroy();
      stopParsing(socket);
    }
  }

  #served(socket: Socket): void {
    const waiting = this.#waiting.get(socket);
    const next = socket.writable ? waiting?.shift() : undefined;
    if (next) {
      // Each waits for its turn, whatever connection it came by: thousands of them would hold up samples otherwise.
      void turn().then(next);
      return;
    }
    this.#waiting.delete(socket);
    if (this.#all.has(socket)) this.#idle.add(socket);
  }
}

/** What a parser is told for a request after which no HTTP comes: it parses no further. */
const NO_MORE_HTTP = 2;

/**
 * A read brings 64 kB, which may be 1500 requests, and Node makes objects of all of them in one go, also after the socket was destroyed:
 * a tenth of a second for one connection. Its parser can be stopped, though that is not documented; where it cannot be, it only takes longer.
 */
function stopParsing(socket: Socket & { readonly parser?: { onIncoming?: () => number } | null }): void {
  if (socket.parser?.onIncoming) socket.parser.onIncoming = () => NO_MORE_HTTP;
}
