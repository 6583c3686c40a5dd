import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { isolated, temperatureRange } from '../../chart-math.ts';
import { clock, limit } from '../../format.ts';
import { words } from '../../words/words.ts';

interface ChartProps {
  /** Text alternative for screen readers. */
  readonly label: string;
  readonly seconds: readonly number[];
  readonly values: readonly (number | null)[];
  /** Right end of the time axis, and the length of the axis. */
  readonly toSeconds: number;
  readonly windowSeconds: number;
  readonly thresholds: readonly number[];
  readonly isPercent: boolean;
  /** Called with the index of the point under the pointer; null: the pointer is outside. */
  readonly onHover: (index: number | null) => void;
}

/** A metric over time. */
export function Chart(props: ChartProps): VNode {
  const { label, seconds, thresholds, toSeconds, values, windowSeconds } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    const element = box.current as HTMLDivElement;
    const chart = new uPlot(options(element, latest), [[], []], element);
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

  // The chart is redrawn once a second and when its points change, not on every render of the page.
  const key = `${seconds.length} ${seconds[0]} ${seconds.at(-1)} ${toSeconds} ${windowSeconds} ${thresholds.join()}`;
  useEffect(() => {
    plot.current?.setData([seconds as number[], values as (number | null)[]]);
  }, [key]);

  return <div ref={box} class="plot" role="img" aria-label={label} />;
}

function sizeOf(element: HTMLElement): { width: number; height: number } {
  return { width: Math.max(80, element.clientWidth), height: Math.max(40, element.clientHeight) };
}

/** Seconds between the lines of the grid, for each window. */
const TIME_STEPS = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400];

/** Labels at the ends are omitted: they would be cut off or overlap the other axis. */
function timeLabels(plot: uPlot, splits: number[]): string[] {
  const { max = 0, min = 0 } = plot.scales['x'] ?? {};
  const margin = (max - min) * (18 / Math.max(36, plot.width));
  return splits.map((at) => (at < min + margin || at > max - margin ? '' : clock(new Date(at * 1000))));
}

function options(element: HTMLElement, latest: { current: ChartProps }): uPlot.Options {
  const color = (name: string) => (): string => getComputedStyle(element).getPropertyValue(name).trim();
  const font = (): string => `${getComputedStyle(element).fontSize} ${getComputedStyle(element).fontFamily}`;
  const axis = { stroke: color('--muted'), font: font(), ticks: { show: false }, gap: 4 };
  const grid = { stroke: color('--line'), width: 1 };
  return {
    ...sizeOf(element),
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    padding: [6, 10, 0, 0],
    scales: {
      x: { time: true, range: () => [latest.current.toSeconds - latest.current.windowSeconds, latest.current.toSeconds] },
      y: { range: (_plot, min, max) => (latest.current.isPercent ? [0, 100] : temperatureRange(min, max, latest.current.thresholds)) },
    },
    axes: [
      { ...axis, grid, size: 24, space: 56, incrs: TIME_STEPS, values: timeLabels },
      { ...axis, grid, size: 38, space: 26, incrs: [10, 20, 25, 50, 100], values: (_plot, splits) => splits.map(String) },
    ],
    series: [
      {},
      {
        stroke: color('--chart'),
        fill: color('--chart-fill'),
        width: 2,
        points: { size: 4, fill: color('--chart'), filter: (_plot, _series, show) => (show ? null : isolated(latest.current.values)) },
      },
    ],
    hooks: {
      setCursor: [(plot) => latest.current.onHover((plot.cursor.left ?? -1) < 0 ? null : (plot.cursor.idx ?? null))],
      draw: [(plot) => drawThresholds(plot, latest.current.thresholds, font(), color('--threshold')(), color('--card')())],
    },
  };
}

/** Draws the thresholds of open alerts as dashed lines. */
function drawThresholds(plot: uPlot, thresholds: readonly number[], font: string, stroke: string, halo: string): void {
  const { ctx, bbox } = plot;
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.lineWidth = 2 * ratio;
  ctx.strokeStyle = stroke;
  ctx.fillStyle = stroke;
  ctx.font = font.replace(/^[\d.]+/, (size) => String(Number(size) * ratio));
  for (const threshold of thresholds) {
    const y = Math.round(plot.valToPos(threshold, 'y', true));
    if (y < bbox.top || y > bbox.top + bbox.height) continue;
    ctx.setLineDash([6 * ratio, 5 * ratio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    // The label goes below the line if it fits, because the curve that crossed the threshold is above it.
    ctx.save();
    ctx.setLineDash([]);
    ctx.textAlign = 'left';
    const isLow = y > bbox.top + bbox.height - 20 * ratio;
    ctx.textBaseline = isLow ? 'bottom' : 'top';
    const textY = y + (isLow ? -4 : 4) * ratio;
    ctx.strokeStyle = halo;
    ctx.lineWidth = 4 * ratio;
    ctx.lineJoin = 'round';
    const text = words.node.threshold(limit(threshold, ''));
    ctx.strokeText(text, bbox.left + 6 * ratio, textY);
    ctx.fillText(text, bbox.left + 6 * ratio, textY);
    ctx.restore();
  }
  ctx.restore();
}
