/**
 * A proxy with a fixed address for a service that is killed and restarted on another free port. A restart on the same port could fail,
 * because another process may have bound it in between.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { Teardown } from '../folder.ts';

export class SteadyAddress {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #target: number | null = null;

  private constructor() {
    this.#server = createServer((client) => this.#forward(client));
  }

  static async open(t: Teardown): Promise<SteadyAddress> {
    const address = new SteadyAddress();
    address.#server.listen(0, '127.0.0.1');
    await once(address.#server, 'listening');
    t.teardown(() => {
      address.#server.close();
      for (const socket of address.#sockets) socket.destroy();
    });
    return address;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Forwards new connections to this service. */
  forwardTo(url: string): void {
    this.#target = Number(new URL(url).port);
  }

  #forward(client: Socket): void {
    if (this.#target === null) {
      client.destroy();
      return;
    }
    const service = connect(this.#target, '127.0.0.1');
    for (const [one, other] of [
      [client, service],
      [service, client],
    ] as const) {
      this.#sockets.add(one);
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
  }
}
