/** `2026-03-04T05:06:07.089Z` for milliseconds since the epoch: the only timestamp format of this product. */
export function isoUtc(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

/** Start of the hour (UTC) that contains a time. */
export function hourOf(timestampMs: number): number {
  return Math.floor(timestampMs / HOUR_MS) * HOUR_MS;
}

/** Pause before an attempt is repeated: 1 s after the first failure, then doubled, at most 30 s. `failures`: consecutive ones, from 1. */
export function retryPauseMs(failures: number): number {
  return Math.min(30, 2 ** (failures - 1)) * 1000;
}

/** Tolerance for comparing durations, which are sums and differences of floating-point seconds. */
export const EPSILON_SECONDS = 1e-6;

/** Rounds to milliseconds, the resolution of the clocks: further digits of sums and differences are artefacts of binary fractions. */
export function roundToMilliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}

/** The machine's clocks; tests inject their own. */
export interface Clocks {
  /** Seconds of a clock that never steps and stops during suspend (CLOCK_MONOTONIC). */
  monotonicSeconds(): number;
  /** Wall-clock milliseconds since the epoch (CLOCK_REALTIME); may step. */
  wallMilliseconds(): number;
  /** Seconds since boot, including suspend (CLOCK_BOOTTIME); null where it cannot be read. */
  bootSeconds(): number | null;
}
