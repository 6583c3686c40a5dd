import type { HealthStatus } from '../../core/health-status.ts';
import { type Columns, emptyColumns } from '../samples/chunk.ts';
import { setRow } from './spool.ts';

const FIRST_CAPACITY = 64;

/** Growing buffer of one node's samples for the store's thread. */
export class Batch {
  #columns = emptyColumns(FIRST_CAPACITY);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(status: HealthStatus, timestampMs: number, sequence: number): void {
    if (this.#count === this.#columns.timestampMs.length) {
      const larger = emptyColumns(this.#count * 2);
      larger.timestampMs.set(this.#columns.timestampMs);
      for (const [m, column] of this.#columns.metrics.entries()) (larger.metrics[m] as Float64Array).set(column);
      larger.status.set(this.#columns.status);
      larger.sequence.set(this.#columns.sequence);
      this.#columns = larger;
    }
    setRow(this.#columns, this.#count, status, sequence, timestampMs);
    this.#count += 1;
  }

  /** The samples added since the last call, trimmed to size, with the buffers to transfer. */
  take(): { columns: Columns; buffers: ArrayBuffer[] } {
    const count = this.#count;
    const { timestampMs, metrics, status, sequence } = this.#columns;
    const columns: Columns = {
      count,
      timestampMs: timestampMs.slice(0, count),
      metrics: metrics.map((column) => column.slice(0, count)),
      status: status.slice(0, count),
      sequence: sequence.slice(0, count),
    };
    this.#count = 0;
    if (timestampMs.length > 4096) this.#columns = emptyColumns(FIRST_CAPACITY);
    const arrays = [columns.timestampMs, ...columns.metrics, columns.status, columns.sequence];
    return { columns, buffers: arrays.map((array) => array.buffer as ArrayBuffer) };
  }
}
