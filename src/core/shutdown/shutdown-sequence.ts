import type { ShutdownReason, ShutdownStep } from './shutdown.ts';

/** Whether a failing step aborts the shutdown or is skipped. */
export type OnFailure = 'skip' | 'abort';

/** A machine in danger shuts down despite failures; a requested shutdown aborts so that the failure can be fixed. */
export const ON_FAILURE: Readonly<Record<ShutdownReason, OnFailure>> = {
  OVERTEMP: 'skip',
  CRITICAL_ALERT: 'skip',
  EMERGENCY: 'skip',
  POWER_LOW: 'skip',
  MAINTENANCE: 'abort',
  MANUAL: 'abort',
  USER_REQUEST: 'abort',
};

/** How a step ended. `out_of_time`: its time limit was reached; `stopped`: the service was stopped. */
export type StepOutcome = 'done' | 'failed' | 'out_of_time' | 'stopped';

/** The step in progress, or the final outcome. */
export type ShutdownPhase = ShutdownStep | 'completed' | 'aborted';

type Row = Readonly<Record<StepOutcome, ShutdownPhase | Readonly<Record<OnFailure, ShutdownPhase>>>>;

/**
 * The successor of each step. A timeout never aborts: the rest is skipped, except the store and the last step. The store never aborts
 * either: hooks have run and units are stopped by then, and losing unwritten records (disk full) is the smaller loss.
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

/** Times of the procedure, in seconds from the start. */
export interface ShutdownTimes {
  /** When running hooks and units are terminated (SIGTERM). */
  readonly terminateAt: number;
  /** Longest time from SIGTERM to SIGKILL. */
  readonly graceSeconds: number;
  /** The store may write until `deadline`, and for at least `storeSeconds`. */
  readonly deadline: number;
  readonly storeSeconds: number;
}

/** Reserve at the end for hanging steps, the store and the power-off, a third each: this share of the timeout, up to a maximum. */
const RESERVE_SHARE = 0.25;
const MAX_RESERVE_SECONDS = 6;

/** Divides the timeout so that the last step begins before the deadline even if every earlier step hangs. */
export function shutdownTimes(timeoutSeconds: number): ShutdownTimes {
  const reserve = Math.min(timeoutSeconds * RESERVE_SHARE, MAX_RESERVE_SECONDS);
  return { terminateAt: timeoutSeconds - reserve, graceSeconds: reserve / 3, storeSeconds: reserve / 3, deadline: timeoutSeconds };
}
