import uPlot from 'uplot';
import { isolated } from '../../../dashboard/src/chart-math.ts';
import type { ReportSeries } from '../document.ts';
import { type Range, timeLabel } from './axis.ts';
import type { Columns } from './columns.ts';
import { type Color, drawBackground, drawLanes, drawLimit, drawTrend } from './draw.ts';
import { LANES, type Mark } from './marks.ts';
import type { Panel } from './panels.ts';

/** Makes the charts. They share the time axis: its cursor, and what part of it is shown. */

export interface PlotContext {
  readonly series: ReportSeries;
  readonly columns: Columns;
  readonly marks: readonly Mark[];
  readonly whole: Range;
  /** Called when the cursor moves, with its place and the chart under it. */
  readonly onCursor: (plot: uPlot) => void;
}

const SYNC = 'run';
/** Seconds between the lines of the grid. */
const STEPS = [10, 30, 60, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000];
const GUTTER = 62;

function common(element: HTMLElement, context: PlotContext, color: Color): Omit<uPlot.Options, 'axes' | 'series'> {
  return {
    width: Math.max(160, element.clientWidth),
    height: Math.max(40, element.clientHeight),
    legend: { show: false },
    padding: [6, 12, 2, 0],
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    cursor: {
      y: false,
      sync: { key: SYNC, setSeries: false, scales: ['x', null] },
      drag: { x: true, y: false, dist: 6 },
      points: { size: 7 },
    },
    scales: { x: { time: true, range: (_plot, min, max) => (max - min > 1 ? [min, max] : context.whole) } },
    hooks: {
      drawClear: [(plot) => drawBackground(plot, context.marks, color)],
      setCursor: [context.onCursor],
    },
  };
}

function timeAxis(font: string, color: Color, hasLabels: boolean): uPlot.Axis {
  return {
    stroke: () => color('--muted'),
    font,
    grid: { stroke: () => color('--line'), width: 1 },
    ticks: { show: false },
    gap: 4,
    size: hasLabels ? 24 : 4,
    space: 70,
    incrs: STEPS,
    values: (_plot, splits, _axis, _space, step) => splits.map((at) => (hasLabels ? timeLabel(at, step) : '')),
  };
}

/** A chart of lines. */
export function linePlot(element: HTMLElement, panel: Panel, context: PlotContext, font: string, color: Color): uPlot {
  const base = common(element, context, color);
  const lines = panel.lines.map(({ column }) => context.columns.values[column]);
  const options: uPlot.Options = {
    ...base,
    scales: {
      ...base.scales,
      y: { range: (_plot, min, max) => panel.range(Number.isFinite(min) ? min : null, Number.isFinite(max) ? max : null) },
    },
    axes: [
      timeAxis(font, color, false),
      {
        stroke: () => color('--muted'),
        font,
        grid: { stroke: () => color('--line'), width: 1 },
        ticks: { show: false },
        gap: 6,
        size: GUTTER,
        space: 26,
      },
    ],
    series: [
      {},
      ...panel.lines.map(({ color: name, dash }, index): uPlot.Series => {
        const alone = isolated(lines[index] ?? []);
        return {
          stroke: () => color(name),
          width: 1.5,
          dash: [...dash],
          points: { size: 4, fill: () => color(name), filter: (_plot, _series, show) => (show ? null : alone) },
        };
      }),
    ],
  };
  options.hooks = {
    ...base.hooks,
    draw: [
      (plot) => {
        if (panel.hasTrend) drawTrend(plot, context.series, color);
        if (panel.limit !== null) drawLimit(plot, panel.limit, font, color);
      },
    ],
  };
  return new uPlot(options, [[...context.columns.times], ...lines.map((values) => [...values])], element);
}

/** The lowest chart: what happened, a lane for each kind. */
export function lanePlot(element: HTMLElement, context: PlotContext, font: string, color: Color): uPlot {
  const base = common(element, context, color);
  const options: uPlot.Options = {
    ...base,
    scales: { ...base.scales, y: { range: [0, LANES.length] } },
    axes: [
      timeAxis(font, color, true),
      {
        stroke: () => color('--muted'),
        font,
        grid: { show: false },
        ticks: { show: false },
        gap: 6,
        size: GUTTER,
        splits: () => LANES.map((_, index) => LANES.length - index - 0.5),
        values: () => LANES.map((name) => `${name.charAt(0)}${name.slice(1).toLowerCase()}`),
      },
    ],
    series: [{}, { show: false }],
  };
  options.hooks = { ...base.hooks, draw: [(plot) => drawLanes(plot, context.marks, color)] };
  return new uPlot(options, [[...context.columns.times], context.columns.times.map(() => null)], element);
}
