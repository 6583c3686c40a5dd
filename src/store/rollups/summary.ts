import { STATUSES } from '../../core/alerts/alert.ts';
import { STALE_AFTER_PERIODS } from '../../core/health-status.ts';
import { METRICS } from '../../core/metrics.ts';
import type { ClockEvent } from '../../core/time/clock-watch.ts';
import { MINUTE_MS } from '../../core/time/time.ts';
import { skippedMs } from '../events/clock-events.ts';
import type { Columns } from '../samples/chunk.ts';

/** Running statistics of one metric over the samples that had a reading. */
interface MetricSummary {
  count: number;
  sum: number;
  sumOfSquares: number;
  min: number;
  max: number;
  last: number;
}

/**
 * Statistics of a time span. Summaries can be merged: minutes into hours, hours into weeks. Merging expects the later span as its second
 * argument.
 */
export interface Summary {
  received: number;
  firstMs: number;
  lastMs: number;
  longestGapMs: number;
  /** Milliseconds in gaps beyond three periods. */
  gapMs: number;
  /** Milliseconds in each status of a sample, in the order of STATUSES. */
  readonly statusMs: number[];
  /** In the order of METRICS. */
  readonly metrics: MetricSummary[];
}

/** One histogram per metric, in the order of METRICS, for percentiles. */
export type Histograms = Histogram[];

const UNKNOWN = STATUSES.indexOf('UNKNOWN');

export function emptySummary(): Summary {
  return {
    received: 0,
    firstMs: 0,
    lastMs: 0,
    longestGapMs: 0,
    gapMs: 0,
    statusMs: STATUSES.map(() => 0),
    metrics: METRICS.map(() => ({ count: 0, sum: 0, sumOfSquares: 0, min: Infinity, max: -Infinity, last: 0 })),
  };
}

export function emptyHistograms(): Histograms {
  return METRICS.map(() => new Map());
}

function addStatusMs({ statusMs }: Summary, index: number, ms: number): void {
  statusMs[index] = (statusMs[index] as number) + ms;
}

/**
 * Counts the time without a sample between two times, less what the wall clock skipped, which is no gap in the measurement. A step back
 * makes the difference negative, which counts as no gap. The step is not added back: samples from before the step with the same
 * wall-clock times would otherwise seem that far apart.
 */
export function addGap(summary: Summary, fromMs: number, toMs: number, periodMs: number, events: readonly ClockEvent[]): void {
  const gap = Math.max(0, toMs - fromMs - skippedMs(events, fromMs, toMs));
  if (gap > summary.longestGapMs) summary.longestGapMs = gap;
  if (gap > STALE_AFTER_PERIODS * periodMs) summary.gapMs += gap - periodMs;
}

/**
 * Adds row `i`. `periodMs` is the time that the sample counts for in `statusMs`. Rows must ascend in time: the gap that a late sample
 * ends has been counted already.
 */
export function addRow(
  summary: Summary,
  histograms: Histograms | null,
  columns: Columns,
  i: number,
  periodMs: number,
  events: readonly ClockEvent[],
): void {
  const timestampMs = columns.timestampMs[i] as number;
  const isLate = summary.received > 0 && timestampMs < summary.lastMs;
  if (summary.received === 0) summary.firstMs = timestampMs;
  else if (isLate) summary.firstMs = Math.min(summary.firstMs, timestampMs);
  else addGap(summary, summary.lastMs, timestampMs, periodMs, events);
  summary.received += 1;
  if (!isLate) summary.lastMs = timestampMs;
  addStatusMs(summary, columns.status[i] as number, periodMs);
  for (let m = 0; m < METRICS.length; m += 1) {
    const value = (columns.metrics[m] as Float64Array)[i] as number;
    if (Number.isNaN(value)) continue;
    const metric = summary.metrics[m] as MetricSummary;
    metric.count += 1;
    metric.sum += value;
    metric.sumOfSquares += value * value;
    if (value < metric.min) metric.min = value;
    if (value > metric.max) metric.max = value;
    if (!isLate) metric.last = value;
    if (histograms) addToHistogram(histograms[m] as Histogram, value);
  }
}

/** Appends a later time span; the gap between the two counts. */
export function addStretch(into: Summary, later: Summary, periodMs: number, events: readonly ClockEvent[]): void {
  if (later.received === 0) return;
  if (into.received === 0) into.firstMs = later.firstMs;
  else addGap(into, into.lastMs, later.firstMs, periodMs, events);
  into.received += later.received;
  into.lastMs = later.lastMs;
  into.longestGapMs = Math.max(into.longestGapMs, later.longestGapMs);
  into.gapMs += later.gapMs;
  for (let i = 0; i < STATUSES.length; i += 1) addStatusMs(into, i, later.statusMs[i] as number);
  for (let i = 0; i < METRICS.length; i += 1) {
    const a = into.metrics[i] as MetricSummary;
    const b = later.metrics[i] as MetricSummary;
    if (b.count === 0) continue;
    a.count += b.count;
    a.sum += b.sum;
    a.sumOfSquares += b.sumOfSquares;
    a.min = Math.min(a.min, b.min);
    a.max = Math.max(a.max, b.max);
    a.last = b.last;
  }
}

