import { formatDuration } from '../../../src/core/time/duration.ts';
import type { Evidence, ServiceRun } from '../evidence.ts';
import { rounded } from '../format.ts';
import { type Judgement, marginOf, type Table } from '../judgement.ts';
import { MEDIAN_SECONDS, type MemoryVariance, memoryVariance, WARM_UP_SECONDS } from '../memory-variance.ts';
import type { Point } from '../theil-sen.ts';

const LIMIT_PERCENT = 10;
const LEAST_MEDIANS = 3;
/** The required share of the five-minute medians expected medians. */
const LEAST_SHARE = 0.9;
const DAY_SECONDS = 86_400;
const FORECAST_DAYS = 90;

/** The variance that the criterion computes from the readings, or null if none was taken after a warm-up. */
export function stabilityOf({ memory, runs }: Evidence): MemoryVariance | null {
  const starts = runs.map(({ from }) => from);
  return memoryVariance({ at: memory.at, bytes: memory.bytes, starts, warmUpSeconds: WARM_UP_SECONDS, medianSeconds: MEDIAN_SECONDS });
}

/** The number of medians that five-minute intervals of the observed time would give, awake and after the warm-up of each run. */
export function mediansExpected({ runs, observed, suspends }: Evidence): number {
  let seconds = 0;
  for (const [index, run] of runs.entries()) {
    const begin = run.from + WARM_UP_SECONDS;
    const end = runs[index + 1]?.from ?? Number.POSITIVE_INFINITY;
    for (const span of observed) {
      const from = Math.max(begin, span.from);
      const to = Math.min(end, span.to);
      seconds += Math.max(0, to - from);
      for (const { at, seconds: slept } of suspends) seconds -= Math.max(0, Math.min(to, at + slept) - Math.max(from, at));
    }
  }
  return Math.floor(seconds / MEDIAN_SECONDS);
}

/** Passes if the service's memory varies by less than 10 % over five-minute medians, without each run's first hour. */
export function judgeStability(evidence: Evidence): Judgement {
  const variance = stabilityOf(evidence);
  const expected = mediansExpected(evidence);
  const count = variance?.count ?? 0;
  const known = count < LEAST_MEDIANS ? null : variance;
  const missing: string[] = [];
  if (count < LEAST_MEDIANS)
    missing.push(
      `${count} five-minute medians after the warm-up of ${formatDuration(WARM_UP_SECONDS)}, at least ${LEAST_MEDIANS} are needed`,
    );
  if (count < expected * LEAST_SHARE)
    missing.push(`${count} of ${expected} five-minute medians, at least ${LEAST_SHARE * 100} % are needed`);
  const limit = { comparison: '<', value: LIMIT_PERCENT, unit: '%' } as const;
  const verdict = (known?.percent ?? 0) >= LIMIT_PERCENT ? 'FAIL' : missing.length > 0 ? 'INCOMPLETE' : 'PASS';
  const megabytesADay = variance?.slope == null ? null : (variance.slope * DAY_SECONDS) / 1e6;
  return {
    criterion: 'stability',
    title: 'Stability',
    verdict,
    requirement: 'memory usage variance below 10 %',
    formula:
      '(max − min) ÷ median × 100 < 10 %, over the five-minute medians (counted from the start of each run of the service) of the resident memory (VmRSS) of the main process, without the first hour after each start; ' +
      'slope: Theil–Sen, the median of the slopes between all pairs of these medians of one run',
    measured: { label: 'spread', value: known?.percent ?? null, unit: '%' },
    limit,
    margin: known === null ? null : marginOf(known.percent, limit),
    summary:
      known === null
        ? 'Too few readings after the warm-up.'
        : `${rounded(known.min / 1e6, 2)} to ${rounded(known.max / 1e6, 2)} MB around ${rounded(known.median / 1e6, 2)} MB: ${rounded(known.percent, 2)} %.`,
    evidence: [
      { label: 'lowest median', value: megabytes(variance?.min), unit: 'MB' },
      { label: 'highest median', value: megabytes(variance?.max), unit: 'MB' },
      { label: 'median of the medians', value: megabytes(variance?.median), unit: 'MB' },
      { label: 'five-minute medians', value: count, unit: '' },
      { label: 'expected medians', value: expected, unit: '' },
      { label: 'slope', value: megabytesADay, unit: 'MB/d', informative: true },
      {
        label: 'growth in 90 days',
        value: megabytesADay === null ? null : megabytesADay * FORECAST_DAYS,
        unit: 'MB',
        informative: true,
      },
      { label: 'control group, highest', value: megabytes(evidence.memory.group?.maxBytes), unit: 'MB', informative: true },
      { label: 'control group, last', value: megabytes(evidence.memory.group?.lastBytes), unit: 'MB', informative: true },
      { label: 'memory of the machine, mean', value: mean(evidence.memory.hostPercent), unit: '%', informative: true },
    ],
    tables: variance === null ? [] : [runTable(evidence, variance)],
    missing,
  };
}

function megabytes(bytes: number | undefined): number | null {
  return bytes === undefined ? null : bytes / 1e6;
}

/** Mean of the known values. */
function mean(values: Float64Array): number | null {
  const known = values.filter((value) => !Number.isNaN(value));
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}

function runTable({ runs }: Evidence, { medians }: MemoryVariance): Table {
  const rows = medians.map((points) => {
    const { at } = points[0] as Point;
    const values = points.map(({ value }) => value / 1e6);
    const { started } = runs.findLast(({ from }) => from < at) as ServiceRun;
    return [started, points.length, Math.min(...values), Math.max(...values), values[0] as number, values.at(-1) as number];
  });
  return { title: 'Memory by run of the service', columns: ['started', 'medians', 'lowest MB', 'highest MB', 'first MB', 'last MB'], rows };
}
