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

/** A rectangle on the chart; y grows downwards. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const isApart = (a: Box, b: Box): boolean => a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;

/**
 * Places a label of each size at its line, the height `y`, inside `area` and beside the labels before it: below the line if possible,
 * because the curve that crossed the threshold is above it, and at the left.
 */
export function placeLabels(labels: readonly { y: number; width: number; height: number }[], area: Box, margin: number): Box[] {
  const placed: Box[] = [];
  for (const { height, width, y: line } of labels) {
    const candidates = [area.x + 2 * margin, area.x + area.width - 2 * margin - width].flatMap((x) =>
      [line + margin, line - margin - height].map((y) => ({ x, y, width, height })),
    );
    const isInside = ({ y }: Box): boolean => y >= area.y && y + height <= area.y + area.height;
    const free = candidates.find((box) => isInside(box) && placed.every((other) => isApart(box, other)));
    placed.push(free ?? (candidates[0] as Box));
  }
  return placed;
}
