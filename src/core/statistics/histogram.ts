/** Width of a histogram's bin in the metric's unit; percentiles are accurate to half of it. */
export const BIN_WIDTH = 0.1;

/** Values beyond ± 100 million share the outermost bins, so that a bin is always a small integer. */
const LAST_BIN = 1e9;

/** More bins than an hour of percentages and temperatures needs; bounds the memory that a node with arbitrary values can use. */
const MAX_BINS = 3000;
/** The limit for many hours together. */
const MAX_MERGED_BINS = 50_000;

/** Counts by bin; bin b holds the values that round to b × BIN_WIDTH. */
export type Histogram = Map<number, number>;

export function addToHistogram(histogram: Histogram, value: number): void {
  add(histogram, Math.max(-LAST_BIN, Math.min(LAST_BIN, Math.round(value / BIN_WIDTH))), 1, MAX_BINS);
}

/** Above this number of bins, a value without a bin is counted in that of the next power of two. */
function add(histogram: Histogram, exact: number, count: number, maxBins: number): void {
  const known = histogram.get(exact);
  const bin = known !== undefined || histogram.size < maxBins ? exact : Math.sign(exact) * 2 ** Math.ceil(Math.log2(Math.abs(exact)));
  histogram.set(bin, (bin === exact ? (known ?? 0) : (histogram.get(bin) ?? 0)) + count);
}

export function mergeHistograms(into: Histogram, from: Histogram): void {
  for (const [bin, count] of from) add(into, bin, count, MAX_MERGED_BINS);
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
