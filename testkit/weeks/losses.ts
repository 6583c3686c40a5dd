/** Detection of losses: pure functions over time stamps in milliseconds since the epoch. Used by the fault tests. */

/**
 * The number of sampling intervals without a sample between two moments at which the service was healthy. A restart begins a new sampling
 * grid, so intervals are counted between neighbouring samples and from the edges of the span.
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

/** The cause of an alert started or ended. */
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
 * The turns without a matching change of an alert. A change matches a turn of its kind if its time stamp is before the next turn, or at
 * most `graceMs` later, because a sample may be in progress at the moment of the turn.
 */
export function turnsWithoutAlert(turns: readonly Turn[], changes: readonly Change[], graceMs: number): Turn[] {
  return turns.filter(({ atMs, isHigh }, index) => {
    const untilMs = (turns[index + 1]?.atMs ?? Number.POSITIVE_INFINITY) + graceMs;
    return !changes.some((change) => change.resolved !== isHigh && change.atMs >= atMs - graceMs && change.atMs <= untilMs);
  });
}

/** The longest time between two neighbours, including the edges of the span, in seconds. */
export function longestGapSeconds(stamps: readonly number[], fromMs: number, toMs: number): number {
  const edges = [fromMs, ...stamps.filter((stamp) => stamp > fromMs && stamp < toMs).toSorted((a, b) => a - b), toMs];
  return Math.max(0, ...edges.slice(1).map((stamp, index) => (stamp - (edges[index] as number)) / 1000));
}
