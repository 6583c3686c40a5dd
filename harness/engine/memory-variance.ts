import { median } from '../../src/core/statistics/quantile.ts';
import { type Point, theilSen } from './theil-sen.ts';

export const WARM_UP_SECONDS = 3600;
export const MEDIAN_SECONDS = 300;

interface MemoryReadings {
  /** Times in seconds, in ascending order. */
  readonly at: ArrayLike<number>;
  readonly bytes: ArrayLike<number>;
  /** Start of each service run, in ascending order. */
  readonly starts: readonly number[];
  readonly warmUpSeconds: number;
  readonly medianSeconds: number;
}

export interface MemoryVariance {
  /** For each service run that lasted beyond its warm-up, the medians of the readings in each interval, placed at its middle. */
  readonly medians: readonly (readonly Point[])[];
  readonly count: number;
  readonly min: number;
  readonly max: number;
  readonly median: number;
  /** (max − min) / median × 100. */
  readonly percent: number;
  /** Bytes per second (Theil–Sen, within the runs); null if no run has two medians. */
  readonly slope: number | null;
  /** Value of the same line at second 0. */
  readonly intercept: number | null;
}

interface Stretch {
  readonly run: number;
  readonly middle: number;
  readonly readings: number[];
}

/** Medians over intervals of `medianSeconds`, which start at each service start plus `warmUpSeconds`. */
export function memoryMedians({ at, bytes, starts, warmUpSeconds, medianSeconds }: MemoryReadings): Point[][] {
  const stretches: Stretch[] = [];
  let run = -1;
  for (const [index, time] of Array.from(at).entries()) {
    while (time >= (starts[run + 1] as number)) run++;
    const begin = (starts[run] as number) + warmUpSeconds;
    const number = Math.floor((time - begin) / medianSeconds);
    if (!(number >= 0)) continue;
    const middle = begin + (number + 0.5) * medianSeconds;
    const last = stretches.at(-1);
    if (last?.run === run && last.middle === middle) last.readings.push(bytes[index] as number);
    else stretches.push({ run, middle, readings: [bytes[index] as number] });
  }
  const runs = Map.groupBy(stretches, (stretch) => stretch.run);
  return [...runs.values()].map((points) => points.map(({ middle, readings }) => ({ at: middle, value: median(readings) })));
}

/** The spread and the trend of the service's memory, or null if no reading was taken after a warm-up. */
export function memoryVariance(readings: MemoryReadings): MemoryVariance | null {
  const medians = memoryMedians(readings);
  const values = Float64Array.from(medians.flat(), ({ value }) => value).sort();
  if (values.length === 0) return null;
  const [min, max, middle] = [values[0] as number, values.at(-1) as number, median(values)];
  const line = theilSen(medians);
  return {
    medians,
    count: values.length,
    min,
    max,
    median: middle,
    percent: ((max - min) / middle) * 100,
    slope: line?.slope ?? null,
    intercept: line?.intercept ?? null,
  };
}
