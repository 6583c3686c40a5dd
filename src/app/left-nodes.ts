import { readFileSync } from 'node:fs';
import { isNodeName } from '../core/node-name.ts';
import type { Log } from '../core/ports.ts';
import { writeAtomically } from '../system/atomic-file.ts';

/** Nodes that come and go cost one write in so long; what a power cut takes is a node that left just before it. */
const WRITE_AFTER_SECONDS = 5;
/** and one in so long if they go on doing so. */
const WRITE_AGAIN_SECONDS = 60;

/** The remote nodes that left the graph, by name with the time in wall-clock milliseconds, in a file: after a restart they are not missed. */
export class LeftNodes {
  readonly #path: string;
  readonly #log: Log;
  #pending: ReadonlyMap<string, number> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #writtenSeconds = Number.NEGATIVE_INFINITY;

  constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
  }

  /** What was written last; nothing where that cannot be read. */
  read(): ReadonlyMap<string, number> {
    if (this.#pending) return this.#pending;
    try {
      const entries = Object.entries(JSON.parse(readFileSync(this.#path, 'utf8')) as Record<string, unknown>);
      return new Map(entries.filter((entry): entry is [string, number] => isNodeName(entry[0]) && Number.isFinite(entry[1])));
    } catch {
      return new Map();
    }
  }

  /** Writes soon. */
  write(left: ReadonlyMap<string, number>): void {
    this.#pending = left;
    const wait = Math.max(WRITE_AFTER_SECONDS, this.#writtenSeconds + WRITE_AGAIN_SECONDS - performance.now() / 1000);
    this.#timer ??= setTimeout(() => void this.flush(), wait * 1000).unref();
  }

  /** Writes what is pending now; never rejects. */
  async flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const left = this.#pending;
    this.#pending = null;
    if (!left) return;
    this.#writtenSeconds = performance.now() / 1000;
    try {
      await writeAtomically(this.#path, JSON.stringify(Object.fromEntries(left)));
    } catch (error) {
      this.#log('warning', 'nodes that left not saved', { path: this.#path, error: (error as Error).message });
    }
  }
}
