import { isIP } from 'node:net';
import { join } from 'node:path';
import { writeAtomically } from '../../core/files/atomic-file.ts';
import { readRegularFileSync } from '../../core/files/regular-file.ts';
import { isNodeName } from '../../core/node-name.ts';
import type { Log } from '../../core/ports.ts';

/** Minimum delay before a write, so that nodes that come and go cost few writes; a power cut loses the last change. */
const WRITE_AFTER_SECONDS = 5;
/** Minimum delay between writes while changes continue. */
const WRITE_AGAIN_SECONDS = 60;
const MAX_BYTES = 1024 * 1024;

/** A file with one value per remote node, which is kept over restarts. */
export class NodeFile<T extends string | number> {
  readonly #path: string;
  readonly #isValue: (value: unknown) => value is T;
  readonly #log: Log;
  #pending: ReadonlyMap<string, T> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #writtenSeconds = Number.NEGATIVE_INFINITY;
  #isFailing = false;

  constructor(path: string, isValue: (value: unknown) => value is T, log: Log) {
    this.#path = path;
    this.#isValue = isValue;
    this.#log = log;
  }

  /** What was last written; empty if the file cannot be read. */
  read(): ReadonlyMap<string, T> {
    if (this.#pending) return this.#pending;
    try {
      const entries = Object.entries(JSON.parse(readRegularFileSync(this.#path, MAX_BYTES).toString()) as Record<string, unknown>);
      return new Map(entries.filter((entry): entry is [string, T] => isNodeName(entry[0]) && this.#isValue(entry[1])));
    } catch {
      return new Map();
    }
  }

  /** Schedules a write. */
  write(values: ReadonlyMap<string, T>): void {
    this.#pending = values;
    const wait = Math.max(WRITE_AFTER_SECONDS, this.#writtenSeconds + WRITE_AGAIN_SECONDS - performance.now() / 1000);
    this.#timer ??= setTimeout(() => void this.flush(), wait * 1000).unref();
  }

  /** Writes pending changes now; never rejects. After a failure they are written later. */
  async flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const values = this.#pending;
    this.#pending = null;
    if (!values) return;
    this.#writtenSeconds = performance.now() / 1000;
    try {
      await writeAtomically(this.#path, JSON.stringify(Object.fromEntries(values)));
      this.#isFailing = false;
    } catch (error) {
      this.write(this.#pending ?? values);
      if (this.#isFailing) return;
      this.#isFailing = true;
      this.#log('warning', 'file about remote nodes not saved', { path: this.#path, error: (error as Error).message });
    }
  }
}

/** The nodes that left the graph, with the time in wall-clock milliseconds, so that they do not become stale after a restart. */
export function leftNodes(folder: string, log: Log): NodeFile<number> {
  return new NodeFile(join(folder, 'left_nodes.json'), (value): value is number => Number.isFinite(value), log);
}

/** The addresses from which the nodes are published, so that a rival cannot take a name while this service restarts. */
export function nodeAddresses(folder: string, log: Log): NodeFile<string> {
  return new NodeFile(join(folder, 'node_addresses.json'), (value): value is string => typeof value === 'string' && isIP(value) !== 0, log);
}
