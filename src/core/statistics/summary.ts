import { STATUSES, type Status } from '../alerts/thresholds.ts';
import { STALE_AFTER_PERIODS } from '../health-status.ts';
import { METRICS, type Readings } from '../metrics.ts';
import type { ClockEvent } from '../time/clock-watch.ts';
import { addToHistogram, type Histogram, mergeHistograms } from './histogram.ts';

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
 * back makes the difference negative, which counts as no gap. The step is not added back: samples from before it that bear the same
 * wall-clock times would otherwise seem that far apart.
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
