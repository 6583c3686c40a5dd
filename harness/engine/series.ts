/** What the charts of a report draw: columns over one time axis, a point a minute or fewer. */
export interface Series {
  /** Seconds since the epoch at which the axis begins, for labels. */
  readonly begunEpochSeconds: number;
  /** Seconds on the run's axis (engine/evidence.ts). */
  readonly at: readonly number[];
  /** Received of expected statuses, in percent; null: nobody looked. */
  readonly ratePercent: readonly (number | null)[];
  readonly memoryMegabytes: readonly (number | null)[];
  readonly hostMemoryPercent: readonly (number | null)[];
  /** Of one core. */
  readonly cpuPercent: readonly (number | null)[];
  readonly hostCpuPercent: readonly (number | null)[];
  readonly celsius: readonly (number | null)[];
  /** Stretches, `to` null: still open at the end. */
  readonly alerts: readonly {
    readonly from: number;
    readonly to: number | null;
    readonly severity: string;
    readonly metric: string;
    readonly alertId: string;
  }[];
  readonly restarts: readonly { readonly at: number; readonly cause: string; readonly detail: string }[];
  readonly absences: readonly { readonly from: number; readonly to: number; readonly kind: string }[];
  readonly suspends: readonly { readonly at: number; readonly seconds: number }[];
  readonly clockSteps: readonly { readonly at: number; readonly seconds: number }[];
}
