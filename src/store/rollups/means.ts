import { STATUSES, type Status } from '../../core/alerts/alert.ts';
import { METRICS } from '../../core/metrics.ts';
import type { HistoryPage } from '../../core/ports.ts';
import { type Summary, worstOfSummary } from '../../core/statistics/summary.ts';
import { emptyPage } from '../samples/chunk.ts';

const WIDTH = METRICS.length;

/** Counts and sums of time spans, one row each, in typed arrays: enough for averages without one object per span. */
export class Means {
  count = 0;
  readonly startMs: Float64Array;
  /** Index into STATUSES of the worst status; UNKNOWN ranks lowest. */
  readonly status: Uint8Array;
  /** By row, in the order of METRICS. */
  readonly counts: Float64Array;
  readonly sums: Float64Array;

  constructor(capacity: number) {
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
    this.status[this.count] = STATUSES.length - 1;
    this.count += 1;
  }

  addStatus(status: number): void {
    const row = this.count - 1;
    const known = this.status[row] as number;
    if (known === STATUSES.length - 1 || (status !== STATUSES.length - 1 && status > known)) this.status[row] = status;
  }

  addMetric(metric: number, count: number, sum: number): void {
    const at = (this.count - 1) * WIDTH + metric;
    this.counts[at] = (this.counts[at] as number) + count;
    this.sums[at] = (this.sums[at] as number) + sum;
  }

  addSummary(summary: Summary): void {
    this.addStatus(indexOf(worstOfSummary(summary)));
    summary.metrics.forEach(({ count, sum }, m) => {
      this.addMetric(m, count, sum);
    });
  }

  /** Adds row `row` of another table to the current row. */
  addRow(other: Means, row: number): void {
    this.addStatus(other.status[row] as number);
    for (let m = 0; m < WIDTH; m += 1) this.addMetric(m, other.counts[row * WIDTH + m] as number, other.sums[row * WIDTH + m] as number);
  }

  /**
   * The averages as a page of health statuses. Values have two decimals; rounding the sum to two decimals makes it independent of the
   * order of addition.
   */
  toPage(more: boolean): HistoryPage {
    const page = emptyPage(this.count);
    page.timestampMs.set(this.startMs.subarray(0, this.count));
    page.status.set(this.status.subarray(0, this.count));
    for (let m = 0; m < WIDTH; m += 1) {
      const column = page.metrics[m] as Float64Array;
      for (let row = 0; row < this.count; row += 1) {
        const count = this.counts[row * WIDTH + m] as number;
        column[row] = count === 0 ? Number.NaN : Math.round(Math.round((this.sums[row * WIDTH + m] as number) * 100) / count) / 100;
      }
    }
    return { ...page, count: this.count, more };
  }
}

function indexOf(status: Status): number {
  return STATUSES.indexOf(status);
}
