import { stat, statfs } from 'node:fs';
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

/** Whether a path is a directory that nobody may open, as systemd lays over what ProtectHome= hides; its numbers are not the disk's. */
export type IsHidden = (path: string, callback: (hidden: boolean) => void) => void;

const isHidden: IsHidden = (path, callback) => {
  stat(path, (error, found) => callback(error === null && found.isDirectory() && (found.mode & 0o777) === 0));
};

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
  readonly #isHidden: IsHidden;
  /** Paths that were found to be what they seem. What is laid over a path is there from the start. */
  readonly #seen = new Set<string>();

  constructor(paths: readonly string[], ask: Statfs = statfs, look: IsHidden = isHidden) {
    this.#paths = paths;
    this.#statfs = ask;
    this.#isHidden = look;
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
      const goOn = (): void => this.#ask(index + 1, Math.max(fullest, percent), callback);
      if (this.#seen.has(path)) return goOn();
      this.#isHidden(path, (hidden) => {
        if (hidden)
          return callback(new Error(`${path} is hidden from the service (ProtectHome= of its unit); docs/appliance.md has the drop-in`), 0);
        this.#seen.add(path);
        goOn();
      });
    });
  }
}
