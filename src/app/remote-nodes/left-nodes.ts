import { writeAtomically } from '../../core/files/atomic-file.ts';
import { readRegularFileSync } from '../../core/files/regular-file.ts';
import { isNodeName } from '../../core/node-name.ts';
import type { Log } from '../../core/ports.ts';

/** Minimum delay before a write, so that nodes that come and go cost few writes; a power cut loses the last change. */
const WRITE_AFTER_SECONDS = 5;
/** Minimum delay between writes while changes continue. */
const WRITE_AGAIN_SECONDS = 60;
const MAX_BYTES = 1024 * 1024;

/**
 * The remote nodes that left the graph, with the time in wall-clock milliseconds, stored in a file, so that they do not become stale
 * after a restart.
 */
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

  /** The nodes last written; empty if the file cannot be read. */
  read(): ReadonlyMap<string, number> {
    if (this.#pending) return this.#pending;
    try {
      const entries = Object.entries(JSON.parse(readRegularFileSync(this.#path, MAX_BYTES).toString()) as Record<string, unknown>);
      return new Map(entries.filter((entry): entry is [string, number] => isNodeName(entry[0]) && Number.isFinite(entry[1])));
    } catch {
      return new Map();
    }
  }

  /** Schedules a write. */
  write(left: ReadonlyMap<string, number>): void {
    this.#pending = left;
    const wait = Math.max(WRITE_AFTER_SECONDS, this.#writtenSeconds + WRITE_AGAIN_SECONDS - performance.now() / 1000);
    this.#timer ??= setTimeout(() => void this.flush(), wait * 1000).unref();
  }

  /** Writes pending changes now; never rejects. */
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
      this.#log('warning', 'list of departed nodes not saved', { path: this.#path, error: (error as Error).message });
    }
  }
}
