import type uPlot from 'uplot';
import { clamped, type Range } from './axis.ts';

/** Which part of the run the charts show, and where their cursor is: by buttons and keys, all charts alike. */
export class View {
  readonly #plots: readonly uPlot[];
  readonly #one: uPlot;
  readonly #whole: Range;

  /** One chart at least. */
  constructor(plots: readonly uPlot[], whole: Range) {
    this.#plots = plots;
    this.#one = plots.at(-1) as uPlot;
    this.#whole = whole;
  }

  whole(): void {
    this.#show(this.#whole);
  }

  /** Around the cursor, else around the middle; below 1: less of the run. */
  zoom(factor: number): void {
    const [from, to] = this.#shown();
    const { left = -1 } = this.#one.cursor;
    const middle = left < 0 ? (from + to) / 2 : this.#one.posToVal(left, 'x');
    this.#show([middle - (middle - from) * factor, middle + (to - middle) * factor]);
  }

  /** By a share of what is shown; negative: to earlier times. */
  move(share: number): void {
    const [from, to] = this.#shown();
    this.#show([from + share * (to - from), to + share * (to - from)]);
  }

  /** The cursor, from where it is or from the middle. */
  step(pixels: number): void {
    const { width } = this.#one.over.getBoundingClientRect();
    const { left = -1 } = this.#one.cursor;
    this.#place(Math.min(width - 1, Math.max(0, (left < 0 ? width / 2 : left) + pixels)));
  }

  leave(): void {
    this.#place(-1);
  }

  /** Keys of the charts: name, and what they do with Shift or without. */
  readonly keys: Readonly<Record<string, (far: boolean) => void>> = {
    ArrowLeft: (far) => this.step(far ? -50 : -1),
    ArrowRight: (far) => this.step(far ? 50 : 1),
    Home: () => this.step(-Number.MAX_SAFE_INTEGER),
    End: () => this.step(Number.MAX_SAFE_INTEGER),
    '+': () => this.zoom(0.5),
    '=': () => this.zoom(0.5),
    '-': () => this.zoom(2),
    Escape: () => {
      this.leave();
      this.whole();
    },
  };

  #place(left: number): void {
    for (const plot of this.#plots) plot.setCursor({ left, top: left < 0 ? -1 : 0 }, true);
  }

  #shown(): Range {
    const { max, min } = this.#one.scales['x'] ?? {};
    return [min ?? this.#whole[0], max ?? this.#whole[1]];
  }

  #show(range: Range): void {
    const [min, max] = clamped(range, this.#whole);
    for (const plot of this.#plots) plot.setScale('x', { min, max });
  }
}
