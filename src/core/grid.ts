/** A fixed grid of monotonic time: slot n begins at origin + n × period, whatever happened to the slots before. */
export interface Grid {
  readonly originSeconds: number;
  readonly periodSeconds: number;
}

/** Clock readings and timers differ by rounding; a slot counts as begun this much early. */
const TOLERANCE_SECONDS = 20e-6;

/** Number of the slot that `nowSeconds` lies in. */
export function slotAt(grid: Grid, nowSeconds: number): number {
  return Math.floor((nowSeconds - grid.originSeconds + TOLERANCE_SECONDS) / grid.periodSeconds);
}

export function slotStartSeconds(grid: Grid, slot: number): number {
  return grid.originSeconds + slot * grid.periodSeconds;
}

/** What to do at a given moment: take the sample of `slot` (having missed some before it), or wait for its start. */
export type GridPlan =
  | { readonly kind: 'sample'; readonly slot: number; readonly missed: number }
  | { readonly kind: 'wait'; readonly seconds: number };

/**
 * Decides from numbers alone; the timer only obeys. `nextSlot` is the first slot not yet taken. A late wake-up takes the
 * sample of the slot it falls in and counts the ones it slept through; it never shifts the grid.
 */
export function planGrid(grid: Grid, nextSlot: number, nowSeconds: number): GridPlan {
  const slot = slotAt(grid, nowSeconds);
  if (slot >= nextSlot) return { kind: 'sample', slot, missed: slot - nextSlot };
  return { kind: 'wait', seconds: slotStartSeconds(grid, nextSlot) - nowSeconds };
}
