import { type Columns, emptyColumns } from './chunk.ts';

/** Capacities are rounded up to this many rows, so that chunks of similar length can share a buffer. */
const STEP_ROWS = 64;

/**
 * A pool of columns reused from chunk to chunk: a range of several days has thousands of chunks, and allocating each would burden the
 * garbage collector.
 */
export class Scratch {
  #free: Columns[] = [];
  #lent: Columns[] = [];

  /** Columns of `count` rows with undefined contents, valid until release(). */
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
      sequence: columns.sequence.subarray(0, count),
    };
  }

  /** Returns all columns to the pool. */
  release(): void {
    this.#free.push(...this.#lent);
    this.#lent = [];
  }
}
