import type { DatabaseSync } from 'node:sqlite';
import { STATUSES } from '../../src/core/alerts/alert.ts';
import { METRICS } from '../../src/core/metrics.ts';

/** /health/aggregate and /health/history as SQL over a table with one row per sample, with the result as JSON. */

interface PlainMetric {
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly stddev: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly last: number;
}

export interface PlainAggregate {
  readonly samples_received: number;
  readonly longest_gap_seconds: number;
  readonly metrics: Readonly<Record<string, PlainMetric>>;
}

const RANGE = 'timestamp_ms >= ? AND timestamp_ms < ?';

export function plainAggregate(db: DatabaseSync, fromMs: number, toMs: number): string {
  const metrics: Record<string, unknown> = {};
  let received = 0;
  for (const metric of METRICS) {
    const row = db
      .prepare(
        `SELECT count(*) AS count, min(${metric}) AS min, max(${metric}) AS max, avg(${metric}) AS mean,
           sqrt(max(0, avg(${metric} * ${metric}) - avg(${metric}) * avg(${metric}))) AS stddev
         FROM sample WHERE ${RANGE}`,
      )
      .get(fromMs, toMs) as { count: number };
    // Sorts once for all three percentiles, whereas percentile_disc would sort once for each.
    const ranks = [0.5, 0.95, 0.99].map((share) => Math.max(1, Math.ceil(share * row.count)));
    const found = db
      .prepare(
        `SELECT value FROM (SELECT ${metric} AS value, row_number() OVER (ORDER BY ${metric}) AS rank FROM sample WHERE ${RANGE})
         WHERE rank IN (?, ?, ?) ORDER BY rank`,
      )
      .all(fromMs, toMs, ...ranks) as { value: number }[];
    const [p50, p95, p99] = found.map(({ value }) => value);
    const last = db.prepare(`SELECT ${metric} AS last FROM sample WHERE ${RANGE} ORDER BY timestamp_ms DESC LIMIT 1`).get(fromMs, toMs);
    const { count, ...statistics } = row;
    metrics[metric] = { ...statistics, p50, p95, p99, ...last };
    received = count;
  }
  const rows = db
    .prepare(
      `SELECT status, sum(min(gap_ms, 3000)) / 1000.0 AS seconds, max(gap_ms) / 1000.0 AS longest FROM
         (SELECT status, lead(timestamp_ms) OVER (ORDER BY timestamp_ms) - timestamp_ms AS gap_ms FROM sample WHERE ${RANGE})
       GROUP BY status`,
    )
    .all(fromMs, toMs) as { status: number; seconds: number; longest: number }[];
  return JSON.stringify({
    samples_received: received,
    longest_gap_seconds: Math.max(...rows.map(({ longest }) => longest)),
    status_seconds: Object.fromEntries(rows.map(({ status, seconds }) => [STATUSES[status], seconds])),
    metrics,
  });
}

const MEANS = METRICS.map((metric) => `round(avg(${metric}), 2) AS ${metric}`).join(', ');

/** Means of each minute; all pages in one text. */
export function plainMinutes(db: DatabaseSync, fromMs: number, toMs: number, pageRows: number): { json: string; rows: number } {
  const select = db.prepare(
    `SELECT ${MEANS}, max(status) AS status, timestamp_ms / 60000 * 60000 AS at FROM sample WHERE ${RANGE} GROUP BY at ORDER BY at LIMIT ?`,
  );
  let json = '';
  let rows = 0;
  let beginMs = Math.floor(fromMs / 60_000) * 60_000;
  for (;;) {
    const page = select.all(beginMs, toMs, pageRows) as { at: number; status: number }[];
    json += JSON.stringify({ data: page.map(toStatus), count: page.length });
    rows += page.length;
    const last = page.at(-1);
    if (page.length < pageRows || !last) return { json, rows };
    beginMs = last.at + 60_000;
  }
}

export function plainSamples(db: DatabaseSync, fromMs: number, toMs: number): { json: string; rows: number } {
  const rows = db
    .prepare(`SELECT ${METRICS.join(', ')}, status, timestamp_ms AS at FROM sample WHERE ${RANGE} ORDER BY timestamp_ms LIMIT 10000`)
    .all(fromMs, toMs) as { at: number; status: number }[];
  return { json: JSON.stringify({ data: rows.map(toStatus), count: rows.length }), rows: rows.length };
}

function toStatus({ at, status, ...readings }: { at: number; status: number }): object {
  return { ...readings, status: STATUSES[status], node_name: 'health_monitor', timestamp: new Date(at).toISOString() };
}
