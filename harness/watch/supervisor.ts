import type { Cause } from '../record/entries.ts';

/** The run of the service that is there now, as whoever runs it knows it. */
export interface SupervisedRun {
  /** Of the main process; null: not known. */
  readonly pid: number | null;
  /** Tells one run from another. */
  readonly invocation: string | null;
  /** How often it was restarted without anybody asking for it; begins at 0 again when somebody starts it. */
  readonly restarts: number | null;
  /** Path below the root of the control groups. */
  readonly controlGroup: string | null;
  /** CPU time of this run so far, where it is counted: the control group may have counted runs before. */
  readonly cpuSeconds: number | null;
}

/** What is remembered of the run before. */
export interface KnownRun {
  readonly started: string;
  readonly version: string;
  readonly pid: number | null;
  readonly invocation: string | null;
  readonly restarts: number | null;
  /** Of the boot in which it was seen. */
  readonly bootId: string | null;
}

/** How a run of the service ended. */
export interface RunEnd {
  readonly cause: Cause;
  /** For people, such as "SIGKILL" or "exit status 70"; empty: there is nothing to add. */
  readonly detail: string;
}

/** Why the run right before the present one ended, and how many there were that nobody saw. */
export interface RunsBetween extends RunEnd {
  readonly unseen: number;
}

/** Who runs the service, as far as it can be asked from here. */
export interface Supervisor {
  /** Null: no run is there, or it cannot be told. */
  now(): Promise<SupervisedRun | null>;
  /** What happened between two runs of one boot of the machine; null: it cannot be told. */
  between(before: KnownRun, now: SupervisedRun): Promise<RunsBetween | null>;
  /** The service does not answer: a last look at how its run ended, while that is still known. */
  absent?(invocation: string | null): Promise<void>;
}
