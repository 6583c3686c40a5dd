import { PIECE_BYTES } from './context.ts';

const KEPT_MS = 1000;

/**
 * A body that everybody gets the same: with hundreds of nodes it is megabytes, which are rendered once a second at most and are in memory
 * once for all responses of that second. One that is sent in one piece is rendered for each request.
 */
export class Rendered {
  readonly #render: () => Promise<string>;
  #rendering: Promise<Buffer> | null = null;
  #kept: Buffer | null = null;

  constructor(render: () => Promise<string>) {
    this.#render = render;
  }

  /** Rejects as `render` does; the next call tries again. */
  get(): Promise<Buffer> {
    if (this.#kept) return Promise.resolve(this.#kept);
    this.#rendering ??= this.#renderOnce().finally(() => {
      this.#rendering = null;
    });
    return this.#rendering;
  }

  async #renderOnce(): Promise<Buffer> {
    const body = Buffer.from(await this.#render());
    if (body.length <= PIECE_BYTES) return body;
    this.#kept = body;
    setTimeout(() => {
      this.#kept = null;
    }, KEPT_MS).unref();
    return body;
  }
}
