import { median } from '../../src/core/statistics/quantile.ts';

export interface Point {
  readonly at: number;
  readonly value: number;
}

export interface Line {
  /** Change of the value per unit of `at`. */
  readonly slope: number;
  /** The value at 0. */
  readonly intercept: number;
}

/**
 * A larger number of points is thinned evenly, because the number of pairs grows quadratically. Of a week's five-minute
 * medians, every seventh is used.
 */
const MOST_POINTS = 300;

/**
 * The Theil–Sen line: its slope is the median of the slopes between all pairs of points of one series, its intercept the median of value −
 * slope × at. It tolerates up to 29 % of outliers. All series share the slope. Pairs are formed only within a series, so that a restart,
 * which resets memory, does not hide a leak. Null if no series has two points at different times. P. K. Sen, Estimates of the regression
 * coefficient based on Kendall's tau, JASA 63 (1968).
 */
export function theilSen(series: readonly (readonly Point[])[]): Line | null {
  const total = series.reduce((sum, points) => sum + points.length, 0);
  const stride = Math.max(1, Math.ceil(total / MOST_POINTS));
  const thinned = series.map((points) => points.filter((_, index) => index % stride === 0));
  const slopes: number[] = [];
  for (const points of thinned) {
    for (let second = 1; second < points.length; second++) {
      const { at, value } = points[second] as Point;
      // Stryker disable next-line EqualityOperator: a point and itself are not apart, and make no pair
      for (let first = 0; first < second; first++) {
        const before = points[first] as Point;
        if (at !== before.at) slopes.push((value - before.value) / (at - before.at));
      }
    }
  }
  if (slopes.length === 0) return null;
  const slope = median(slopes);
  return { slope, intercept: median(thinned.flat().map(({ at, value }) => value - slope * at)) };
}
