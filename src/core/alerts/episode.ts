import { EPSILON_SECONDS } from '../time/time.ts';
import type { Threshold } from './alert.ts';

/** Level of a threshold episode; `none`: no episode is open. */
export type Level = 'none' | 'WARNING' | 'CRITICAL';

/** Position of a reading relative to the thresholds; hysteresis separates "below" from "at or above". */
type Condition = 'atWarning' | 'atCritical' | 'belowWarning' | 'belowCritical';

interface Transition {
  readonly from: Level;
  readonly when: Condition;
  readonly after: 'raise' | 'clear';
  readonly to: Level;
}

/**
 * All transitions; the first one due is taken, at most one per sample. CRITICAL comes first: a value at or above both thresholds for long
 * enough is not published as WARNING first. Anything not listed keeps the level, in particular every value inside a hysteresis band.
 */
export const TRANSITIONS: readonly Transition[] = [
  { from: 'none', when: 'atCritical', after: 'raise', to: 'CRITICAL' },
  { from: 'none', when: 'atWarning', after: 'raise', to: 'WARNING' },
  { from: 'WARNING', when: 'atCritical', after: 'raise', to: 'CRITICAL' },
  { from: 'WARNING', when: 'belowWarning', after: 'clear', to: 'none' },
  { from: 'CRITICAL', when: 'belowWarning', after: 'clear', to: 'none' },
  { from: 'CRITICAL', when: 'belowCritical', after: 'clear', to: 'WARNING' },
];

export interface AlertTiming {
  /** How far, in percent of the threshold, a value must lie below it before an episode falls back. */
  readonly hysteresisPercent: number;
  readonly raiseAfterSeconds: number;
  readonly clearAfterSeconds: number;
  /** Seconds without a good reading after which a sensor that worked before is an ERROR. */
  readonly sensorTimeoutSeconds: number;
  /** The longest time between two samples that counts as observed; a longer stall counts as this much. */
  readonly longestIntervalSeconds: number;
}

/** Seconds for which each condition has held without interruption; null: it does not hold. */
type Held = Record<Condition, number | null>;

/** State of one metric's threshold episode: plain data, replaced by each step. */
export interface EpisodeState {
  readonly level: Level;
  readonly held: Readonly<Held>;
  /** Monotonic seconds of the last sample, with or without a reading; null: none. */
  readonly lastSampleSeconds: number | null;
}

export const NOTHING_HELD: Readonly<Held> = { atWarning: null, atCritical: null, belowWarning: null, belowCritical: null };

export function freshEpisode(level: Level = 'none'): EpisodeState {
  return { level, held: NOTHING_HELD, lastSampleSeconds: null };
}

export interface EpisodeStep {
  readonly state: EpisodeState;
  /** The transition taken, if any. */
  readonly taken: Transition | null;
}

function conditions(value: number, threshold: Threshold, hysteresisPercent: number): Record<Condition, boolean> {
  const margin = (limit: number): number => (Math.abs(limit) * hysteresisPercent) / 100;
  return {
    atWarning: value >= threshold.warning,
    atCritical: value >= threshold.critical,
    belowWarning: value < threshold.warning - margin(threshold.warning),
    belowCritical: value < threshold.critical - margin(threshold.critical),
  };
}

/**
 * Advances an episode by one sample. A missing reading (null) changes nothing and stops every clock: it can neither raise nor clear, and
 * the time up to it is not counted.
 */
export function stepEpisode(
  state: EpisodeState,
  reading: number | null,
  atSeconds: number,
  threshold: Threshold,
  timing: AlertTiming,
): EpisodeStep {
  if (reading === null) return { state: { ...state, lastSampleSeconds: atSeconds }, taken: null };
  // A sample accounts for the time since the previous one, but not for a stall without observations.
  const sinceLast = state.lastSampleSeconds === null ? 0 : Math.max(0, atSeconds - state.lastSampleSeconds);
  const elapsed = Math.min(sinceLast, timing.longestIntervalSeconds);
  const now = conditions(reading, threshold, timing.hysteresisPercent);
  const hold = (condition: Condition): number | null => {
    if (!now[condition]) return null;
    const before = state.held[condition];
    return before === null ? 0 : before + elapsed;
  };
  const held: Held = {
    atWarning: hold('atWarning'),
    atCritical: hold('atCritical'),
    belowWarning: hold('belowWarning'),
    belowCritical: hold('belowCritical'),
  };
  const due = (transition: Transition): boolean => {
    const seconds = held[transition.when];
    const needed =
      transition.after === 'raise'
        ? (threshold.raiseAfterSeconds ?? timing.raiseAfterSeconds)
        : (threshold.clearAfterSeconds ?? timing.clearAfterSeconds);
    return transition.from === state.level && seconds !== null && seconds + EPSILON_SECONDS >= needed;
  };
  const taken = TRANSITIONS.find(due) ?? null;
  return { state: { level: taken?.to ?? state.level, held, lastSampleSeconds: atSeconds }, taken };
}

/**
 * Detects that data which should keep arriving (a sensor's readings, a node's statuses) is stale. That is a failure of the monitoring
 * itself, hence an ERROR. Data that never arrived cannot become stale.
 */
export interface StaleState {
  /** Monotonic seconds of the last good reading; null: there was none. */
  readonly lastGoodSeconds: number | null;
  /** Monotonic seconds since which readings have arrived without a miss; null while they are missing. */
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
