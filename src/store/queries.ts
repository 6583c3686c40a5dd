import type { ClockEvent } from '../core/clock-watch.ts';
import { percentiles } from '../core/histogram.ts';
import { METRICS, type Metric, toHundredths } from '../core/metrics.ts';
import type { Aggregate, AggregateQuery, HistoryPage, HistoryQuery, MetricAggregate } from '../core/ports.ts';
import {
  addSample,
  bridgeEnds,
  emptyHistograms,
  emptySummary,
  type Histograms,
  meanOf,
  mergeAllHistograms,
  mergeSummary,
  type Summary,
  standardDeviationOf,
  worstOfSummary,
} from '../core/summary.ts';
import { STATUSES, type Status } from '../core/thresholds.ts';
import { DAY_MS, HOUR_MS, isoUtc, MINUTE_MS } from '../core/time.ts';
import type { Archive } from './archive.ts';
import { emptyColumns } from './chunk.ts';
import { hourOf, readingsAt, statusAt } from './tiers.ts';

/** Health statuses of a range, raw or averaged over steps, at most `limit` of them. */
export function history(archive: Archive, query: HistoryQuery): HistoryPage {
  return query.stepMs === null ? rawHistory(archive, query) : steppedHistory(archive, query, query.stepMs);
}

function rawHistory(archive: Archive, query: HistoryQuery): HistoryPage {
  const { fromMs, toMs, order, limit } = query;
  const page = emptyColumns(limit);
  let count = 0;
  for (const chunk of archive.chunks(query.node, fromMs, toMs, order)) {
    for (let n = 0; n < chunk.count; n += 1) {
      const i = order === 'asc' ? n : chunk.count - 1 - n;
      const at = chunk.timestampMs[i] as number;
      if (at < fromMs || at >= toMs) continue;
      if (count === limit) return { ...page, count, more: true };
      page.timestampMs[count] = at;
      for (let m = 0; m < METRICS.length; m += 1)
        (page.metrics[m] as Float64Array)[count] = (chunk.metrics[m] as Float64Array)[i] as number;
      page.status[count] = chunk.status[i] as number;
      count += 1;
    }
  }
  return { ...page, count, more: false };
}

/** Averages per step; steps of whole minutes come from the minute tier (older ones from the hours), finer ones from raw samples. */
function steppedHistory(archive: Archive, query: HistoryQuery, stepMs: number): HistoryPage {
  const floor = (ms: number): number => Math.floor(ms / stepMs) * stepMs;
  const fromMs = floor(query.fromMs);
  const toMs = Math.ceil(query.toMs / stepMs) * stepMs;
  const steps = new Map<number, Summary>();
  const stepOf = (timestampMs: number): Summary => {
    const start = floor(timestampMs);
    let summary = steps.get(start);
    if (!summary) {
      summary = emptySummary();
      steps.set(start, summary);
    }
    return summary;
  };
  const { node } = query;
  const events = archive.clockEvents;
  if (stepMs % MINUTE_MS === 0) {
    for (const { startMs, summary } of minutePieces(archive, node, fromMs, toMs)) {
      if (startMs < fromMs || startMs >= toMs) continue;
      mergeSummary(stepOf(startMs), summary, archive.periodMsAt(node, startMs), events);
    }
  } else {
    for (const chunk of archive.chunks(node, fromMs, toMs, 'asc')) {
      for (let i = 0; i < chunk.count; i += 1) {
        const at = chunk.timestampMs[i] as number;
        if (at < fromMs || at >= toMs) continue;
        addSample(stepOf(at), null, at, readingsAt(chunk, i), statusAt(chunk, i), archive.periodMsAt(node, at), events);
      }
    }
  }
  const starts = [...steps.keys()].sort((a, b) => (query.order === 'asc' ? a - b : b - a));
  const page = emptyColumns(Math.min(query.limit, starts.length));
  starts.slice(0, query.limit).forEach((start, row) => {
    const summary = steps.get(start) as Summary;
    page.timestampMs[row] = start;
    page.status[row] = STATUSES.indexOf(worstOfSummary(summary));
    summary.metrics.forEach((metric, m) => {
      const mean = meanOf(metric);
      (page.metrics[m] as Float64Array)[row] = mean === null ? Number.NaN : toHundredths(mean);
    });
  });
  return { ...page, count: Math.min(query.limit, starts.length), more: starts.length > query.limit };
}

