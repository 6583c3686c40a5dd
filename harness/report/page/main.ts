import type uPlot from 'uplot';
import type { ReportSeries } from '../document.ts';
import type { Range } from './axis.ts';
import { columnsOf, endOf } from './columns.ts';
import { element } from './elements.ts';
import { marksOf } from './marks.ts';
import { PANELS, type Panel } from './panels.ts';
import { lanePlot, linePlot } from './plots.ts';
import { HINT, Readout } from './readout.ts';
import { View } from './view.ts';

/** The charts of report.html: reads the series that stand in the page, and draws them. Nothing else of the page needs it. */

/** Width of the charts on paper, in CSS pixels: A4 within its margins. */
const PAPER_WIDTH = 680;

function start(root: HTMLElement, series: ReportSeries): void {
  const begun = series.begun_epoch_seconds;
  const end = endOf(series);
  const whole: Range = [begun, begun + end];
  const columns = columnsOf(series, end);
  const marks = marksOf(series, end);
  const isKnown = ({ lines }: Panel): boolean => lines.some(({ column }) => columns.values[column].some((value) => value !== null));
  const panels = PANELS.filter(isKnown).map((panel) => ({ panel, now: element('span', { class: 'now' }), plot: plotElement(panel.title) }));
  const lanes = plotElement('What happened');
  lanes.classList.add('lanes');
  const readout = new Readout(panels, marks, begun);

  const charts = element(
    'div',
    { class: 'charts', tabindex: '0', role: 'group', 'aria-label': `Charts over one time axis. ${HINT}` },
    ...panels.map(({ now, panel, plot }) => element('figure', {}, caption(panel, now), plot)),
    element('figure', {}, element('figcaption', {}, element('strong', {}, 'Alerts, restarts, absences, clock'), readout.happened), lanes),
    readout.tip,
  );
  const tools = element('div', { class: 'tools' }, readout.time);
  root.append(tools, charts);
  root.hidden = false; // Only what is shown has a size.

  const style = getComputedStyle(root);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const font = `${Number.parseFloat(style.fontSize) * 0.75}px ${style.fontFamily}`;
  const context = { series, columns, marks, whole, onCursor: (plot: uPlot): void => readout.show(plot) };
  const plots = [...panels.map(({ panel, plot }) => linePlot(plot, panel, context, font, color)), lanePlot(lanes, context, font, color)];
  readout.attach(plots);
  const view = new View(plots, whole);
  tools.append(buttons(view));
  charts.addEventListener('keydown', (event) => {
    const act = view.keys[event.key];
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(event.shiftKey);
  });
  followPage(charts, plots, [...panels.map(({ plot }) => plot), lanes]);
}

/** Sizes and colours are the page's: they change with the window, with the scheme, and on paper. */
function followPage(charts: HTMLElement, plots: readonly uPlot[], places: readonly HTMLElement[]): void {
  const fit = (width: number | null): void => {
    for (const [index, plot] of plots.entries()) {
      const { clientHeight, clientWidth } = places[index] as HTMLElement;
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

function buttons(view: View): HTMLElement {
  const button = (label: string, text: string, act: () => void): HTMLButtonElement => {
    const made = element('button', { type: 'button', 'aria-label': label, title: label }, text);
    made.addEventListener('click', act);
    return made;
  };
  return element(
    'div',
    { class: 'buttons', role: 'group', 'aria-label': 'Part of the run that is shown' },
    button('Earlier', '◀', () => view.move(-0.5)),
    button('Later', '▶', () => view.move(0.5)),
    button('Zoom in', '+', () => view.zoom(0.5)),
    button('Zoom out', '−', () => view.zoom(2)),
    button('Whole run', 'Whole run', () => view.whole()),
  );
}

function caption({ hasTrend, lines, title, unit }: Panel, now: HTMLElement): HTMLElement {
  const key = (style: string, text: string): HTMLElement => element('span', { class: `key ${style}` }, text);
  const legend = lines.length > 1 ? lines.map(({ color, name }) => key(color.slice(2), name)) : [];
  const trend = hasTrend ? [key('dots', 'five-minute medians'), key('trend', 'trend')] : [];
  return element('figcaption', {}, element('strong', {}, title), element('span', { class: 'muted' }, unit), ...legend, ...trend, now);
}

/** Where a chart is drawn; to a screen reader it says where else its values stand. */
function plotElement(title: string): HTMLElement {
  return element('div', { class: 'plot', role: 'img', 'aria-label': `${title} over time; the tables below have the same.` });
}

const root = document.getElementById('chart');
const source = document.getElementById('series');
if (root !== null && source !== null) start(root, JSON.parse(source.textContent ?? '') as ReportSeries);
