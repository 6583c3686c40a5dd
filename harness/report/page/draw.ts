import uPlot from 'uplot';
import type { ReportSeries } from '../document.ts';
import { LANES, type Lane, type Mark } from './marks.ts';
import type { Panel } from './panels.ts';

/** What is drawn on the canvases besides lines. Colours are those of the style sheet, read when drawing. */

export type Color = (name: string) => string;

const LANE_COLORS: Readonly<Record<Lane, string>> = {
  CRITICAL: '--critical',
  ERROR: '--error-bar',
  WARNING: '--warning',
  Restarts: '--critical-text',
  Absent: '--faded',
  Clock: '--second',
};

/** Draws within the chart's area only, in pixels of the canvas. */
function within(plot: uPlot, draw: (context: CanvasRenderingContext2D, ratio: number) => void): void {
  const { bbox, ctx } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw(ctx, uPlot.pxRatio);
  ctx.restore();
}

const isShown = (plot: uPlot, { from, to }: Mark): boolean => to >= (plot.scales['x']?.min ?? 0) && from <= (plot.scales['x']?.max ?? 0);

/** Behind the lines of every chart: where nobody watched, where the machine slept; and where the service was started again. */
export function drawBackground(plot: uPlot, marks: readonly Mark[], color: Color): void {
  within(plot, (context, ratio) => {
    const { height, top } = plot.bbox;
    for (const mark of marks) {
      if (!isShown(plot, mark)) continue;
      const from = plot.valToPos(mark.from, 'x', true);
      if (mark.lane === 'Restarts') {
        context.strokeStyle = color('--critical-text');
        context.lineWidth = ratio;
        context.setLineDash([3 * ratio, 3 * ratio]);
        context.beginPath();
        context.moveTo(from, top);
        context.lineTo(from, top + height);
        context.stroke();
      } else if (mark.to > mark.from && (mark.lane === 'Absent' || mark.lane === 'Clock')) {
        context.fillStyle = color('--shade');
        context.fillRect(from, top, Math.max(ratio, plot.valToPos(mark.to, 'x', true) - from), height);
      }
    }
  });
}

/** Bars and marks of the lowest chart, a lane each; a bar is wide enough to be seen, whatever part of a week it is. */
export function drawLanes(plot: uPlot, marks: readonly Mark[], color: Color): void {
  within(plot, (context, ratio) => {
    const { height, left, top, width } = plot.bbox;
    const lane = height / LANES.length;
    context.strokeStyle = color('--line');
    context.lineWidth = ratio;
    for (let index = 1; index < LANES.length; index += 1) {
      context.beginPath();
      context.moveTo(left, Math.round(top + index * lane));
      context.lineTo(left + width, Math.round(top + index * lane));
      context.stroke();
    }
    for (const mark of marks) {
      if (!isShown(plot, mark)) continue;
      const y = top + LANES.indexOf(mark.lane) * lane;
      const from = plot.valToPos(mark.from, 'x', true);
      context.fillStyle = color(LANE_COLORS[mark.lane]);
      if (mark.to === mark.from) diamond(context, from, y + lane / 2, Math.min(lane * 0.36, 7 * ratio));
      else context.fillRect(from, y + lane * 0.2, Math.max(3 * ratio, plot.valToPos(mark.to, 'x', true) - from), lane * 0.6);
    }
  });
}

function diamond(context: CanvasRenderingContext2D, x: number, y: number, size: number): void {
  context.beginPath();
  context.moveTo(x, y - size);
  context.lineTo(x + size, y);
  context.lineTo(x, y + size);
  context.lineTo(x - size, y);
  context.fill();
}

/** The medians that Stability was judged by, and the line through them. */
export function drawTrend(plot: uPlot, series: ReportSeries, color: Color): void {
  const { begun_epoch_seconds: begun, memory_medians, memory_trend } = series;
  within(plot, (context, ratio) => {
    context.fillStyle = color('--second');
    const size = (memory_medians.length > 300 ? 2 : 4) * ratio;
    for (const { at, megabytes } of memory_medians)
      context.fillRect(plot.valToPos(begun + at, 'x', true) - size / 2, plot.valToPos(megabytes, 'y', true) - size / 2, size, size);
    context.strokeStyle = color('--text');
    context.lineWidth = 1.5 * ratio;
    context.setLineDash([8 * ratio, 5 * ratio]);
    context.beginPath();
    for (const { from, megabytes_from, megabytes_to, to } of memory_trend) {
      context.moveTo(plot.valToPos(begun + from, 'x', true), plot.valToPos(megabytes_from, 'y', true));
      context.lineTo(plot.valToPos(begun + to, 'x', true), plot.valToPos(megabytes_to, 'y', true));
    }
    context.stroke();
  });
}

/** A dashed line with its words where the limit lies within the chart. */
export function drawLimit(plot: uPlot, limit: NonNullable<Panel['limit']>, font: string, color: Color): void {
  within(plot, (context, ratio) => {
    const { height, left, top, width } = plot.bbox;
    const y = Math.round(plot.valToPos(limit.value, 'y', true));
    if (y < top || y > top + height) return;
    context.strokeStyle = color('--threshold');
    context.fillStyle = color('--threshold');
    context.lineWidth = 1.5 * ratio;
    context.setLineDash([6 * ratio, 5 * ratio]);
    context.beginPath();
    context.moveTo(left, y);
    context.lineTo(left + width, y);
    context.stroke();
    context.setLineDash([]);
    context.font = font.replace(/^[\d.]+/, (size) => String(Number(size) * ratio));
    context.textAlign = 'right';
    const isLow = y > top + height - 18 * ratio;
    context.textBaseline = isLow ? 'bottom' : 'top';
    const place = [limit.text, left + width - 6 * ratio, y + (isLow ? -3 : 3) * ratio] as const;
    context.lineJoin = 'round';
    context.lineWidth = 4 * ratio;
    context.strokeStyle = color('--card');
    context.strokeText(...place);
    context.fillText(...place);
  });
}
