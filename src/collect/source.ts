import type { Metric } from '../core/metrics.ts';

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
