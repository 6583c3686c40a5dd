/** What the table shows of a fault beside its name and what was expected. */
export interface Figures {
  /** What happened, in a sentence. */
  readonly observed: string;
  /** See docs: from the fault's coming (where it lasts: its going) until everything serves again; null: nothing ever ceased to. */
  readonly recoverySeconds: number | null;
  /** Null: cannot be told here, and `observed` says why. */
  readonly samplesLost: number | null;
  readonly alertsLost: number | null;
  /** What readers who want to know more should see below the table: which alerts were lost, for instance. */
  readonly notes?: readonly string[];
}

/** One thing that had to hold. */
export interface Check {
  readonly what: string;
  readonly holds: boolean;
  /** What was found instead, where it does not. */
  readonly found?: string;
}

export interface Observation extends Figures {
  /** Every check held, there was at least one, and nothing was thrown. */
  readonly held: boolean;
  readonly checks: readonly Check[];
  /** What was thrown; null: nothing. */
  readonly error: string | null;
  /** The last of what the unit and systemd said, where something did not hold. */
  readonly journal?: string;
}
