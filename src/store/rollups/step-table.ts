import { METRICS } from '../../core/metrics.ts';
import type { HistoryPage, StepValue } from '../../core/ports.ts';
import { emptyPage } from '../samples/chunk.ts';
import { type Summary, worstOfSummary } from './summary.ts';

const WIDTH = METRICS.length;

/** The means, the lowest or the highest values of time spans, one row each, in typed arrays: without one object per span. */
export class StepTable {
  readonly value: StepValue;
  count = 0;
  readonly startMs: Float64Array;
  /** Index into STATUSES of the worst status. */
  readonly status: Uint8Array;
  /** By row, in the order of METRICS. */
  readonly counts: Float64Array;
  /** Sums for means, else the lowest or the highest values. */
  readonly sums: Float64Array;

  constructor(capacity: number, value: StepValue) {
    this.value = value;
    this.startMs = new Float64Array(capacity);
    this.status = new Uint8Array(capacity);
    this.counts = new Float64Array(capacity * WIDTH);
    this.sums = new Float64Array(capacity * WIDTH);
  }

  get isFull(): boolean {
    return this.count === this.startMs.length;
  }

  begin(startMs: number): void {
    this.startMs[this.count] = startMs;
    this.count += 1;
  }

  addStatus(status: number): void {
    const row = this.count - 1;
    if (status > (this.status[row] as number)) this.status[row] = status;
  }

  /** `value`: the sum of `count` values, or the lowest or the highest of them. */
  addMetric(metric: number, count: number, value: number): void {
    const at = (this.count - 1) * WIDTH + metric;
    const known = this.sums[at] as number;
    if (this.value === 'mean') this.sums[at] = known + value;
    else if (this.counts[at] === 0) this.sums[at] = value;
    else this.sums[at] = this.value === 'min' ? Math.min(known, value) : Math.max(known, value);
    this.counts[at] = (this.counts[at] as number) + count;
  }

  addSummary(summary: Summary): void {
    this.addStatus(worstOfSummary(summary));
    summary.metrics.forEach(({ count, max, min, sum }, m) => {
      if (count > 0) this.addMetric(m, count, { mean: sum, min, max }[this.value]);
    });
  }

  /** Adds row `row` of another table with the same kind of value to the current row. */
  addRow(other: StepTable, row: number): void {
    this.addStatus(other.status[row] as number);
    for (let m = 0; m < WIDTH; m += 1) {
      const count = other.counts[row * WIDTH + m] as number;
      if (count > 0) this.addMetric(m, count, other.sums[row * WIDTH + m] as number);
    }
  }

  /**
   * A page of health statuses. Values have two decimals; rounding the sum to two decimals makes a mean independent of the order of
   * addition.
   */
  toPage(more: boolean): HistoryPage {
    const page = emptyPage(this.count);
    page.timestampMs.set(this.startMs.subarray(0, this.count));
    page.status.set(this.status.subarray(0, this.count));
    for (let m = 0; m < WIDTH; m += 1) {
      const column = page.metrics[m] as Float64Array;
      for (let row = 0; row < this.count; row += 1) {
        const count = this.counts[row * WIDTH + m] as number;
        const hundredths = Math.round((this.sums[row * WIDTH + m] as number) * 100);
        column[row] = count === 0 ? Number.NaN : Math.round(this.value === 'mean' ? hundredths / count : hundredths) / 100;
      }
    }
    return { ...page, count: this.count, more };
  }
}
