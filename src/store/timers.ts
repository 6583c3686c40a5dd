/** What the store asks of time while it waits for its disk or for the next attempt; a test passes its own. */
export interface Timers {
  /** Seconds of a clock that is never set. */
  nowSeconds(): number;
  setTimeout(action: () => void, milliseconds: number): Timer;
  clearTimeout(timer: Timer): void;
}

export interface Timer {
  /** It does not keep the process running. */
  unref(): unknown;
}

export const REAL_TIMERS: Timers = {
  nowSeconds: () => performance.now() / 1000,
  setTimeout: (action, milliseconds) => setTimeout(action, milliseconds),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};