export function mergeAllHistograms(into: Histograms, from: Histograms): void {
  for (let i = 0; i < METRICS.length; i += 1) mergeHistograms(into[i] as Histogram, from[i] as Histogram);
}

/** Index of the worst status of a sample in the span; that of UNKNOWN if there is none. */
export function worstOfSummary({ received, statusMs }: Summary): number {
  return received === 0 ? UNKNOWN : statusMs.findLastIndex((ms) => ms > 0);
}

/** Null if nothing was measured. */
export function meanOf(metric: MetricSummary): number | null {
  return metric.count === 0 ? null : metric.sum / metric.count;
}

/** Population standard deviation; null if nothing was measured. */
export function standardDeviationOf(metric: MetricSummary): number | null {
  if (metric.count === 0) return null;
  const mean = metric.sum / metric.count;
  return Math.sqrt(Math.max(0, metric.sumOfSquares / metric.count - mean * mean));
}

/** One hour of one node as built from its samples: 60 minutes, their total, and the histograms for percentiles. */
export interface HourRecord {
  readonly hourMs: number;
  readonly minutes: Map<number, Summary>;
  readonly summary: Summary;
  readonly histograms: Histograms;
  /** A sample was late, or arrived before the rate of its node was known. */
  needsRebuild: boolean;
  /** The database has this hour with fewer samples, so it must be written again. */
  readonly wasWritten: boolean;
}

export function emptyHour(hourMs: number, wasWritten = false): HourRecord {
  return { hourMs, minutes: new Map(), summary: emptySummary(), histograms: emptyHistograms(), needsRebuild: false, wasWritten };
}

/** Adds row `i`, which must lie in the hour. */
export function addToHour(hour: HourRecord, columns: Columns, i: number, periodMs: number, events: readonly ClockEvent[]): void {
  const timestampMs = columns.timestampMs[i] as number;
  if (timestampMs < hour.summary.lastMs) hour.needsRebuild = true;
  const minute = Math.floor((timestampMs - hour.hourMs) / MINUTE_MS);
  let summary = hour.minutes.get(minute);
  if (!summary) {
    summary = emptySummary();
    hour.minutes.set(minute, summary);
  }
  addRow(summary, null, columns, i, periodMs, events);
  addRow(hour.summary, hour.histograms, columns, i, periodMs, events);
}

/** Width of a histogram's bin in the metric's unit; percentiles are accurate to half of it. */
export const BIN_WIDTH = 0.1;

/** Values beyond ± 100 million share the outermost bins, so that a bin is always a small integer. */
const LAST_BIN = 1e9;

/** More bins than an hour of percentages and temperatures needs; bounds the memory that a node with arbitrary values can use. */
const MAX_BINS = 3000;
/** The limit for many hours together. */
const MAX_MERGED_BINS = 50_000;

/** Counts by bin; bin b holds the values that round to b × BIN_WIDTH. */
export type Histogram = Map<number, number>;

export function addToHistogram(histogram: Histogram, value: number): void {
  add(histogram, Math.max(-LAST_BIN, Math.min(LAST_BIN, Math.round(value / BIN_WIDTH))), 1, MAX_BINS);
}

/** Above this number of bins, a value without a bin is counted in that of the next power of two. */
function add(histogram: Histogram, exact: number, count: number, maxBins: number): void {
  const known = histogram.get(exact);
  const bin = known !== undefined || histogram.size < maxBins ? exact : Math.sign(exact) * 2 ** Math.ceil(Math.log2(Math.abs(exact)));
  histogram.set(bin, (bin === exact ? (known ?? 0) : (histogram.get(bin) ?? 0)) + count);
}

export function mergeHistograms(into: Histogram, from: Histogram): void {
  for (const [bin, count] of from) add(into, bin, count, MAX_MERGED_BINS);
}

/** Percentiles by the nearest-rank method (the smallest value with at least q of all at or below it), in the order of `quantiles`. */
export function percentiles(histogram: Histogram, quantiles: readonly number[]): (number | null)[] {
  const bins = [...histogram].sort(([a], [b]) => a - b);
  const total = bins.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return quantiles.map(() => null);
  return quantiles.map((quantile) => {
    const rank = Math.max(1, Math.ceil(quantile * total));
    let seen = 0;
    for (const [bin, count] of bins) {
      seen += count;
      if (seen >= rank) return Math.round(bin * BIN_WIDTH * 10) / 10;
    }
    return null;
  });
}
