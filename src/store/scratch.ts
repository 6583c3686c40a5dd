import { type Columns, emptyColumns } from './chunk.ts';

/** Rows are made room for in steps, so that chunks of about the same length share one place. */
const STEP_ROWS = 64;

/**
 * Columns that are used again for one chunk after the other: a range of days is thousands of chunks, and the buffers of each that are
 * dropped have to be found and freed.
 */
export class Scratch {
  #free: Columns[] = [];
  #lent: Columns[] = [];

  /** Columns of `count` rows with anything in them, until release(). */
  take(count: number): Columns {
    const columns =
      this.#free.find(({ timestampMs }) => timestampMs.length >= count) ?? emptyColumns(Math.ceil(count / STEP_ROWS) * STEP_ROWS);
    this.#free = this.#free.filter((candidate) => candidate !== columns);
    this.#lent.push(columns);
    return {
      count,
      timestampMs: columns.timestampMs.subarray(0, count),
      metrics: columns.metrics.map((column) => column.subarray(0, count)),
      status: columns.status.subarray(0, count),
      order: columns.order.subarray(0, count),
    };
  }

  /** What was taken will be given out again. */
  release(): void {
    this.#free.push(...this.#lent);
    this.#lent = [];
  }
}
