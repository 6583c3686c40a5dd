import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { type Box, isolated, placeLabels, temperatureRange } from '../chart-math.ts';
import { clock, limit } from '../format.ts';
import { messages } from '../messages/messages.ts';
import type { Severity } from '../types.ts';

/** A line across the chart. */
export interface Threshold {
  readonly severity: 'WARNING' | 'CRITICAL';
  readonly value: number;
}

/** An alert, from its first to its last change. */
export interface Span {
  readonly id: string;
  readonly metric: string;
  /** The highest severity that it reached. */
  readonly severity: Severity;
  readonly fromMs: number;
  /** Null: still open. */
  readonly toMs: number | null;
}

/** Something that happened at an instant. */
export interface Moment {
  readonly kind: 'restart' | 'step' | 'suspend';
  readonly atMs: number;
  /** Seconds by which the clock was set, or duration of the suspend. */
  readonly seconds: number;
}

/** Mutable, because uPlot's types accept no readonly arrays; uPlot does not change them. */
export type Column = (number | null)[];

interface ChartProps {
  /** Text alternative for screen readers. */
  readonly label: string;
  readonly seconds: number[];
  readonly values: Column;
  /** Lowest and highest values at the same times. */
  readonly lows: Column;
  readonly highs: Column;
  /** Version of these data. */
  readonly version: number;
  /** Right end of the time axis, and the length of the axis. */
  readonly toSeconds: number;
  readonly windowSeconds: number;
  readonly thresholds: readonly Threshold[];
  /** Alerts about this metric, and restarts, clock changes and suspends of the machine. */
  readonly spans: readonly Span[];
  readonly moments: readonly Moment[];
  readonly isPercent: boolean;
  /** Called with the index of the point under the pointer in any of the charts; null: the pointer is outside. */
  readonly onHover: (index: number | null) => void;
  /** Called with the part of the time axis that was selected, in seconds. */
  readonly onSelect: (fromSeconds: number, toSeconds: number) => void;
}

/** Height of the bar of an alert, which is above the plot, so that it hides no line. */
const BAR_PX = 4;
/** All charts of the page share one cursor. */
const CURSOR = 'charts';

/** A metric over time. */
export function Chart(props: ChartProps): VNode {
  const { highs, label, lows, moments, seconds, spans, thresholds, toSeconds, values, version, windowSeconds } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    const element = box.current as HTMLDivElement;
    const chart = new uPlot(options(element, latest), [[], [], [], []], element);
    plot.current = chart;
    const resize = new ResizeObserver(() => chart.setSize(sizeOf(element)));
    resize.observe(element);
    // The canvas does not follow the style sheet's colours, so a change of colour scheme needs a redraw.
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const redraw = (): void => chart.redraw(false, true);
    scheme.addEventListener('change', redraw);
    addEventListener('schemechange', redraw);
    return () => {
      scheme.removeEventListener('change', redraw);
      removeEventListener('schemechange', redraw);
      resize.disconnect();
      chart.destroy();
    };
  }, []);

  // The chart is redrawn when it has moved by a point or its content has changed, not on every render of the page.
  const marks = JSON.stringify([thresholds, spans, moments]);
  useEffect(() => {
    plot.current?.setData([seconds, values, lows, highs]);
  }, [version, toSeconds, windowSeconds, marks]);

  return <div ref={box} class="plot" role="img" aria-label={label} />;
}

function sizeOf(element: HTMLElement): { width: number; height: number } {
  return { width: Math.max(80, element.clientWidth), height: Math.max(40, element.clientHeight) };
}

/** Seconds between the lines of the grid. */
const TIME_STEPS = [
  5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600, 2_592_000,
];

/** Labels at the ends are omitted: they would be cut off or overlap the other axis. */
function timeLabels(plot: uPlot, splits: number[], _axis: number, _space: number, step: number): string[] {
  const { max = 0, min = 0 } = plot.scales['x'] ?? {};
  const margin = (max - min) * (22 / Math.max(36, plot.width));
  const day = new Intl.DateTimeFormat(messages.tag, { weekday: 'short', day: 'numeric' });
  const label = (at: number): string => {
    const date = new Date(at * 1000);
    if (step >= 86_400 || (max - min > 86_400 && date.getHours() === 0 && date.getMinutes() === 0)) return day.format(date);
    return step < 60 ? `${clock(date)}:${String(date.getSeconds()).padStart(2, '0')}` : clock(date);
  };
  return splits.map((at) => (at < min + margin || at > max - margin ? '' : label(at)));
}

