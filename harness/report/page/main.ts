import type uPlot from 'uplot';
import type { ReportSeries } from '../document.ts';
import { lanePlot, linePlot } from './charts.ts';
import { element, HINT, Readout, View } from './controls.ts';
import { knownPanels, type Panel, type Range } from './panels.ts';
import { columnsOf, endOf, marksOf } from './series.ts';

/** Script of report.html: reads the series from the page and draws the charts. No other part of the page depends on it. */

/** Width of the charts in print, in CSS pixels: A4 within its margins. */
const PAPER_WIDTH = 680;

function start(root: HTMLElement, series: ReportSeries): void {
  const begun = series.begun_epoch_seconds;
  const end = endOf(series);
  const whole: Range = [begun, begun + end];
  const marks = marksOf(series, end);
  const panels = knownPanels(series).map((panel) => ({
    panel,
    values: element('span', { class: 'now' }),
    area: chartArea('plot', panel.title),
  }));
  const lanes = chartArea('plot lanes', 'Events');
  const readout = new Readout(panels, marks, begun);

  const laneCaption = element('figcaption', {}, element('strong', {}, 'Alerts, restarts, monitoring gaps, clock'), readout.events);
  const charts = element(
    'div',
    { class: 'charts', tabindex: '0', role: 'group', 'aria-label': `Charts over one time axis. ${HINT}` },
    ...panels.map(({ area, panel, values }) => element('figure', {}, caption(panel, values), area)),
    element('figure', {}, laneCaption, lanes),
    readout.tip,
  );
  const tools = element('div', { class: 'tools' }, readout.time);
  root.append(tools, charts);
  root.hidden = false; // A hidden element has no size.

  const style = getComputedStyle(root);
  const context = {
    series,
    columns: columnsOf(series, end),
    marks,
    whole,
    font: `${Number.parseFloat(style.fontSize) * 0.75}px ${style.fontFamily}`,
    color: (name: string): string => style.getPropertyValue(name).trim(),
    onCursor: (plot: uPlot): void => readout.update(plot),
  };
  const plots = [...panels.map(({ area, panel }) => linePlot(area, panel, context)), lanePlot(lanes, context)];
  readout.attach(plots);
  const view = new View(plots, whole);
  tools.append(view.buttons());
  charts.addEventListener('keydown', (event) => {
    const act = view.keys[event.key];
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(event.shiftKey);
  });
  followPage(charts, plots);
}

/** Adjusts sizes and colours to the page, which change with the window, the colour scheme, and in print. */
function followPage(charts: HTMLElement, plots: readonly uPlot[]): void {
  const fit = (width: number | null): void => {
    for (const plot of plots) {
      const { clientHeight, clientWidth } = plot.root.parentElement as HTMLElement;
      plot.setSize({ width: width ?? Math.max(160, clientWidth), height: clientHeight });
    }
  };
  const redraw = (): void => {
    for (const plot of plots) plot.redraw(false, true);
  };
  new ResizeObserver(() => fit(null)).observe(charts);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  addEventListener('beforeprint', () => {
    document.documentElement.classList.add('paper');
    for (const details of document.querySelectorAll('details')) details.open = true;
    fit(PAPER_WIDTH);
    redraw();
  });
  addEventListener('afterprint', () => {
    document.documentElement.classList.remove('paper');
    fit(null);
    redraw();
  });
}

function caption({ hasTrend, lines, title, unit }: Panel, values: HTMLElement): HTMLElement {
  const key = (style: string, text: string): HTMLElement => element('span', { class: `key ${style}` }, text);
  const legend = lines.length > 1 ? lines.map(({ color, name }) => key(color.slice(2), name)) : [];
  const trend = hasTrend ? [key('dots', 'five-minute medians'), key('trend', 'trend')] : [];
  return element('figcaption', {}, element('strong', {}, title), element('span', { class: 'muted' }, unit), ...legend, ...trend, values);
}

/** The element for a chart. It refers screen readers to the tables. */
function chartArea(style: string, title: string): HTMLElement {
  return element('div', { class: style, role: 'img', 'aria-label': `${title} over time; the tables below have the same.` });
}

const root = document.getElementById('chart');
const source = document.getElementById('series');
if (root !== null && source !== null) start(root, JSON.parse(source.textContent ?? '') as ReportSeries);
