/** Least and greatest value from `fromSeconds` on; null: there is none. */
export function extremes(
  seconds: readonly number[],
  values: readonly (number | null)[],
  fromSeconds: number,
): { min: number; max: number } | null {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i] ?? null;
    if (value === null || (seconds[i] ?? 0) < fromSeconds) continue;
    min = Math.min(min, value);
    max = Math.max(max, value);
  }
  return min <= max ? { min, max } : null;
}

/** Points with a gap on either side: no line leads to them, so they are drawn as dots. */
export function isolated(values: readonly (number | null)[]): number[] {
  const alone: number[] = [];
  for (let i = 0; i < values.length; i += 1) {
    const isValue = (at: number): boolean => (values[at] ?? null) !== null;
    if (isValue(i) && !isValue(i - 1) && !isValue(i + 1)) alone.push(i);
  }
  return alone;
}

const STEP = 10;
const LEAST_SPAN = 40;

/** Whole tens around the data and the thresholds, and no less than 40 degrees of them: noise must not look like a mountain range. */
export function temperatureRange(min: number | null, max: number | null, thresholds: readonly number[]): [number, number] {
  const values = [min, max, ...thresholds].filter((value) => value !== null && Number.isFinite(value)) as number[];
  if (values.length === 0) return [20, 20 + LEAST_SPAN];
  let low = Math.floor((Math.min(...values) - 3) / STEP) * STEP;
  let high = Math.ceil((Math.max(...values) + 3) / STEP) * STEP;
  while (high - low < LEAST_SPAN) {
    low -= STEP;
    if (high - low < LEAST_SPAN) high += STEP;
  }
  return [low, high];
}
