import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Bounds the connections. When there are too many, the one that has been without a request the longest is closed, so that
 * ten thousand idle connections cannot keep one real client out; only when every one is being served is the new one closed.
 */
export class Connections {
  readonly #max: number;
  readonly #all = new Set<Socket>();
  /** Those without a request under way, the longest idle first. */
  readonly #idle = new Set<Socket>();
  #evicted = 0;

  constructor(server: Server, max: number) {
    this.#max = max;
    server.on('connection', (socket) => this.#opened(socket));
    server.on('request', (request, response) => {
      this.#idle.delete(request.socket);
      response.once('close', () => {
        if (this.#all.has(request.socket)) this.#idle.add(request.socket);
      });
    });
  }

  get count(): number {
    return this.#all.size;
  }

  get evicted(): number {
    return this.#evicted;
  }

  #opened(socket: Socket): void {
    this.#all.add(socket);
    this.#idle.add(socket);
    socket.once('close', () => {
      this.#all.delete(socket);
      this.#idle.delete(socket);
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
}
