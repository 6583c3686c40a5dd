import type { RestClient } from '../../src/client/rest.ts';
import { storedScanner } from '../observe/scanners.ts';
import type { Window } from './way.ts';

const EVERY_MS = 30_000;
/** What was sampled up to so long ago is in the history, be it in memory. */
const SETTLED_MS = 2000;

/** Counts what /health/history has of the window while the run goes on: at its end the cap may have taken what was stored at its begin. */
export class StoredCount {
  readonly #look: ReturnType<typeof storedScanner>;
  readonly #window: Window;
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> = Promise.resolve();
  #toMs: number;
  #count = 0;

  constructor(rest: RestClient, node: string, window: Window) {
    this.#look = storedScanner({ rest, node });
    this.#window = window;
    this.#toMs = window.fromMs;
  }

  /** Up to `countedToMs`. */
  get count(): number {
    return this.#count;
  }

  get countedToMs(): number {
    return this.#toMs;
  }

  start(): void {
    this.#timer = setInterval(() => this.look(), EVERY_MS);
  }

  /** Counts on, up to now or to the end of the window. */
  look(): Promise<void> {
    this.#looking = this.#looking.then(async () => {
      const toMs = Math.min(this.#window.toMs, Date.now() - SETTLED_MS);
      const found = await this.#look(this.#toMs, toMs);
      if (found === null) return; // The next look takes it in.
      this.#count += found.count;
      this.#toMs = Math.max(this.#toMs, toMs);
    });
    return this.#looking;
  }

  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    await this.#looking;
  }
}
