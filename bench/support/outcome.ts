import type { Machine } from '../../testkit/machine/machine-info.ts';

/** One line of the table. Smaller is better in every figure. */
export interface Row {
  readonly figure: string;
  readonly unit: string;
  /** Null: not measured; a note says why. */
  readonly ours: number | null;
  readonly rival?: { readonly name: string; readonly value: number };
  /** The most that our figure may be. */
  readonly atMost?: number;
  /** How many times less than the rival's it must be. */
  readonly timesLess?: number;
}

/** What one benchmark program found, and how. */
export interface Outcome {
  readonly rows: readonly Row[];
  readonly notes: readonly string[];
}

export interface Measured extends Outcome {
  readonly measured: string;
  readonly node: string;
  readonly kernel: string;
}

export interface Results {
  readonly machine: Machine;
  readonly programs: Readonly<Record<string, Measured>>;
}
