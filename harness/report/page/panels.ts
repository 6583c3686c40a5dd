import { temperatureRange } from '../../../dashboard/src/chart-math.ts';
import { cpuRange, memoryRange, type Range, rateRange } from './axis.ts';
import type { Column } from './columns.ts';

/** A line of a panel. The dashes tell two lines of one panel apart without their colours. */
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
  /** What a criterion asks for, drawn where it lies within the chart. */
  readonly limit: { readonly value: number; readonly text: string } | null;
  /** Whether the medians and the trend of memory belong into it. */
  readonly hasTrend: boolean;
}

const CPU_LIMIT = 10;
const RATE_LIMIT = 99;

function single(column: Column, color: Line['color'] = '--chart'): readonly Line[] {
  return [{ column, name: '', color, dash: [] }];
}

/** The charts over one another, from the top. */
export const PANELS: readonly Panel[] = [
  {
    title: 'Received of expected statuses',
    unit: '%',
    digits: 2,
    lines: single('rate_percent'),
    range: rateRange,
    limit: { value: RATE_LIMIT, text: `above ${RATE_LIMIT} % over the run` },
    hasTrend: false,
  },
  {
    title: 'Memory of the service',
    unit: 'MB',
    digits: 1,
    lines: single('memory_megabytes', '--chart-soft'),
    range: memoryRange,
    limit: null,
    hasTrend: true,
  },
  {
    title: 'CPU of the service, of one core',
    unit: '%',
    digits: 2,
    lines: single('cpu_percent'),
    range: (_, max) => cpuRange(max, CPU_LIMIT),
    limit: { value: CPU_LIMIT, text: `below ${CPU_LIMIT} % on average` },
    hasTrend: false,
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
    limit: null,
    hasTrend: false,
  },
  {
    title: 'Temperature of the machine',
    unit: '°C',
    digits: 1,
    lines: single('celsius'),
    range: (min, max) => temperatureRange(min, max, []),
    limit: null,
    hasTrend: false,
  },
];
