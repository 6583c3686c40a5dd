/** Timers of the store for disk timeouts and retries; tests inject their own. */
export interface Timers {
  /** Seconds of a monotonic clock. */
  nowSeconds(): number;
  setTimeout(action: () => void, milliseconds: number): Timer;
  clearTimeout(timer: Timer): void;
}

export interface Timer {
  /** An unreferenced timer does not keep the process running. */
  unref(): unknown;
}

export const REAL_TIMERS: Timers = {
  nowSeconds: () => performance.now() / 1000,
  setTimeout: (action, milliseconds) => setTimeout(action, milliseconds),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};
