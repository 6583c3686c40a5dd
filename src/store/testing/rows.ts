import { isDeepStrictEqual } from 'node:util';
import type { Test } from 'tap';
import { STATUSES, type Status } from '../../core/alerts/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import { METRICS } from '../../core/metrics.ts';
import { isoUtc } from '../../core/time/time.ts';
import { type Columns, emptyColumns } from '../samples/chunk.ts';

/** A sample in test notation. */
export interface Row {
  readonly timestampMs: number;
  /** In the order of METRICS. */
  readonly values: readonly (number | null)[];
  readonly status: Status;
}

export function row(timestampMs: number, value: number | null = 1, status: Status = 'OK'): Row {
  return { timestampMs, values: METRICS.map(() => value), status };
}

/** `count` rows, one per period, with values derived from their times. */
export function series(fromMs: number, count: number, periodMs = 1000): Row[] {
  return Array.from({ length: count }, (_, i) => {
    const timestampMs = fromMs + i * periodMs;
    return row(timestampMs, (timestampMs % 9973) / 100);
  });
}

/** `firstSequence`: sequence number of the first row within its segment; the others follow. */
export function toColumns(rows: readonly Row[], firstSequence = 1): Columns {
  const columns = emptyColumns(rows.length);
  rows.forEach(({ timestampMs, values, status }, i) => {
    columns.timestampMs[i] = timestampMs;
    columns.metrics.forEach((column, m) => {
      column[i] = values[m] ?? Number.NaN;
    });
    columns.status[i] = STATUSES.indexOf(status);
    columns.sequence[i] = firstSequence + i;
  });
  return { ...columns, count: rows.length };
}

export function toRows(columns: Omit<Columns, 'sequence'>): Row[] {
  return Array.from({ length: columns.count }, (_, i) => ({
    timestampMs: columns.timestampMs[i] as number,
    values: columns.metrics.map((column) => (Number.isNaN(column[i]) ? null : (column[i] as number))),
    status: STATUSES[columns.status[i] as number] as Status,
  }));
}

export function toStatus({ timestampMs, values, status }: Row, node: string): HealthStatus {
  const [cpu_percent = null, memory_percent = null, disk_percent = null, temperature = null] = values;
  return { cpu_percent, memory_percent, disk_percent, temperature, status, node_name: node, timestamp: isoUtc(timestampMs) };
}

/** A fast t.same for thousands of rows; shows the first rows that differ. */
export function sameRows(t: Test, found: readonly Row[], wanted: readonly Row[], what = 'the same rows'): void {
  if (isDeepStrictEqual(found, wanted)) {
    t.pass(what);
    return;
  }
  const first = wanted.findIndex((row, i) => !isDeepStrictEqual(row, found[i]));
  const at = first < 0 ? wanted.length : first;
  const message = `${what}: ${found.length} rows instead of ${wanted.length}, different from number ${at} on`;
  t.same(found.slice(at, at + 3), wanted.slice(at, at + 3), message);
}
