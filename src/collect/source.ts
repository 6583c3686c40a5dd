import type { Metric } from '../core/metrics.ts';
import type { TextCallback } from './text-file.ts';

/** Called once per read, with a value or with the reason for its absence. */
export type ReadCallback = (error: Error | null, value: number) => void;

/** Source of a metric. A read may end late, fail or hang; Probe handles these cases. */
export interface Source {
  readonly metric: Metric;
  read(callback: ReadCallback): void;
  close(): void;
}

/** The kernel returned an implausible value. The metric is then unavailable, with this message as the reason. */
export class ImplausibleReading extends Error {
  override readonly name = 'ImplausibleReading';
}

/** Passes on the value that `parse` finds in the text, or the error of the read or of `parse`. */
export function parsing(parse: (text: string) => number, callback: ReadCallback): TextCallback {
  return (error, text) => {
    if (error) return callback(error, 0);
    let value: number;
    try {
      value = parse(text);
    } catch (problem) {
      return callback(problem as Error, 0);
    }
    callback(null, value);
  };
}
