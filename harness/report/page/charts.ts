import uPlot from 'uplot';
import { isolated } from '../../../dashboard/src/chart-math.ts';
import type { ReportSeries } from '../document.ts';
import { LANES, type Lane } from '../tables.ts';
import type { Panel, Range } from './panels.ts';
import { type Columns, type Mark, timeLabel } from './series.ts';

/** Draws the charts with uPlot. They share the time axis, its cursor and the visible range. */

/** Returns the value of a style sheet colour, which is read for each drawing. */
type Color = (name: string) => string;

interface ChartContext {
  readonly series: ReportSeries;
  readonly columns: Columns;
  readonly marks: readonly Mark[];
  readonly whole: Range;
  readonly font: string;
  readonly color: Color;
  /** Called by each chart when the common cursor moves. */
  readonly onCursor: (plot: uPlot) => void;
}

const SYNC = 'run';
/** Possible distances of grid lines, in seconds. */
const STEPS = [10, 30, 60, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000];
const GUTTER = 62;

/** The options common to all charts; `draw` draws over the lines. */
function options(element: HTMLElement, context: ChartContext, draw: (plot: uPlot) => void): Omit<uPlot.Options, 'axes' | 'series'> {
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
    hooks: {
      drawClear: [(plot) => drawBackground(plot, context)],
      draw: [draw],
      setCursor: [context.onCursor],
    },
  };
}

function timeScale({ whole }: ChartContext): uPlot.Scale {
  return { time: true, range: (_plot, min, max) => (max - min > 1 ? [min, max] : whole) };
}

