/** Middle value, or the mean of the two in the middle; NaN of nothing. Rearranges `values`. */
export function median(values: Float64Array): number {
  const { length } = values;
  const upper = select(values, length >> 1);
  if (length % 2 === 1) return upper;
  // What select leaves before its place is not above it: the other middle value is the highest of these.
  let lower = values[0] as number;
  for (let index = 1; index < length >> 1; index++) lower = Math.max(lower, values[index] as number);
  return (lower + upper) / 2;
}

/**
 * The value that would be at `place` (from 0) were `values` in order; rearranges them so that none before it is above it and
 * none behind it below it. Hoare, Algorithm 65: Find, Communications of the ACM 4 (1961); linear on average.
 */
function select(values: Float64Array, place: number): number {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const pivot = values[(low + high) >> 1] as number;
    let left = low;
    let right = high;
    while (left <= right) {
      while ((values[left] as number) < pivot) left++;
      while ((values[right] as number) > pivot) right--;
      if (left > right) break;
      const swapped = values[left] as number;
      values[left++] = values[right] as number;
      values[right--] = swapped;
    }
    if (place <= right) high = right;
    else low = left;
  }
  return values[place] as number;
}

export interface Point {
  readonly at: number;
  readonly value: number;
}

export interface Line {
  /** Of the value per unit of `at`. */
  readonly slope: number;
  /** The value at 0. */
  readonly intercept: number;
}

/** More points are thinned evenly, as the pairs grow with the square: of a week's five-minute medians every seventh is taken. */
const MOST_POINTS = 300;

/**
 * The line of Theil and Sen: its slope is the median of the slopes between all pairs of points of one series, its intercept the
 * median of value − slope × at. A few wild points do not move it (up to 29 % of them). Several series have the slope in common;
 * pairs are made within each alone, so that a restart, which sets memory back, hides no leak. Null where no two points of a series
 * are apart. P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, JASA 63 (1968).
 */
export function theilSen(series: readonly (readonly Point[])[]): Line | null {
  const total = series.reduce((sum, points) => sum + points.length, 0);
  const stride = Math.max(1, Math.ceil(total / MOST_POINTS));
  const thinned = series.map((points) => points.filter((_, index) => index % stride === 0));
  const slopes: number[] = [];
  for (const points of thinned) {
    for (let second = 1; second < points.length; second++) {
      const { at, value } = points[second] as Point;
      for (let first = 0; first < second; first++) {
        const before = points[first] as Point;
        if (at !== before.at) slopes.push((value - before.value) / (at - before.at));
      }
    }
  }
  if (slopes.length === 0) return null;
  const slope = median(Float64Array.from(slopes));
  return { slope, intercept: median(Float64Array.from(thinned.flat(), ({ at, value }) => value - slope * at)) };
}
