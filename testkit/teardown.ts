/** Cleanup outside a tap test: a benchmark or a shared machine runs the actions that a container or a network registers. */
import type { Teardown } from './folder.ts';

export class Teardowns implements Teardown {
  readonly #actions: (() => unknown)[] = [];

  teardown(action: () => unknown): void {
    this.#actions.push(action);
  }

  /** Runs the registered actions, the last one first. */
  async run(): Promise<void> {
    for (const action of this.#actions.splice(0).reverse()) await action();
  }
}