/** Minutes of a range in order of time; an hour whose minutes are no longer kept comes as one piece. */
function* minutePieces(archive: Archive, node: string, fromMs: number, toMs: number): Generator<{ startMs: number; summary: Summary }> {
  const firstHour = hourOf(fromMs);
  const inMemory = new Map(archive.hoursInMemory(node).map((hour) => [hour.hourMs, hour.minutes]));
  const minutes = new Map(archive.minutesInDatabase(node, firstHour, toMs).map((hour) => [hour.hourMs, hour.minutes]));
  const oldestMinutes = Math.min(...minutes.keys(), ...inMemory.keys());
  for (const { hourMs, summary } of archive.hoursInDatabase(node, firstHour, Math.min(toMs, oldestMinutes))) {
    if (!minutes.has(hourMs) && !inMemory.has(hourMs)) yield { startMs: hourMs, summary };
  }
  const hours = [...new Set([...minutes.keys(), ...inMemory.keys()])].sort((a, b) => a - b);
  for (const hourMs of hours) {
    for (const [minute, summary] of inMemory.get(hourMs) ?? minutes.get(hourMs) ?? []) {
      yield { startMs: hourMs + minute * MINUTE_MS, summary };
    }
  }
}

interface Bucket {
  readonly fromMs: number;
  readonly toMs: number;
  readonly summary: Summary;
  readonly histograms: Histograms;
}

const BUCKET_MS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const;

function bucketsOf(query: AggregateQuery): Bucket[] {
  const bucket = (fromMs: number, toMs: number): Bucket => ({ fromMs, toMs, summary: emptySummary(), histograms: emptyHistograms() });
  if (query.by === null) return [bucket(query.fromMs, query.toMs)];
  const width = BUCKET_MS[query.by];
  const buckets: Bucket[] = [];
  for (let start = Math.floor(query.fromMs / width) * width; start < query.toMs; start += width) {
    buckets.push(bucket(Math.max(start, query.fromMs), Math.min(start + width, query.toMs)));
  }
  return buckets;
}

/**
 * Statistics of a range, or of each minute, hour or day (UTC) of it. Hours that lie whole inside come from the hour tier with their
 * histograms; what sticks out at the ends is counted sample by sample while raw samples are kept, by minutes after that
 * (then without percentiles).
 */
export function aggregate(archive: Archive, query: AggregateQuery, nowMs: number): Aggregate[] {
  const { node } = query;
  const firstMs = archive.firstSampleMs(node) ?? query.toMs;
  const known = { fromMs: Math.max(query.fromMs, firstMs), toMs: Math.min(query.toMs, nowMs) };
  const buckets = bucketsOf(query);
  const width = query.by === null ? Number.POSITIVE_INFINITY : BUCKET_MS[query.by];
  const origin = query.by === null ? query.fromMs : Math.floor(query.fromMs / width) * width;
  const bucketAt = (ms: number): Bucket => buckets[query.by === null ? 0 : Math.floor((ms - origin) / width)] as Bucket;
  const hours = new Map(archive.hoursInDatabase(node, hourOf(known.fromMs), known.toMs).map((hour) => [hour.hourMs, hour]));
  for (const hour of archive.hoursInMemory(node)) hours.set(hour.hourMs, hour);
  const starts = [...hours.keys()].filter((ms) => ms + HOUR_MS > known.fromMs && ms < known.toMs).sort((a, b) => a - b);
  for (const hourMs of starts) {
    const hour = hours.get(hourMs) as { summary: Summary; histograms: Histograms };
    const bucket = bucketAt(Math.max(hourMs, query.fromMs));
    if (hourMs >= bucket.fromMs && hourMs + HOUR_MS <= bucket.toMs) {
      mergeSummary(bucket.summary, hour.summary, archive.periodMsAt(node, hourMs), archive.clockEvents);
      mergeAllHistograms(bucket.histograms, hour.histograms);
    } else {
      addPartOfHour(archive, node, hourMs, query, bucketAt);
    }
  }
  return buckets.map((bucket) => toAggregate(archive, node, bucket, known));
}

