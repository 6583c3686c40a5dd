/** Smallest and largest value since `fromSeconds`; null: no value. */
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

/** Indexes of points with a gap on both sides. No line connects them, so they are drawn as dots. */
export function isolated(values: readonly (number | null)[]): number[] {
  const indexes: number[] = [];
  for (let i = 0; i < values.length; i += 1) {
    const isValue = (at: number): boolean => (values[at] ?? null) !== null;
    if (isValue(i) && !isValue(i - 1) && !isValue(i + 1)) indexes.push(i);
  }
  return indexes;
}

const STEP = 10;
const MIN_SPAN = 40;

/** Whole tens around data and thresholds, spanning at least 40 degrees so that noise is not magnified. */
export function temperatureRange(min: number | null, max: number | null, thresholds: readonly number[]): [number, number] {
  const values = [min, max, ...thresholds].filter((value) => value !== null && Number.isFinite(value)) as number[];
  if (values.length === 0) return [20, 20 + MIN_SPAN];
  let low = Math.floor((Math.min(...values) - 3) / STEP) * STEP;
  let high = Math.ceil((Math.max(...values) + 3) / STEP) * STEP;
  while (high - low < MIN_SPAN) {
    low -= STEP;
    if (high - low < MIN_SPAN) high += STEP;
  }
  return [low, high];
}
