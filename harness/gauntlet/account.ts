/** What was lost: pure functions over time stamps, in milliseconds since the epoch. */

/**
 * How many slots of the sampling grid have no sample between two moments, at both of which it was well. A restart begins a grid of its
 * own, so that slots are counted between neighbours, and from the edges of the span.
 */
export function slotsWithout(stamps: readonly number[], periodMs: number, fromMs: number, toMs: number): number {
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
 * The turns that no change answers. A turn is answered by a change of its kind that is stamped before the next turn, or no more than
 * `graceMs` later: a sample may be under way while the cause turns.
 */
export function unanswered(turns: readonly Turn[], changes: readonly Change[], graceMs: number): Turn[] {
  return turns.filter(({ atMs, isHigh }, index) => {
    const untilMs = (turns[index + 1]?.atMs ?? Number.POSITIVE_INFINITY) + graceMs;
    return !changes.some((change) => change.resolved !== isHigh && change.atMs >= atMs - graceMs && change.atMs <= untilMs);
  });
}

/** The longest time between two neighbours, the edges of the span included, in seconds. */
export function longestSilenceSeconds(stamps: readonly number[], fromMs: number, toMs: number): number {
  const edges = [fromMs, ...stamps.filter((stamp) => stamp > fromMs && stamp < toMs).toSorted((a, b) => a - b), toMs];
  return Math.max(0, ...edges.slice(1).map((stamp, index) => (stamp - (edges[index] as number)) / 1000));
}
