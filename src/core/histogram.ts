/** Width of a histogram's bin in the metric's unit; a percentile read from it is true to half of that. */
export const BIN_WIDTH = 0.1;

/** Values beyond ± 100 million share the outermost bins, so that a bin is always a small integer. */
const LAST_BIN = 1e9;

/** Counts by bin; bin b holds the values that round to b × BIN_WIDTH. */
export type Histogram = Map<number, number>;

export function addToHistogram(histogram: Histogram, value: number): void {
  const bin = Math.max(-LAST_BIN, Math.min(LAST_BIN, Math.round(value / BIN_WIDTH)));
  histogram.set(bin, (histogram.get(bin) ?? 0) + 1);
}

export function mergeHistograms(into: Histogram, from: Histogram): void {
  for (const [bin, count] of from) into.set(bin, (into.get(bin) ?? 0) + count);
}

/** Percentiles by the nearest-rank method (the smallest value with at least q of all at or below it), in the order of `quantiles`. */
export function percentiles(histogram: Histogram, quantiles: readonly number[]): (number | null)[] {
  const bins = [...histogram].sort(([a], [b]) => a - b);
  const total = bins.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return quantiles.map(() => null);
  return quantiles.map((quantile) => {
    const rank = Math.max(1, Math.ceil(quantile * total));
    let seen = 0;
    for (const [bin, count] of bins) {
      seen += count;
      if (seen >= rank) return Math.round(bin * BIN_WIDTH * 10) / 10;
    }
    return null;
  });
}
