import type { Cause, CoverageEntry } from '../../harness/record/entries.ts';
import type { Severity } from '../../src/core/alerts/alert.ts';

/** Everything that can be made to happen in a synthetic week. `at` and all durations are seconds on the run's axis, whole ones. */
export type Fault =
  /** So many samples from there on are lost, in one of three places. */
  | { readonly kind: 'lose'; readonly at: number; readonly samples: number; readonly stage: 'sample' | 'publish' | 'deliver' }
  /** So many statuses from there on come twice, or in pairs of the wrong order. */
  | { readonly kind: 'duplicate' | 'reorder'; readonly at: number; readonly samples: number }
  /** The service ends, and is back after `seconds`. */
  | { readonly kind: 'restart'; readonly at: number; readonly seconds: number; readonly cause?: Cause; readonly unseen?: number }
  /** The service ends and stays away. */
  | { readonly kind: 'die'; readonly at: number }
  | { readonly kind: 'suspend'; readonly at: number; readonly seconds: number }
  /** The wall clock is put forward, or back. */
  | { readonly kind: 'step'; readonly at: number; readonly seconds: number }
  /** The observer is killed, and resumes after `seconds`. */
  | { readonly kind: 'kill'; readonly at: number; readonly seconds: number }
  /** The machine is off for `seconds`; the service is back 10 s after that, the observer after 20 s. */
  | { readonly kind: 'reboot'; readonly at: number; readonly seconds: number }
  /** The observer is stopped for `seconds`; what arrives meanwhile waits for it, or is lost. */
  | { readonly kind: 'stall'; readonly at: number; readonly seconds: number; readonly lost?: boolean }
  /** Nothing is stored, or collected, between a sample at `at` (+ half a sampling interval) and one `seconds` later. Rows: `at` is a multiple of 60. */
  | { readonly kind: 'gap'; readonly of: CoverageEntry['of']; readonly at: number; readonly seconds: number }
  /** An alert episode; null: it is not resolved. `unpublished`: it is not on the topic. */
  | {
      readonly kind: 'alert';
      readonly at: number;
      readonly seconds: number | null;
      readonly severity: Severity;
      readonly unpublished?: boolean;
    }
  /** /status does not answer. */
  | { readonly kind: 'unresponsive'; readonly at: number; readonly seconds: number }
  /** There is no subscription. */
  | { readonly kind: 'unsubscribed'; readonly channel: 'topic' | 'events'; readonly at: number; readonly seconds: number }
  /** What is stored or collected is not scanned. */
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

/** A service, or an observer, takes up to this long to be back. */
const BACK_SECONDS = 20;

/** When a fault is over, at the given rate of samples. */
export function lastOf(fault: Fault, hertz: number): number {
  if (fault.kind === 'die') return Number.POSITIVE_INFINITY;
  const seconds = 'samples' in fault ? fault.samples / hertz : (fault.seconds ?? Number.POSITIVE_INFINITY);
  return fault.at + Math.abs(seconds) + BACK_SECONDS;
}
