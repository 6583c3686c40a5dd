import { PIECE_BYTES } from './context.ts';

const CACHE_MS = 1000;

/**
 * A body that is the same for all clients. With hundreds of nodes it has megabytes; it is then rendered at most once a second and shared by
 * all responses of that second. A body of at most PIECE_BYTES is rendered for each request.
 */
export class RenderCache {
  readonly #render: () => Promise<string>;
  #rendering: Promise<Buffer> | null = null;
  #cached: Buffer | null = null;

  constructor(render: () => Promise<string>) {
    this.#render = render;
  }

  /** Rejects if `render` does; the next call then renders again. */
  get(): Promise<Buffer> {
    if (this.#cached) return Promise.resolve(this.#cached);
    this.#rendering ??= this.#renderOnce().finally(() => {
      this.#rendering = null;
    });
    return this.#rendering;
  }

  async #renderOnce(): Promise<Buffer> {
    const body = Buffer.from(await this.#render());
    if (body.length <= PIECE_BYTES) return body;
    this.#cached = body;
    setTimeout(() => {
      this.#cached = null;
    }, CACHE_MS).unref();
    return body;
  }
}
