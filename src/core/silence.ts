import { EPSILON_SECONDS } from './time.ts';

/**
 * Watches something that should keep arriving (a sensor's readings, a node's statuses): silence beyond what is allowed
 * is a failure of the monitoring itself, an ERROR. What was never heard cannot fall silent.
 */
export interface SilenceState {
  /** Monotonic seconds of the last good reading; null: never heard. */
  readonly lastGoodSeconds: number | null;
  /** Monotonic seconds since when it has been heard without a miss; null while silent. */
  readonly goodSinceSeconds: number | null;
  readonly open: boolean;
}

export type SilenceChange = 'raise' | 'resolve' | null;

export interface SilenceStep {
  readonly state: SilenceState;
  readonly change: SilenceChange;
  /** Seconds since the last good reading: the alert's value. */
  readonly silentSeconds: number;
}

/** `heardBeforeSeconds`: when it was last heard before this process, on this process's clock; null: never. */
export function freshSilence(heardBeforeSeconds: number | null, open: boolean): SilenceState {
  return { lastGoodSeconds: heardBeforeSeconds, goodSinceSeconds: null, open };
}

/**
 * Advances by one observation. It is raised once silence exceeds `allowedSeconds`, and resolved when it has been heard
 * without a miss for `clearAfterSeconds`, so that a sensor which answers now and then is one episode, not many.
 */
export function stepSilence(
  state: SilenceState,
  heard: boolean,
  atSeconds: number,
  allowedSeconds: number,
  clearAfterSeconds: number,
): SilenceStep {
  if (heard) {
    const since = state.goodSinceSeconds ?? atSeconds;
    const resolved = state.open && atSeconds - since + EPSILON_SECONDS >= clearAfterSeconds;
    return {
      state: { lastGoodSeconds: atSeconds, goodSinceSeconds: since, open: state.open && !resolved },
      change: resolved ? 'resolve' : null,
      silentSeconds: 0,
    };
  }
  // An episode found open at the start whose last good reading nobody knows counts from now.
  const last = state.lastGoodSeconds ?? (state.open ? atSeconds : null);
  const silentSeconds = last === null ? 0 : Math.max(0, atSeconds - last);
  const raised = !state.open && last !== null && silentSeconds > allowedSeconds + EPSILON_SECONDS;
  return {
    state: { lastGoodSeconds: last, goodSinceSeconds: null, open: state.open || raised },
    change: raised ? 'raise' : null,
    silentSeconds,
  };
}