function options(element: HTMLElement, latest: { current: ChartProps }): uPlot.Options {
  const color = (name: string) => (): string => getComputedStyle(element).getPropertyValue(name).trim();
  const font = (): string => `${getComputedStyle(element).fontSize} ${getComputedStyle(element).fontFamily}`;
  const axis = { stroke: color('--muted'), font: font(), ticks: { show: false }, gap: 4 };
  const grid = { stroke: color('--line'), width: 1 };
  const hidden = { stroke: 'transparent', points: { show: false } };
  return {
    ...sizeOf(element),
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false, setScale: false, dist: 6 }, points: { size: 7 }, sync: { key: CURSOR } },
    padding: [BAR_PX + 2, 10, 0, 0],
    scales: {
      x: { time: true, range: () => [latest.current.toSeconds - latest.current.windowSeconds, latest.current.toSeconds] },
      y: {
        range: (_plot, min, max) =>
          latest.current.isPercent
            ? [0, 101] // A line at 100 % is drawn whole.
            : temperatureRange(
                min,
                max,
                latest.current.thresholds.map(({ value }) => value),
              ),
      },
    },
    axes: [
      { ...axis, grid, size: 24, space: 64, incrs: TIME_STEPS, values: timeLabels },
      { ...axis, grid, size: 38, space: 26, incrs: [10, 20, 25, 50, 100], values: (_plot, splits) => splits.map(String) },
    ],
    series: [
      {},
      {
        stroke: color('--chart'),
        width: 1.75,
        points: { size: 4, fill: color('--chart'), filter: (_plot, _series, show) => (show ? null : isolated(latest.current.values)) },
      },
      hidden,
      hidden,
    ],
    bands: [{ series: [3, 2], fill: color('--chart-fill') }],
    hooks: {
      setCursor: [(plot) => latest.current.onHover((plot.cursor.left ?? -1) < 0 ? null : (plot.cursor.idx ?? null))],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 6) return;
          latest.current.onSelect(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'));
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        },
      ],
      drawClear: [(plot) => drawSpans(plot, latest.current.spans, color)],
      draw: [
        (plot) => {
          drawMoments(plot, latest.current.moments, color('--muted')());
          drawThresholds(plot, latest.current.thresholds, font(), color, color('--card')());
        },
      ],
    },
  };
}

type Color = (name: string) => () => string;

/** Draws the time of alerts as a tinted background, with a bar above it in the colour of the severity. */
function drawSpans(plot: uPlot, spans: readonly Span[], color: Color): void {
  const { ctx, bbox } = plot;
  const { max = 0, min = 0 } = plot.scales['x'] ?? {};
  ctx.save();
  for (const { fromMs, severity, toMs } of spans) {
    const left = plot.valToPos(Math.max(min, fromMs / 1000), 'x', true);
    const right = plot.valToPos(Math.min(max, (toMs ?? Number.POSITIVE_INFINITY) / 1000), 'x', true);
    const width = Math.max(2 * uPlot.pxRatio, right - left);
    ctx.fillStyle = color(`--${severity.toLowerCase()}`)();
    ctx.globalAlpha = 0.16;
    ctx.fillRect(left, bbox.top, width, bbox.height);
    ctx.globalAlpha = 1;
    ctx.fillRect(left, bbox.top - (BAR_PX + 1) * uPlot.pxRatio, width, BAR_PX * uPlot.pxRatio);
  }
  ctx.restore();
}

/** Draws restarts as dotted and changes of the clock as dashed vertical lines. */
function drawMoments(plot: uPlot, moments: readonly Moment[], stroke: string): void {
  const { ctx, bbox } = plot;
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.lineWidth = 1.5 * ratio;
  for (const { atMs, kind } of moments) {
    const x = Math.round(plot.valToPos(atMs / 1000, 'x', true));
    ctx.setLineDash(kind === 'restart' ? [2 * ratio, 3 * ratio] : [7 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** Draws thresholds as dashed lines with their value, which is above all lines. */
function drawThresholds(plot: uPlot, thresholds: readonly Threshold[], font: string, color: Color, halo: string): void {
  const { ctx, bbox } = plot;
  const ratio = uPlot.pxRatio;
  const area = { x: bbox.left, y: bbox.top, width: bbox.width, height: bbox.height };
  ctx.save();
  ctx.font = font.replace(/^[\d.]+/, (size) => String(Number(size) * ratio));
  const height = Number.parseFloat(ctx.font);
  const lines = thresholds
    .map(({ severity, value }) => {
      const text = messages.node.thresholds[severity](limit(value, ''));
      const y = Math.round(plot.valToPos(value, 'y', true));
      return { text, y, height, width: ctx.measureText(text).width, stroke: color(`--${severity.toLowerCase()}-text`)() };
    })
    .filter(({ y }) => y >= area.y && y <= area.y + area.height);
  ctx.lineWidth = 1.5 * ratio;
  ctx.setLineDash([6 * ratio, 5 * ratio]);
  for (const { stroke, y } of lines) {
    ctx.strokeStyle = stroke;
    ctx.beginPath();
    ctx.moveTo(area.x, y);
    ctx.lineTo(area.x + area.width, y);
    ctx.stroke();
  }
  ctx.setLineDash([]);
  ctx.textAlign = 'left';
  ctx.textBaseline = 'top';
  ctx.strokeStyle = halo;
  ctx.lineWidth = 4 * ratio;
  ctx.lineJoin = 'round';
  const boxes = placeLabels(lines, area, 3 * ratio);
  for (const [i, { stroke, text }] of lines.entries()) {
    const { x, y } = boxes[i] as Box;
    ctx.fillStyle = stroke;
    ctx.strokeText(text, x, y);
    ctx.fillText(text, x, y);
  }
  ctx.restore();
}
