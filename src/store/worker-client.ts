import { Worker } from 'node:worker_threads';
import type { Operation, Operations, Reply, Request } from './protocol.ts';

/** An error thrown in the worker, with its name there. */
export class StoreError extends Error {
  constructor(message: string, name: string) {
    super(message);
    this.name = name;
  }
}

interface Waiting {
  readonly resolve: (body: never) => void;
  readonly reject: (error: Error) => void;
}

/** Sends requests to the store's thread and matches the answers. One client is one thread; when it dies every waiting request fails. */
export class WorkerClient {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 1;
  #ended = false;

  constructor(program: URL, onSetAside: (path: string, reason: string) => void, onDeath: (reason: string) => void) {
    // A small young generation: the thread holds little, and its garbage would otherwise stay resident.
    this.#worker = new Worker(program, { resourceLimits: { maxYoungGenerationSizeMb: 4 }, env: {} });
    this.#worker.on('message', (reply: Reply) => {
      if ('setAside' in reply) return onSetAside(reply.setAside.path, reply.setAside.reason);
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if (reply.ok) waiting?.resolve(reply.body as never);
      else waiting?.reject(new StoreError(reply.error, reply.name));
    });
    let reason = 'the store thread ended';
    this.#worker.on('error', (error) => {
      reason = (error as Error).message;
    });
    this.#worker.on('exit', () => {
      const expected = this.#ended;
      this.#ended = true;
      for (const { reject } of this.#waiting.values()) reject(new StoreError(reason, 'StoreThreadEnded'));
      this.#waiting.clear();
      if (!expected) onDeath(reason);
    });
  }

  request<O extends Operation>(
    operation: O,
    body: Operations[O]['request'],
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<Operations[O]['answer']> {
    if (this.#ended) return Promise.reject(new StoreError('the store thread is not running', 'StoreThreadEnded'));
    const id = this.#nextId++;
    const request: Request<O> = { id, operation, body };
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage(request, transfer);
    });
  }

  async end(): Promise<void> {
    this.#ended = true;
    await this.#worker.terminate();
  }
}
