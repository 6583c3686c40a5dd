import { readFile } from 'node:fs';

/** The pause after a read is the duration of the read times this factor. */
const PAUSE_FACTOR = 3;
/** Upper limit of the pause, because callers wait for it. */
const MAX_PAUSE_MS = 300;

/**
 * Shares one read among concurrent callers; each gets the result of a read that began after its call. `read` must not reject. `pauseMs`:
 * minimum time from the end of one read to the beginning of the next.
 */
export function shareReads<T>(read: () => Promise<T>, pauseMs: number): () => Promise<T> {
  let free: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | null = null;
  return () => {
    next ??= free.then(() => {
      next = null;
      const begun = performance.now();
      const reading = read();
      free = reading.then(() => {
        const pause = Math.max(pauseMs, Math.min(PAUSE_FACTOR * (performance.now() - begun), MAX_PAUSE_MS));
        return new Promise((resolve) => {
          setTimeout(resolve, pause);
        });
      });
      return reading;
    });
    return next;
  };
}

/** The text of a file; empty if it cannot be read. */
export function readText(file: string, encoding: 'latin1' | 'utf8'): Promise<string> {
  return new Promise((resolve) => {
    readFile(file, encoding, (error, text) => resolve(error ? '' : text));
  });
}
