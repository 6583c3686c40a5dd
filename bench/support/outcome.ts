import type { Machine } from '../../testkit/machine/machine-info.ts';

/** One line of the table. Lower is better for every figure. */
export interface Row {
  readonly figure: string;
  readonly unit: string;
  /** The figure of edge-health; null if it was not measured, for the reason in a note. */
  readonly value: number | null;
  readonly baseline?: { readonly name: string; readonly value: number };
  /** Maximum allowed value. */
  readonly atMost?: number;
  /** The value must be at most the baseline divided by this. */
  readonly timesLess?: number;
}

/** Results of one benchmark program, with notes about the method. */
export interface Outcome {
  readonly rows: readonly Row[];
  readonly notes: readonly string[];
}

export interface Measured extends Outcome {
  readonly measured: string;
  readonly node: string;
  readonly kernel: string;
  readonly machine: Machine;
}

/** The last results of each program, possibly of different machines. */
export type Results = Readonly<Record<string, Measured>>;
