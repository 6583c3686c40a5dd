/** What was lost: pure functions over time stamps, in milliseconds since the epoch. Used by the fault tests. */

/**
 * How many sampling intervals between two moments have no sample. The service was healthy at both moments. A restart begins a new sampling
 * grid, so intervals are counted between neighbours, and from the edges of the span.
 */
export function missingSamples(stamps: readonly number[], periodMs: number, fromMs: number, toMs: number): number {
  const sorted = stamps.filter((stamp) => stamp >= fromMs && stamp < toMs).toSorted((a, b) => a - b);
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (first === undefined || last === undefined) return Math.max(0, Math.floor((toMs - fromMs) / periodMs));
  let missing = Math.floor((first - fromMs) / periodMs) + Math.max(0, Math.ceil((toMs - last) / periodMs) - 1);
  for (const [index, stamp] of sorted.entries()) {
    const previous = sorted[index - 1];
    if (previous !== undefined) missing += Math.max(0, Math.round((stamp - previous) / periodMs) - 1);
  }
  return missing;
}

/** The cause of an alert began or ended. */
export interface Turn {
  readonly atMs: number;
  readonly isHigh: boolean;
}

/** An episode was raised (or changed), or resolved. */
export interface Change {
  readonly atMs: number;
  readonly resolved: boolean;
}

/**
 * The turns that no change of an alert belongs to. A change belongs to a turn of its kind if it is stamped before the next turn, or no more
 * than `graceMs` later: a sample may be in progress at the moment of the turn.
 */
export function turnsWithoutAlert(turns: readonly Turn[], changes: readonly Change[], graceMs: number): Turn[] {
  return turns.filter(({ atMs, isHigh }, index) => {
    const untilMs = (turns[index + 1]?.atMs ?? Number.POSITIVE_INFINITY) + graceMs;
    return !changes.some((change) => change.resolved !== isHigh && change.atMs >= atMs - graceMs && change.atMs <= untilMs);
  });
}

/** The longest time between two neighbours, the edges of the span included, in seconds. */
export function longestGapSeconds(stamps: readonly number[], fromMs: number, toMs: number): number {
  const edges = [fromMs, ...stamps.filter((stamp) => stamp > fromMs && stamp < toMs).toSorted((a, b) => a - b), toMs];
  return Math.max(0, ...edges.slice(1).map((stamp, index) => (stamp - (edges[index] as number)) / 1000));
}
