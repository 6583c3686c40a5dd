import type { Status } from '../../core/alerts/alert.ts';
import { METRICS } from '../../core/metrics.ts';
import type { AggregateQuery, HistoryQuery } from '../../core/ports.ts';
import { DAY_MS, HOUR_MS, isoUtc, MINUTE_MS } from '../../core/time/time.ts';
import type { Row } from './rows.ts';

// The expected answers of history and aggregate, computed naively from all samples. Rows ascend in time.

const WORST_FIRST: readonly Status[] = ['CRITICAL', 'ERROR', 'UNKNOWN', 'WARNING', 'OK'];

export function expectedHistory(rows: readonly Row[], { fromMs, toMs, stepMs, order, value = 'mean' }: Omit<HistoryQuery, 'limit'>): Row[] {
  if (stepMs === null) {
    const found = rows.filter(({ timestampMs }) => timestampMs >= fromMs && timestampMs < toMs);
    return order === 'asc' ? found : found.reverse();
  }
  const steps: Row[] = [];
  for (let start = Math.floor(fromMs / stepMs) * stepMs; start < toMs; start += stepMs) {
    const inside = rows.filter(({ timestampMs }) => timestampMs >= start && timestampMs < start + stepMs);
    if (inside.length === 0) continue;
    const values = METRICS.map((_, m) => {
      const known = inside.map((row) => row.values[m] ?? null).filter((value) => value !== null);
      if (known.length === 0) return null;
      if (value !== 'mean') return Math.round((value === 'min' ? Math.min(...known) : Math.max(...known)) * 100) / 100;
      return Math.round(Math.round(known.reduce((a, b) => a + b) * 100) / known.length) / 100;
    });
    const status = WORST_FIRST.find((worst) => inside.some((row) => row.status === worst)) as Status;
    steps.push({ timestampMs: start, values, status });
  }
  return order === 'asc' ? steps : steps.reverse();
}

export interface ExpectedAggregate {
  readonly from: string;
  readonly to: string;
  readonly received: number;
  readonly expected: number;
  readonly longestGapSeconds: number;
  readonly statusSeconds: Record<Status, number>;
  /** By metric: the measured values, sorted, and the last of them in time. */
  readonly values: readonly { readonly sorted: readonly number[]; readonly last: number | null }[];
}

const WIDTH = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const;

export function expectedAggregate(rows: readonly Row[], query: AggregateQuery, nowMs: number, hertz: number): ExpectedAggregate[] {
  const ranges: [number, number][] = [];
  if (query.by === null) ranges.push([query.fromMs, query.toMs]);
  else {
    const width = WIDTH[query.by];
    for (let start = Math.floor(query.fromMs / width) * width; start < query.toMs; start += width) {
      ranges.push([Math.max(start, query.fromMs), Math.min(start + width, query.toMs)]);
    }
  }
  return ranges.map(([fromMs, toMs]) => expectedBucket(rows, fromMs, toMs, nowMs, hertz));
}

function expectedBucket(rows: readonly Row[], fromMs: number, toMs: number, nowMs: number, hertz: number): ExpectedAggregate {
  const periodMs = 1000 / hertz;
  const inside = rows.filter(({ timestampMs }) => timestampMs >= fromMs && timestampMs < toMs);
  // No samples are expected before the first one and in the future.
  const knownFrom = Math.max(fromMs, rows[0]?.timestampMs ?? toMs);
  const knownTo = Math.min(toMs, nowMs);
  const statusSeconds: Record<Status, number> = { OK: 0, WARNING: 0, ERROR: 0, CRITICAL: 0, UNKNOWN: 0 };
  for (const { status } of inside) statusSeconds[status] += periodMs / 1000;
  let longest = 0;
  if (knownTo > knownFrom) {
    const marks = [knownFrom, ...inside.map(({ timestampMs }) => timestampMs), knownTo];
    for (let i = 1; i < marks.length; i += 1) {
      const gap = (marks[i] as number) - (marks[i - 1] as number);
      longest = Math.max(longest, gap);
      if (gap > 3 * periodMs) statusSeconds.UNKNOWN += (gap - periodMs) / 1000;
    }
  }
  return {
    from: isoUtc(fromMs),
    to: isoUtc(toMs),
    received: inside.length,
    expected: knownTo > knownFrom ? Math.round(((knownTo - knownFrom) / 1000) * hertz) : 0,
    longestGapSeconds: longest / 1000,
    statusSeconds,
    values: METRICS.map((_, m) => {
      const known = inside.map((row) => row.values[m] ?? null).filter((value) => value !== null);
      return { sorted: known.toSorted((a, b) => a - b), last: known.at(-1) ?? null };
    }),
  };
}

/** Nearest rank. */
export function expectedPercentile(sorted: readonly number[], quantile: number): number | null {
  return sorted.length === 0 ? null : (sorted[Math.max(0, Math.ceil(quantile * sorted.length) - 1)] as number);
}
