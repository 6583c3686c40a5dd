/** Cleaning up outside of a tap test: what a container or a network registers with a test, a benchmark or a shared machine runs itself. */
import type { Teardown } from './folder.ts';

export class Teardowns implements Teardown {
  readonly #actions: (() => unknown)[] = [];

  teardown(action: () => unknown): void {
    this.#actions.push(action);
  }

  /** Runs what was registered, the last first. */
  async run(): Promise<void> {
    for (const action of this.#actions.splice(0).reverse()) await action();
  }
}
