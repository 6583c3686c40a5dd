import { readFile } from 'node:fs';

/** A reading that takes long is followed by a pause that is as many times as long. */
const PAUSE_FACTOR = 3;
/** But no longer than that: who asks has to be answered. */
const LONGEST_PAUSE_MS = 300;

/**
 * Shares what those read who ask at the same time: each gets what was begun after it asked. `read` never
 * rejects; `pauseMs`: from the end of one reading to the beginning of the next at least.
 */
export function shared<T>(read: () => Promise<T>, pauseMs: number): () => Promise<T> {
  let free: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | null = null;
  return () => {
    next ??= free.then(() => {
      next = null;
      const begun = performance.now();
      const reading = read();
      free = reading.then(() => {
        const pause = Math.max(pauseMs, Math.min(PAUSE_FACTOR * (performance.now() - begun), LONGEST_PAUSE_MS));
        return new Promise((resolve) => {
          setTimeout(resolve, pause);
        });
      });
      return reading;
    });
    return next;
  };
}

/** A file's text; empty where it cannot be read. */
export function readText(file: string, encoding: 'latin1' | 'utf8'): Promise<string> {
  return new Promise((resolve) => {
    readFile(file, encoding, (error, text) => resolve(error ? '' : text));
  });
}
