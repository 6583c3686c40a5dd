import type { Cause, CoverageEntry } from '../../harness/record/entries.ts';
import type { Severity } from '../../src/core/alerts/alert.ts';

/** Faults of a synthetic week. `at` and all durations are whole seconds on the time axis of the run. */
export type Fault =
  /** `samples` samples from `at` on are lost in one of three stages. */
  | { readonly kind: 'lose'; readonly at: number; readonly samples: number; readonly stage: 'sample' | 'publish' | 'deliver' }
  /** `samples` statuses from `at` on are duplicated, or swapped in pairs. */
  | { readonly kind: 'duplicate' | 'reorder'; readonly at: number; readonly samples: number }
  /** The service ends and is up again after `seconds`. */
  | { readonly kind: 'restart'; readonly at: number; readonly seconds: number; readonly cause?: Cause; readonly unseen?: number }
  /** The service ends and does not restart. */
  | { readonly kind: 'die'; readonly at: number }
  | { readonly kind: 'suspend'; readonly at: number; readonly seconds: number }
  /** The wall clock is set forward, or back. */
  | { readonly kind: 'step'; readonly at: number; readonly seconds: number }
  /** The observer is killed and resumes after `seconds`. */
  | { readonly kind: 'kill'; readonly at: number; readonly seconds: number }
  /** The machine is off for `seconds`; the service is up 10 s after that, the observer 20 s after that. */
  | { readonly kind: 'reboot'; readonly at: number; readonly seconds: number }
  /** The observer is stopped for `seconds`; messages in that time are queued, or lost if `lost` is set. */
  | { readonly kind: 'stall'; readonly at: number; readonly seconds: number; readonly lost?: boolean }
  /**
   * Nothing is stored or collected between a sample at `at` (+ half a sampling interval) and one `seconds` later. For rows, `at` is a
   * multiple of 60.
   */
  | { readonly kind: 'gap'; readonly of: CoverageEntry['of']; readonly at: number; readonly seconds: number }
  /** An alert episode; `seconds` null: it is not resolved. `unpublished`: it is not on the topic. */
  | {
      readonly kind: 'alert';
      readonly at: number;
      readonly seconds: number | null;
      readonly severity: Severity;
      readonly unpublished?: boolean;
    }
  /** /status gives no response. */
  | { readonly kind: 'unresponsive'; readonly at: number; readonly seconds: number }
  /** The channel has no subscription. */
  | { readonly kind: 'unsubscribed'; readonly channel: 'topic' | 'events'; readonly at: number; readonly seconds: number }
  /** Stored samples or collected rows are not scanned. */
  | { readonly kind: 'unscanned'; readonly of: CoverageEntry['of']; readonly at: number; readonly seconds: number };

export type FaultOf<Kind extends Fault['kind']> = Extract<Fault, { readonly kind: Kind }>;

export interface Interval {
  readonly from: number;
  readonly to: number;
}

export function ofKind<Kind extends Fault['kind']>(faults: readonly Fault[], kind: Kind): FaultOf<Kind>[] {
  return faults.filter((fault): fault is FaultOf<Kind> => fault.kind === kind).sort((one, other) => one.at - other.at);
}

export function intervals(faults: readonly { readonly at: number; readonly seconds: number }[]): Interval[] {
  return faults.map(({ at, seconds }) => ({ from: at, to: at + seconds }));
}

export function isWithin(ranges: readonly Interval[], at: number): boolean {
  return ranges.some(({ from, to }) => at >= from && at < to);
}

/** Maximum time until a service or an observer is up again. */
const RECOVERY_SECONDS = 20;

/** The end of the effects of a fault, at the given sampling rate. */
export function lastOf(fault: Fault, hertz: number): number {
  if (fault.kind === 'die') return Number.POSITIVE_INFINITY;
  const seconds = 'samples' in fault ? fault.samples / hertz : (fault.seconds ?? Number.POSITIVE_INFINITY);
  return fault.at + Math.abs(seconds) + RECOVERY_SECONDS;
}
