import { temperatureRange } from '../../../dashboard/src/chart-math.ts';
import type { ReportSeries } from '../document.ts';

/** The line charts: their lines, limits and ranges. */

export type Range = [low: number, high: number];

const RATE_BOTTOMS = [98, 95, 90, 80, 50, 0];

/** Range of a rate in percent: close to 100 if all values are, so that a lost status is visible. */
export function rateRange(min: number | null, max: number | null): Range {
  const bottom = RATE_BOTTOMS.find((candidate) => candidate <= (min ?? 100)) ?? 0;
  return [bottom, Math.max(100, max ?? 100) + (100 - bottom) * 0.12];
}

/** Range of memory: spans at least a tenth of the value, which is the limit, so that noise looks small. */
export function memoryRange(min: number | null, max: number | null): Range {
  if (min === null || max === null) return [0, 100];
  const middle = (min + max) / 2;
  const span = Math.max(max - min, 0.1 * middle, 1);
  return [Math.max(0, middle - 0.65 * span), middle + 0.65 * span];
}

/** Range of CPU usage in percent: from 0, up to the limit if the values come near it. */
export function cpuRange(max: number | null, limit: number): Range {
  const top = Math.max(0.5, (max ?? 0) * 1.25);
  return [0, top > 0.6 * limit ? Math.max(top, 1.15 * limit) : top];
}

export const COLUMNS = ['rate_percent', 'memory_megabytes', 'cpu_percent', 'host_cpu_percent', 'host_memory_percent', 'celsius'] as const;
export type Column = (typeof COLUMNS)[number];

/** Two lines of one panel also differ in their dashes, not only in colour. */
export interface Line {
  readonly column: Column;
  readonly name: string;
  readonly color: '--chart' | '--second' | '--chart-soft';
  readonly dash: readonly number[];
}

export interface Panel {
  readonly title: string;
  readonly unit: string;
  readonly digits: number;
  readonly lines: readonly Line[];
  readonly range: (min: number | null, max: number | null) => Range;
  /** Limit of a criterion, drawn if it is within the range. */
  readonly limit?: { readonly value: number; readonly text: string };
  /** Draws the medians and the trend of memory. */
  readonly hasTrend?: true;
}

const CPU_LIMIT = 10;
const RATE_LIMIT = 99;

const single = (column: Column, color: Line['color'] = '--chart'): readonly Line[] => [{ column, name: '', color, dash: [] }];

/** In order from the top. */
const PANELS: readonly Panel[] = [
  {
    title: 'Received of expected statuses',
    unit: '%',
    digits: 2,
    lines: single('rate_percent'),
    range: rateRange,
    limit: { value: RATE_LIMIT, text: `above ${RATE_LIMIT} % over the run` },
  },
  {
    title: 'Memory of the service',
    unit: 'MB',
    digits: 1,
    lines: single('memory_megabytes', '--chart-soft'),
    range: memoryRange,
    hasTrend: true,
  },
  {
    title: 'CPU of the service, of one core',
    unit: '%',
    digits: 2,
    lines: single('cpu_percent'),
    range: (_, max) => cpuRange(max, CPU_LIMIT),
    limit: { value: CPU_LIMIT, text: `below ${CPU_LIMIT} % on average` },
  },
  {
    title: 'CPU and memory of the machine',
    unit: '%',
    digits: 1,
    lines: [
      { column: 'host_cpu_percent', name: 'CPU', color: '--chart', dash: [] },
      { column: 'host_memory_percent', name: 'memory', color: '--second', dash: [6, 3] },
    ],
    range: () => [0, 100],
  },
  {
    title: 'Temperature of the machine',
    unit: '°C',
    digits: 1,
    lines: single('celsius'),
    range: (min, max) => temperatureRange(min, max, []),
  },
];

/** The panels that have data. */
export function knownPanels(series: ReportSeries): Panel[] {
  return PANELS.filter(({ lines }) => lines.some(({ column }) => series[column].some((value) => value !== null)));
}
