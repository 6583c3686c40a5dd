/** The smallest value such that at least `share` (0 to 1) of the values do not exceed it (nearest rank); NaN of no values. */
export function quantile(values: ArrayLike<number>, share: number): number {
  const sorted = new Float64Array(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN;
}

/** The median: the middle value, or the mean of the two middle ones; NaN of no values. */
export function median(values: ArrayLike<number>): number {
  const sorted = new Float64Array(values).sort();
  const half = sorted.length >> 1;
  const upper = sorted[half] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? Number.NaN) + upper) / 2;
}
