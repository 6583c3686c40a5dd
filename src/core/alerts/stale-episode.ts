import { EPSILON_SECONDS } from '../time/time.ts';

/**
 * Detects that something which should keep arriving (a sensor's readings, a node's statuses) is stale. That is a failure of the
 * monitoring itself, an ERROR. What never arrived cannot become stale.
 */
export interface StaleState {
  /** Monotonic seconds of the last good reading; null: there was none. */
  readonly lastGoodSeconds: number | null;
  /** Monotonic seconds since when readings arrive without a miss; null while they are missing. */
  readonly goodSinceSeconds: number | null;
  readonly open: boolean;
}

export type StaleChange = 'raise' | 'resolve' | null;

export interface StaleStep {
  readonly state: StaleState;
  readonly change: StaleChange;
  /** Seconds since the last good reading: the alert's value. */
  readonly staleSeconds: number;
}

/** `lastGoodSeconds`: the last good reading before this process, on this process's clock; null: none. */
export function initialStaleState(lastGoodSeconds: number | null, open: boolean): StaleState {
  return { lastGoodSeconds, goodSinceSeconds: null, open };
}

/**
 * Advances by one observation. The episode is raised once the gap exceeds `allowedSeconds`, and resolved after `clearAfterSeconds`
 * without a miss, so that an intermittent sensor is one episode, not many.
 */
export function stepStale(
  state: StaleState,
  isPresent: boolean,
  atSeconds: number,
  allowedSeconds: number,
  clearAfterSeconds: number,
): StaleStep {
  if (isPresent) {
    const since = state.goodSinceSeconds ?? atSeconds;
    const resolved = state.open && atSeconds - since + EPSILON_SECONDS >= clearAfterSeconds;
    return {
      state: { lastGoodSeconds: atSeconds, goodSinceSeconds: since, open: state.open && !resolved },
      change: resolved ? 'resolve' : null,
      staleSeconds: 0,
    };
  }
  // An episode that was open at the start and whose last good reading is unknown counts from now.
  const last = state.lastGoodSeconds ?? (state.open ? atSeconds : null);
  const staleSeconds = last === null ? 0 : Math.max(0, atSeconds - last);
  const raised = !state.open && last !== null && staleSeconds > allowedSeconds + EPSILON_SECONDS;
  return {
    state: { lastGoodSeconds: last, goodSinceSeconds: null, open: state.open || raised },
    change: raised ? 'raise' : null,
    staleSeconds,
  };
}
