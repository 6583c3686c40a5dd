/** `2026-03-04T05:06:07.089Z` for milliseconds since the epoch: the one form of time stamps in this product. */
export function isoUtc(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

/** Durations are sums and differences of floating-point seconds; they are compared this loosely, so that rounding decides nothing. */
export const EPSILON_SECONDS = 1e-6;

/** What the service asks of the machine's clocks; a test passes its own. */
export interface Clocks {
  /** Seconds on a clock that never steps and stands still while the machine sleeps (CLOCK_MONOTONIC). */
  monotonicSeconds(): number;
  /** Wall-clock milliseconds since the epoch (CLOCK_REALTIME); may step. */
  wallMilliseconds(): number;
  /** Seconds since boot, sleep included (CLOCK_BOOTTIME); null where it cannot be read. */
  bootSeconds(): number | null;
}
