import { STATUSES, type Status } from '../alerts/alert.ts';
import { STALE_AFTER_PERIODS } from '../health-status.ts';
import { METRICS, type Readings } from '../metrics.ts';
import type { ClockEvent } from '../time/clock-watch.ts';

/** Running statistics of one metric over the samples that had a reading. */
export interface MetricSummary {
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
  /** Milliseconds in each status, in the order of STATUSES; gaps beyond three periods count as UNKNOWN. */
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
    statusMs: STATUSES.map(() => 0),
    metrics: METRICS.map(() => ({ count: 0, sum: 0, sumOfSquares: 0, min: Infinity, max: -Infinity, last: 0 })),
  };
}

export function emptyHistograms(): Histograms {
  return METRICS.map(() => new Map());
}

/**
 * The time without a sample between two samples, minus clock jumps and suspends in between, which are not gaps in the measurement. A step
 * back makes the difference negative, which counts as no gap. The step is not added back: samples from before the step with the
 * same wall-clock times would otherwise seem that far apart.
 */
export function gapMs(fromMs: number, toMs: number, events: readonly ClockEvent[]): number {
  let gap = toMs - fromMs;
  for (const event of events) {
    if (event.delta_seconds > 0 && event.timestamp_ms > fromMs && event.timestamp_ms <= toMs) gap -= event.delta_seconds * 1000;
  }
  return Math.max(0, gap);
}

function addStatusMs({ statusMs }: Summary, index: number, ms: number): void {
  statusMs[index] = (statusMs[index] as number) + ms;
}

function bridge(summary: Summary, gap: number, periodMs: number): void {
  if (gap > summary.longestGapMs) summary.longestGapMs = gap;
  if (gap > STALE_AFTER_PERIODS * periodMs) addStatusMs(summary, UNKNOWN, gap - periodMs);
}

/** Adds the next sample in time. `periodMs` is the time that the sample counts for in `statusMs`. */
export function addSample(
  summary: Summary,
  histograms: Histograms | null,
  timestampMs: number,
  readings: Readings,
  status: Status,
  periodMs: number,
  events: readonly ClockEvent[],
): void {
  if (summary.received === 0) summary.firstMs = timestampMs;
  else bridge(summary, gapMs(summary.lastMs, timestampMs, events), periodMs);
  summary.received += 1;
  summary.lastMs = timestampMs;
  addStatusMs(summary, STATUSES.indexOf(status), periodMs);
  for (let i = 0; i < METRICS.length; i += 1) {
    const value = readings[METRICS[i] as (typeof METRICS)[number]];
    if (value === null) continue;
    const metric = summary.metrics[i] as MetricSummary;
    metric.count += 1;
    metric.sum += value;
    metric.sumOfSquares += value * value;
    if (value < metric.min) metric.min = value;
    if (value > metric.max) metric.max = value;
    metric.last = value;
    if (histograms) addToHistogram(histograms[i] as Histogram, value);
  }
}

/** Appends a later time span; the gap between the two counts. */
export function mergeSummary(into: Summary, later: Summary, periodMs: number, events: readonly ClockEvent[]): void {
  if (later.received === 0) return;
  if (into.received === 0) into.firstMs = later.firstMs;
  else bridge(into, gapMs(into.lastMs, later.firstMs, events), periodMs);
  into.received += later.received;
  into.lastMs = later.lastMs;
  into.longestGapMs = Math.max(into.longestGapMs, later.longestGapMs);
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

/** Counts the gaps at both ends of a requested range. */
export function bridgeEnds(summary: Summary, fromMs: number, toMs: number, periodMs: number, events: readonly ClockEvent[]): void {
  if (summary.received === 0) {
    bridge(summary, gapMs(fromMs, toMs, events), periodMs);
    return;
  }
  bridge(summary, gapMs(fromMs, summary.firstMs, events), periodMs);
  bridge(summary, gapMs(summary.lastMs, toMs, events), periodMs);
}

/** The worst status measured in the span. */
export function worstOfSummary({ statusMs }: Summary): Status {
  return STATUSES[statusMs.findLastIndex((ms, index) => index !== UNKNOWN && ms > 0)] ?? 'UNKNOWN';
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

/** The smallest value such that at least `share` (0 to 1) of the values do not exceed it (nearest rank); NaN of no values. */
export function quantile(values: ArrayLike<number>, share: number): number {
  const sorted = new Float64Array(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN;
}

/** The median: the middle value, or the mean of the two middle ones; NaN of no values. */
export function median(values: ArrayLike<number>): number {
  const sorted = new Float64Array(values).sort();
  const half = sorted.length >> 1;
  const upper = sorted[half] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? Number.NaN) + upper) / 2;
}
