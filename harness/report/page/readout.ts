import type uPlot from 'uplot';
import { duration } from '../../../dashboard/src/format.ts';
import { moment } from './axis.ts';
import { element } from './elements.ts';
import { LANES, type Mark, marksAt } from './marks.ts';
import type { Panel } from './panels.ts';

export const HINT = 'Point at a chart for its values; drag to zoom, double-click for the whole run. Keys: arrows, + and −, Escape.';
/** How near the cursor has to be to a mark, in pixels. */
const SLACK = 6;
const MOST_IN_TIP = 8;

/** What the charts tell at the cursor, in words beside them. */
export class Readout {
  readonly time = element('p', { class: 'readout', 'aria-live': 'polite' }, HINT);
  /** Marks at the cursor. */
  readonly happened = element('span', { class: 'now' });
  readonly tip = element('div', { class: 'tip', hidden: '' });
  readonly #values: readonly { readonly panel: Panel; readonly now: HTMLElement }[];
  readonly #marks: readonly Mark[];
  readonly #begun: number;
  #plots: readonly uPlot[] = [];

  constructor(values: readonly { readonly panel: Panel; readonly now: HTMLElement }[], marks: readonly Mark[], begun: number) {
    this.#values = values;
    this.#marks = marks;
    this.#begun = begun;
  }

  /** One chart for each of the values, then the lanes. */
  attach(plots: readonly uPlot[]): void {
    this.#plots = plots;
  }

  /** Called by every chart when its cursor moves; as they share it, the last one speaks for all. */
  show(plot: uPlot): void {
    if (plot !== this.#plots.at(-1)) return;
    const { left = -1 } = plot.cursor;
    if (left < 0) this.#clear();
    else this.#tell(plot, left);
  }

  #tell(plot: uPlot, left: number): void {
    const at = plot.posToVal(left, 'x');
    const slack = plot.posToVal(left + SLACK, 'x') - at;
    this.time.textContent = `${moment(at)}, ${duration(at - this.#begun)} after the begin`;
    for (const [index, { now, panel }] of this.#values.entries()) now.textContent = valuesOf(panel, this.#plots[index]);
    const near = marksAt(this.#marks, at, slack, null);
    this.happened.textContent = near.map(({ text }) => text).join('; ');
    this.#showTip(plot, near);
  }

  #clear(): void {
    this.time.textContent = HINT;
    for (const { now } of this.#values) now.textContent = '';
    this.happened.textContent = '';
    this.tip.hidden = true;
  }

  /** Beside the pointer, where it is over a lane: what this lane marks there. */
  #showTip(plot: uPlot, near: readonly Mark[]): void {
    const { left = -1, top = -1 } = plot.cursor;
    const lane = plot.over.matches(':hover') ? LANES[Math.floor((top / plot.over.clientHeight) * LANES.length)] : undefined;
    const texts = near.filter((mark) => mark.lane === lane).map(({ text }) => text);
    this.tip.hidden = texts.length === 0;
    if (texts.length === 0) return;
    this.tip.replaceChildren(...texts.slice(0, MOST_IN_TIP).map((text) => element('p', {}, text)));
    const parent = (this.tip.parentElement ?? this.tip).getBoundingClientRect();
    const chart = plot.over.getBoundingClientRect();
    this.tip.style.left = `${Math.max(0, Math.min(chart.left - parent.left + left + 12, parent.width - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${chart.top - parent.top - this.tip.offsetHeight - 6}px`;
  }
}

function valuesOf({ digits, lines, unit }: Panel, plot: uPlot | undefined): string {
  const index = plot?.cursor.idx ?? null;
  return lines
    .map(({ name }, line) => {
      const value = index === null ? null : (plot?.data[line + 1]?.[index] ?? null);
      return `${name} ${value === null ? '–' : `${value.toFixed(digits)} ${unit}`}`.trim();
    })
    .join(', ');
}
