import type uPlot from 'uplot';
import { formatDuration } from '../../../src/core/time/duration.ts';
import { momentAt } from '../figures.ts';
import { LANES } from '../tables.ts';
import type { Panel, Range } from './panels.ts';
import { clamped, type Mark, marksAt } from './series.ts';

/** Zoom and cursor of the charts by buttons and keys, and the values at the cursor as text. */

export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Readonly<Record<string, string>>,
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  created.append(...children);
  return created;
}

/** The visible part of the run and the cursor, which are the same in all charts. */
export class View {
  readonly #plots: readonly uPlot[];
  readonly #reference: uPlot;
  readonly #whole: Range;

  /** Requires at least one chart. */
  constructor(plots: readonly uPlot[], whole: Range) {
    this.#plots = plots;
    this.#reference = plots.at(-1) as uPlot;
    this.#whole = whole;
  }

  showWhole(): void {
    this.#show(this.#whole);
  }

  /** Zooms around the cursor, or around the middle if there is none; a factor below 1 zooms in. */
  zoom(factor: number): void {
    const [from, to] = this.#shown();
    const { left = -1 } = this.#reference.cursor;
    const middle = left < 0 ? (from + to) / 2 : this.#reference.posToVal(left, 'x');
    this.#show([middle - (middle - from) * factor, middle + (to - middle) * factor]);
  }

  /** Moves by a fraction of the visible part; a negative value moves to earlier times. */
  move(share: number): void {
    const [from, to] = this.#shown();
    this.#show([from + share * (to - from), to + share * (to - from)]);
  }

  /** Keys and their actions, with Shift or without. */
  readonly keys: Readonly<Record<string, (isShift: boolean) => void>> = {
    ArrowLeft: (isShift) => this.#moveCursor(isShift ? -50 : -1),
    ArrowRight: (isShift) => this.#moveCursor(isShift ? 50 : 1),
    Home: () => this.#moveCursor(-Number.MAX_SAFE_INTEGER),
    End: () => this.#moveCursor(Number.MAX_SAFE_INTEGER),
    '+': () => this.zoom(0.5),
    '=': () => this.zoom(0.5),
    '-': () => this.zoom(2),
    Escape: () => {
      this.#setCursor(-1);
      this.showWhole();
    },
  };

  buttons(): HTMLElement {
    const button = (label: string, text: string, act: () => void): HTMLButtonElement => {
      const created = element('button', { type: 'button', 'aria-label': label, title: label }, text);
      created.addEventListener('click', act);
      return created;
    };
    return element(
      'div',
      { class: 'buttons', role: 'group', 'aria-label': 'Shown part of the run' },
      button('Earlier', '◀', () => this.move(-0.5)),
      button('Later', '▶', () => this.move(0.5)),
      button('Zoom in', '+', () => this.zoom(0.5)),
      button('Zoom out', '−', () => this.zoom(2)),
      button('Whole run', 'Whole run', () => this.showWhole()),
    );
  }

  /** Moves the cursor from its position, or from the middle if there is none. */
  #moveCursor(pixels: number): void {
    const { width } = this.#reference.over.getBoundingClientRect();
    const { left = -1 } = this.#reference.cursor;
    this.#setCursor(Math.min(width - 1, Math.max(0, (left < 0 ? width / 2 : left) + pixels)));
  }

  /** A negative value removes the cursor. */
  #setCursor(left: number): void {
    for (const plot of this.#plots) plot.setCursor({ left, top: left < 0 ? -1 : 0 }, true);
  }

  #shown(): Range {
    const { max, min } = this.#reference.scales['x'] ?? {};
    return [min ?? this.#whole[0], max ?? this.#whole[1]];
  }

  #show(range: Range): void {
    const [min, max] = clamped(range, this.#whole);
    for (const plot of this.#plots) plot.setScale('x', { min, max });
  }
}

export const HINT = 'Point at a chart for its values; drag to zoom, double-click for the whole run. Keys: arrows, + and −, Escape.';
/** The cursor is at a mark within this distance in pixels. */
const SLACK = 6;
const MAX_IN_TIP = 8;

interface PanelReadout {
  readonly panel: Panel;
  readonly values: HTMLElement;
}

/** Time, values and events at the cursor. */
export class Readout {
  readonly time = element('p', { class: 'readout', 'aria-live': 'polite' }, HINT);
  readonly events = element('span', { class: 'now' });
  readonly tip = element('div', { class: 'tip', hidden: '' });
  readonly #panels: readonly PanelReadout[];
  readonly #marks: readonly Mark[];
  readonly #begun: number;
  #plots: readonly uPlot[] = [];

  constructor(panels: readonly PanelReadout[], marks: readonly Mark[], begun: number) {
    this.#panels = panels;
    this.#marks = marks;
    this.#begun = begun;
  }

  /** Expects one chart for each panel, then the lanes. */
  attach(plots: readonly uPlot[]): void {
    this.#plots = plots;
  }

  /** Called by all charts; only the call of the last one has an effect, because the cursor is common. */
  update(plot: uPlot): void {
    if (plot !== this.#plots.at(-1)) return;
    const { left = -1 } = plot.cursor;
    const at = plot.posToVal(left, 'x');
    const slack = plot.posToVal(left + SLACK, 'x') - at;
    const near = left < 0 ? [] : marksAt(this.#marks, at, slack);
    this.time.textContent = left < 0 ? HINT : `${momentAt(at)}, ${formatDuration(at - this.#begun, 'h')} after the start`;
    for (const [index, { panel, values }] of this.#panels.entries())
      values.textContent = left < 0 ? '' : valuesAtCursor(panel, this.#plots[index]);
    this.events.textContent = near.map(({ text }) => text).join('; ');
    this.#showTip(plot, near);
  }

  /** Shows the marks of a lane next to the pointer. */
  #showTip(plot: uPlot, near: readonly Mark[]): void {
    const { left = -1, top = -1 } = plot.cursor;
    const lane = plot.over.matches(':hover') ? LANES[Math.floor((top / plot.over.clientHeight) * LANES.length)] : undefined;
    const texts = near.filter((mark) => mark.lane === lane).map(({ text }) => text);
    this.tip.hidden = texts.length === 0;
    if (texts.length === 0) return;
    this.tip.replaceChildren(...texts.slice(0, MAX_IN_TIP).map((text) => element('p', {}, text)));
    const parent = (this.tip.parentElement ?? this.tip).getBoundingClientRect();
    const chart = plot.over.getBoundingClientRect();
    this.tip.style.left = `${Math.max(0, Math.min(chart.left - parent.left + left + 12, parent.width - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${chart.top - parent.top - this.tip.offsetHeight - 6}px`;
  }
}

function valuesAtCursor({ digits, lines, unit }: Panel, plot: uPlot | undefined): string {
  const index = plot?.cursor.idx ?? null;
  return lines
    .map(({ name }, line) => {
      const value = index === null ? null : (plot?.data[line + 1]?.[index] ?? null);
      return `${name} ${value === null ? '–' : `${value.toFixed(digits)} ${unit}`}`.trim();
    })
    .join(', ');
}