function timeAxis({ color, font }: ChartContext, hasLabels: boolean): uPlot.Axis {
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

function valueAxis({ color, font }: ChartContext): uPlot.Axis {
  return {
    stroke: () => color('--muted'),
    font,
    grid: { stroke: () => color('--line'), width: 1 },
    ticks: { show: false },
    gap: 6,
    size: GUTTER,
    space: 26,
  };
}

export function linePlot(element: HTMLElement, panel: Panel, context: ChartContext): uPlot {
  const { color, columns } = context;
  const lines = panel.lines.map(({ column }) => columns.values[column]);
  const draw = (plot: uPlot): void => {
    if (panel.hasTrend) drawTrend(plot, context);
    if (panel.limit) drawLimit(plot, panel.limit, context);
  };
  const series = panel.lines.map(({ color: name, dash }, index): uPlot.Series => {
    const alone = isolated(lines[index] ?? []);
    return {
      stroke: () => color(name),
      width: 1.5,
      dash: [...dash],
      points: { size: 4, fill: () => color(name), filter: (_plot, _series, show) => (show ? null : alone) },
    };
  });
  const range = (_plot: uPlot, min: number, max: number): Range =>
    panel.range(Number.isFinite(min) ? min : null, Number.isFinite(max) ? max : null);
  return new uPlot(
    {
      ...options(element, context, draw),
      scales: { x: timeScale(context), y: { range } },
      axes: [timeAxis(context, false), valueAxis(context)],
      series: [{}, ...series],
    },
    [[...columns.times], ...lines.map((values) => [...values])],
    element,
  );
}

/** The lowest chart: the events, one lane for each kind. */
export function lanePlot(element: HTMLElement, context: ChartContext): uPlot {
  const lanes: uPlot.Axis = {
    ...valueAxis(context),
    grid: { show: false },
    splits: () => LANES.map((_, index) => LANES.length - index - 0.5),
    values: () => LANES.map((name) => `${name.charAt(0)}${name.slice(1).toLowerCase()}`),
  };
  return new uPlot(
    {
      ...options(element, context, (plot) => drawLanes(plot, context)),
      scales: { x: timeScale(context), y: { range: [0, LANES.length] } },
      axes: [timeAxis(context, true), lanes],
      series: [{}, { show: false }],
    },
    [[...context.columns.times], context.columns.times.map(() => null)],
    element,
  );
}

const LANE_COLORS: Readonly<Record<Lane, string>> = {
  CRITICAL: '--critical',
  ERROR: '--error-bar',
  WARNING: '--warning',
  Restarts: '--critical-text',
  Gaps: '--faded',
  Clock: '--second',
};

/** Restricts drawing to the chart's area, in canvas pixels. */
function clippedToChart(plot: uPlot, draw: (canvas: CanvasRenderingContext2D, ratio: number) => void): void {
  const { bbox, ctx } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw(ctx, uPlot.pxRatio);
  ctx.restore();
}

function strokeLine(canvas: CanvasRenderingContext2D, fromX: number, fromY: number, toX: number, toY: number): void {
  canvas.beginPath();
  canvas.moveTo(fromX, fromY);
  canvas.lineTo(toX, toY);
  canvas.stroke();
}

const isShown = (plot: uPlot, { from, to }: Mark): boolean => to >= (plot.scales['x']?.min ?? 0) && from <= (plot.scales['x']?.max ?? 0);

/** Behind the lines of every chart: monitoring gaps and suspends as bands, restarts as dashed lines. */
function drawBackground(plot: uPlot, { color, marks }: ChartContext): void {
  clippedToChart(plot, (canvas, ratio) => {
    const { height, top } = plot.bbox;
    canvas.strokeStyle = color('--critical-text');
    canvas.fillStyle = color('--shade');
    canvas.lineWidth = ratio;
    canvas.setLineDash([3 * ratio, 3 * ratio]);
    for (const mark of marks.filter((one) => isShown(plot, one))) {
      const from = plot.valToPos(mark.from, 'x', true);
      if (mark.lane === 'Restarts') strokeLine(canvas, from, top, from, top + height);
      else if (mark.to > mark.from && (mark.lane === 'Gaps' || mark.lane === 'Clock'))
        canvas.fillRect(from, top, Math.max(ratio, plot.valToPos(mark.to, 'x', true) - from), height);
    }
  });
}

/** A bar has a minimum width, so that it is visible in a week. */
function drawLanes(plot: uPlot, { color, marks }: ChartContext): void {
  clippedToChart(plot, (canvas, ratio) => {
    const { height, left, top, width } = plot.bbox;
    const lane = height / LANES.length;
    canvas.strokeStyle = color('--line');
    canvas.lineWidth = ratio;
    for (let index = 1; index < LANES.length; index += 1) {
      const y = Math.round(top + index * lane);
      strokeLine(canvas, left, y, left + width, y);
    }
    for (const mark of marks.filter((one) => isShown(plot, one))) {
      const y = top + LANES.indexOf(mark.lane) * lane;
      const from = plot.valToPos(mark.from, 'x', true);
      canvas.fillStyle = color(LANE_COLORS[mark.lane]);
      if (mark.to === mark.from) drawDiamond(canvas, from, y + lane / 2, Math.min(lane * 0.36, 7 * ratio));
      else canvas.fillRect(from, y + lane * 0.2, Math.max(3 * ratio, plot.valToPos(mark.to, 'x', true) - from), lane * 0.6);
    }
  });
}

function drawDiamond(canvas: CanvasRenderingContext2D, x: number, y: number, size: number): void {
  canvas.beginPath();
  canvas.moveTo(x, y - size);
  canvas.lineTo(x + size, y);
  canvas.lineTo(x, y + size);
  canvas.lineTo(x - size, y);
  canvas.fill();
}

/** Draws the medians that Stability was judged by, and their trend. */
function drawTrend(plot: uPlot, { color, series }: ChartContext): void {
  const { begun_epoch_seconds: begun, memory_medians, memory_trend } = series;
  const x = (at: number): number => plot.valToPos(begun + at, 'x', true);
  const y = (megabytes: number): number => plot.valToPos(megabytes, 'y', true);
  clippedToChart(plot, (canvas, ratio) => {
    canvas.fillStyle = color('--second');
    const size = (memory_medians.length > 300 ? 2 : 4) * ratio;
    for (const { at, megabytes } of memory_medians) canvas.fillRect(x(at) - size / 2, y(megabytes) - size / 2, size, size);
    canvas.strokeStyle = color('--text');
    canvas.lineWidth = 1.5 * ratio;
    canvas.setLineDash([8 * ratio, 5 * ratio]);
    for (const { from, megabytes_from, megabytes_to, to } of memory_trend)
      strokeLine(canvas, x(from), y(megabytes_from), x(to), y(megabytes_to));
  });
}

/** A dashed line with its text, if the limit is within the chart. */
function drawLimit(plot: uPlot, limit: NonNullable<Panel['limit']>, { color, font }: ChartContext): void {
  clippedToChart(plot, (canvas, ratio) => {
    const { height, left, top, width } = plot.bbox;
    const y = Math.round(plot.valToPos(limit.value, 'y', true));
    if (y < top || y > top + height) return;
    canvas.strokeStyle = color('--threshold');
    canvas.fillStyle = color('--threshold');
    canvas.lineWidth = 1.5 * ratio;
    canvas.setLineDash([6 * ratio, 5 * ratio]);
    strokeLine(canvas, left, y, left + width, y);
    canvas.setLineDash([]);
    canvas.font = font.replace(/^[\d.]+/, (size) => String(Number(size) * ratio));
    canvas.textAlign = 'right';
    const isLow = y > top + height - 18 * ratio;
    canvas.textBaseline = isLow ? 'bottom' : 'top';
    const label = [limit.text, left + width - 6 * ratio, y + (isLow ? -3 : 3) * ratio] as const;
    canvas.lineJoin = 'round';
    canvas.lineWidth = 4 * ratio;
    canvas.strokeStyle = color('--card');
    canvas.strokeText(...label);
    canvas.fillText(...label);
  });
}
