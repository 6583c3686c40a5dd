import type { ShutdownReason, ShutdownStep } from './shutdown.ts';

/** Whether a step that fails ends the shutdown or is passed over. */
export type OnFailure = 'skip' | 'abort';

/** A machine in danger goes down whatever fails on the way; one that somebody wants to switch off waits until that is put right. */
export const ON_FAILURE: Readonly<Record<ShutdownReason, OnFailure>> = {
  OVERTEMP: 'skip',
  CRITICAL_ALERT: 'skip',
  EMERGENCY: 'skip',
  POWER_LOW: 'skip',
  MAINTENANCE: 'abort',
  MANUAL: 'abort',
  USER_REQUEST: 'abort',
};

/** How a step ended. `out_of_time`: it was still at work when the time for it was over; `stopped`: the service was told to end. */
export type StepOutcome = 'done' | 'failed' | 'out_of_time' | 'stopped';

/** A step that is under way, or how it all ended. */
export type ShutdownPhase = ShutdownStep | 'completed' | 'aborted';

type Row = Readonly<Record<StepOutcome, ShutdownPhase | Readonly<Record<OnFailure, ShutdownPhase>>>>;

/**
 * What follows each step. Time that runs out never aborts: what is left is passed over, but for the store and the last step.
 * The store never aborts either: by then hooks have run and units are down, and what it cannot write (a full disk) is the
 * smaller loss.
 */
const NEXT: Readonly<Record<ShutdownStep, Row>> = {
  announce: { done: 'hooks', failed: 'hooks', out_of_time: 'store', stopped: 'aborted' },
  hooks: { done: 'stop_units', failed: { skip: 'stop_units', abort: 'aborted' }, out_of_time: 'store', stopped: 'aborted' },
  stop_units: { done: 'store', failed: { skip: 'store', abort: 'aborted' }, out_of_time: 'store', stopped: 'aborted' },
  store: { done: 'power', failed: 'power', out_of_time: 'power', stopped: 'aborted' },
  power: { done: 'completed', failed: 'aborted', out_of_time: 'aborted', stopped: 'aborted' },
};

export function nextPhase(step: ShutdownStep, outcome: StepOutcome, reason: ShutdownReason): ShutdownPhase {
  const next = NEXT[step][outcome];
  return typeof next === 'string' ? next : next[ON_FAILURE[reason]];
}

/** When what, in seconds from the start. */
export interface ShutdownTimes {
  /** What hooks and units still run then is terminated (SIGTERM). */
  readonly terminateAt: number;
  /** From SIGTERM to SIGKILL, at most. */
  readonly graceSeconds: number;
  /** The store is waited for until then, but for this long at least. */
  readonly deadline: number;
  readonly storeSeconds: number;
}

/** Kept at the end for what hangs, the store, and the machine's own way down, a third each: this share of the timeout, but not longer. */
const RESERVE_SHARE = 0.25;
const MAX_RESERVE_SECONDS = 6;

/** Divides the time so that the last step comes in time for the deadline even where every step before it hangs. */
export function shutdownTimes(timeoutSeconds: number): ShutdownTimes {
  const reserve = Math.min(timeoutSeconds * RESERVE_SHARE, MAX_RESERVE_SECONDS);
  return { terminateAt: timeoutSeconds - reserve, graceSeconds: reserve / 3, storeSeconds: reserve / 3, deadline: timeoutSeconds };
}
