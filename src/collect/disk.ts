import { statfs } from 'node:fs';
import { ImplausibleReading, type ReadCallback, type Source } from './source.ts';

/** What of statfs(2) is needed, in blocks. */
export interface Blocks {
  readonly blocks: number;
  readonly bfree: number;
  readonly bavail: number;
}

/**
 * What `df` shows: 100 × used / (used + available to users), where the reserve for root counts as neither. `df` rounds up
 * to a whole percent, this does not. Throws when the numbers cannot be true.
 */
export function diskPercent({ blocks, bfree, bavail }: Blocks): number {
  const used = blocks - bfree;
  if (blocks <= 0 || used < 0 || bavail < 0 || used + bavail <= 0) {
    throw new ImplausibleReading(`${blocks} blocks, ${bfree} free, ${bavail} available`);
  }
  return (100 * used) / (used + bavail);
}

/** Called with the numbers of one path or an error; tests pass one that hangs. */
export type Statfs = (path: string, callback: (error: NodeJS.ErrnoException | null, blocks: Blocks) => void) => void;

/**
 * The fullest of the configured paths. They are asked one after the other, so that a mount that hangs (a network share whose
 * server is gone) holds one thread of the pool and nothing else. When one cannot be read the metric is
 * unavailable, since the fullest is not known.
 */
export class DiskSource implements Source {
  readonly metric = 'disk_percent';
  readonly #paths: readonly string[];
  readonly #statfs: Statfs;

  constructor(paths: readonly string[], ask: Statfs = statfs) {
    this.#paths = paths;
    this.#statfs = ask;
  }

  read(callback: ReadCallback): void {
    this.#ask(0, -1, callback);
  }

  close(): void {
    // Nothing is held open between reads.
  }

  #ask(index: number, fullest: number, callback: ReadCallback): void {
    const path = this.#paths[index];
    if (path === undefined) {
      callback(null, fullest);
      return;
    }
    this.#statfs(path, (error, blocks) => {
      if (error) return callback(new Error(`${path}: ${error.message}`), 0);
      let percent: number;
      try {
        percent = diskPercent(blocks);
      } catch (problem) {
        return callback(new Error(`${path}: ${(problem as Error).message}`), 0);
      }
      this.#ask(index + 1, Math.max(fullest, percent), callback);
    });
  }
}
