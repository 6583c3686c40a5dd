/** A fixed grid of monotonic time: sampling interval n begins at origin + n × period, regardless of earlier intervals. */
export interface Grid {
  readonly originSeconds: number;
  readonly periodSeconds: number;
}

/** Clock readings and timers differ by rounding; an interval counts as begun this much early. */
const TOLERANCE_SECONDS = 20e-6;

/** Number of the interval that contains `nowSeconds`. */
export function intervalAt(grid: Grid, nowSeconds: number): number {
  return Math.floor((nowSeconds - grid.originSeconds + TOLERANCE_SECONDS) / grid.periodSeconds);
}

export function intervalStartSeconds(grid: Grid, interval: number): number {
  return grid.originSeconds + interval * grid.periodSeconds;
}

/** The next action: take the sample of `interval` (having missed some before it), or wait for its start. */
type GridPlan =
  | { readonly kind: 'sample'; readonly interval: number; readonly missed: number }
  | { readonly kind: 'wait'; readonly seconds: number };

/**
 * Decides the next action without a timer of its own. `nextInterval` is the first interval without a sample. A late wake-up takes the
 * sample of the current interval and counts the missed ones; the grid never shifts.
 */
export function planGrid(grid: Grid, nextInterval: number, nowSeconds: number): GridPlan {
  const interval = intervalAt(grid, nowSeconds);
  if (interval >= nextInterval) return { kind: 'sample', interval, missed: interval - nextInterval };
  return { kind: 'wait', seconds: intervalStartSeconds(grid, nextInterval) - nowSeconds };
}
