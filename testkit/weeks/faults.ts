import type { Cause, HoldingEntry } from '../../harness/record/entries.ts';
import type { Severity } from '../../src/core/alert.ts';

/** Everything that can be made to happen in a synthetic week. `at` and all durations are seconds on the run's axis, whole ones. */
export type Fault =
  /** So many slots from there on are lost, in one of three places. */
  | { readonly kind: 'lose'; readonly at: number; readonly slots: number; readonly place: 'sample' | 'publish' | 'deliver' }
  /** So many statuses from there on come twice, or in pairs of the wrong order. */
  | { readonly kind: 'duplicate' | 'reorder'; readonly at: number; readonly slots: number }
  /** The service ends, and is back after `seconds`. */
  | { readonly kind: 'restart'; readonly at: number; readonly seconds: number; readonly cause?: Cause; readonly unseen?: number }
  /** The service ends and stays away. */
  | { readonly kind: 'die'; readonly at: number }
  | { readonly kind: 'suspend'; readonly at: number; readonly seconds: number }
  /** The wall clock is put forward, or back. */
  | { readonly kind: 'step'; readonly at: number; readonly seconds: number }
  /** The watcher is killed, and resumes after `seconds`. */
  | { readonly kind: 'kill'; readonly at: number; readonly seconds: number }
  /** The machine is off for `seconds`; the service is back 10 s after that, the watcher after 20 s. */
  | { readonly kind: 'reboot'; readonly at: number; readonly seconds: number }
  /** The watcher is stopped for `seconds`; what arrives meanwhile waits for it, or is lost. */
  | { readonly kind: 'stall'; readonly at: number; readonly seconds: number; readonly lost?: boolean }
  /** Nothing is stored, or collected, between a sample at `at` (+ half a slot) and one `seconds` later. Rows: `at` is a multiple of 60. */
  | { readonly kind: 'gap'; readonly of: HoldingEntry['of']; readonly at: number; readonly seconds: number }
  /** An alert episode; null: it is not resolved. `silent`: the topic does not tell of it. */
  | { readonly kind: 'alert'; readonly at: number; readonly seconds: number | null; readonly severity: Severity; readonly silent?: boolean }
  /** /status does not answer. */
  | { readonly kind: 'mute'; readonly at: number; readonly seconds: number }
  /** There is no subscription. */
  | { readonly kind: 'deaf'; readonly way: 'topic' | 'events'; readonly at: number; readonly seconds: number }
  /** Nobody looks at what is stored or collected. */
  | { readonly kind: 'blind'; readonly of: HoldingEntry['of']; readonly at: number; readonly seconds: number };

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
