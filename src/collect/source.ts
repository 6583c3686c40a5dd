import type { Metric } from '../core/metrics.ts';

/** Called once per read, with a value or with the reason why there is none. */
export type ReadCallback = (error: Error | null, value: number) => void;

/** Something that can be measured. It may never answer, answer with an error, or answer late; the probe around it copes. */
export interface Source {
  readonly metric: Metric;
  read(callback: ReadCallback): void;
  close(): void;
}

/** The kernel gave something that it never should: counts as unavailable, with this as its reason. */
export class ImplausibleReading extends Error {
  override readonly name = 'ImplausibleReading';
}