function addPartOfHour(archive: Archive, node: string, hourMs: number, query: AggregateQuery, bucketAt: (ms: number) => Bucket): void {
  const fromMs = Math.max(hourMs, query.fromMs);
  const toMs = Math.min(hourMs + HOUR_MS, query.toMs);
  const events = archive.clockEvents;
  let found = false;
  for (const chunk of archive.chunks(node, fromMs, toMs, 'asc')) {
    for (let i = 0; i < chunk.count; i += 1) {
      const at = chunk.timestampMs[i] as number;
      if (at < fromMs || at >= toMs) continue;
      found = true;
      const { summary, histograms } = bucketAt(at);
      addSample(summary, histograms, at, readingsAt(chunk, i), statusAt(chunk, i), archive.periodMsAt(node, at), events);
    }
  }
  if (found) return;
  for (const { startMs, summary } of minutePieces(archive, node, hourMs, hourMs + HOUR_MS)) {
    if (startMs < fromMs || startMs >= toMs) continue;
    mergeSummary(bucketAt(startMs).summary, summary, archive.periodMsAt(node, startMs), events);
  }
}

/** Samples that should have come between two times, by the rates that were in force. */
function expectedSamples(archive: Archive, node: string, fromMs: number, toMs: number): number {
  const rates = archive.ratesOf(node);
  let expected = 0;
  rates.forEach((rate, i) => {
    const from = i === 0 ? fromMs : Math.max(fromMs, rate.sinceMs);
    const to = Math.min(toMs, rates[i + 1]?.sinceMs ?? toMs);
    if (to > from) expected += ((to - from) / 1000) * rate.hertz;
  });
  return Math.round(expected);
}

/** Time that the wall clock skipped inside a range: it cannot be filled with samples. */
function skippedMs(events: readonly ClockEvent[], fromMs: number, toMs: number): number {
  return events
    .filter((event) => event.timestamp_ms > fromMs && event.timestamp_ms <= toMs)
    .reduce((sum, event) => sum + event.delta_seconds * 1000, 0);
}

function toAggregate(archive: Archive, node: string, bucket: Bucket, known: { fromMs: number; toMs: number }): Aggregate {
  const { summary, histograms } = bucket;
  const fromMs = Math.max(bucket.fromMs, known.fromMs);
  const toMs = Math.min(bucket.toMs, known.toMs);
  const events = archive.clockEvents;
  let expected = 0;
  if (toMs > fromMs) {
    bridgeEnds(summary, fromMs, toMs, archive.periodMsAt(node, toMs), events);
    expected = expectedSamples(archive, node, fromMs, toMs - Math.max(0, skippedMs(events, fromMs, toMs)));
  }
  const seconds = (i: 0 | 1 | 2 | 3): number => Math.round(summary.statusMs[i]) / 1000;
  const metrics = {} as Record<Metric, MetricAggregate>;
  METRICS.forEach((metric, m) => {
    metrics[metric] = metricAggregate(summary, histograms, m);
  });
  const status_seconds: Record<Status, number> = { OK: seconds(0), WARNING: seconds(1), CRITICAL: seconds(2), UNKNOWN: seconds(3) };
  return {
    from: isoUtc(bucket.fromMs),
    to: isoUtc(bucket.toMs),
    samples_received: summary.received,
    samples_expected: expected,
    longest_gap_seconds: Math.round(summary.longestGapMs) / 1000,
    status_seconds,
    metrics,
  };
}

function metricAggregate(summary: Summary, histograms: Histograms, index: number): MetricAggregate {
  const metric = summary.metrics[index] as Summary['metrics'][number];
  const histogram = histograms[index] as Histograms[number];
  const measured = metric.count > 0;
  const [p50, p95, p99] = percentiles(histogram, [0.5, 0.95, 0.99]) as [number | null, number | null, number | null];
  const rounded = (value: number | null): number | null => (value === null ? null : Math.round(value * 1e4) / 1e4);
  return {
    min: measured ? metric.min : null,
    max: measured ? metric.max : null,
    mean: rounded(meanOf(metric)),
    stddev: rounded(standardDeviationOf(metric)),
    p50,
    p95,
    p99,
    last: measured ? metric.last : null,
  };
}
