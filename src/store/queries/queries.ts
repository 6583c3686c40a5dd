import { STATUSES, type Status } from '../../core/alerts/alert.ts';
import { METRICS, type Metric } from '../../core/metrics.ts';
import type { Aggregate, AggregateQuery, HistoryPage, HistoryQuery, MetricAggregate, Order, TimeRange } from '../../core/ports.ts';
import type { ClockEvent } from '../../core/time/clock-watch.ts';
import { DAY_MS, HOUR_MS, hourOf, isoUtc, MINUTE_MS } from '../../core/time/time.ts';
import type { Archive } from '../database/archive.ts';
import { clockTimeMs, futureJump } from '../events/clock-events.ts';
import { StepTable } from '../rollups/step-table.ts';
import {
  addGap,
  addRow,
  addStretch,
  emptyHistograms,
  emptySummary,
  type Histograms,
  meanOf,
  mergeAllHistograms,
  percentiles,
  type Summary,
  standardDeviationOf,
} from '../rollups/summary.ts';
import { emptyPage } from '../samples/chunk.ts';

export function history(archive: Archive, query: HistoryQuery): HistoryPage {
  return query.stepMs === null ? rawHistory(archive, query) : steppedHistory(archive, query, query.stepMs);
}

function rawHistory(archive: Archive, query: HistoryQuery): HistoryPage {
  const { fromMs, toMs, order, limit } = query;
  const page = emptyPage(limit);
  const edgeMs = order === 'asc' ? fromMs : toMs - 1;
  let skip = query.skip ?? 0;
  let count = 0;
  for (const chunk of archive.samples.chunks(query.node, fromMs, toMs, order)) {
    for (let n = 0; n < chunk.count; n += 1) {
      const i = order === 'asc' ? n : chunk.count - 1 - n;
      const at = chunk.timestampMs[i] as number;
      if (at < fromMs || at >= toMs) continue;
      if (skip > 0 && at === edgeMs) {
        skip -= 1;
        continue;
      }
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

/**
 * One value per step. Steps of whole minutes are read from the minute tier (from the hour tier once minutes are pruned), finer steps from
 * raw samples.
 */
function steppedHistory(archive: Archive, query: HistoryQuery, stepMs: number): HistoryPage {
  const { node, order, limit } = query;
  const floor = (ms: number): number => Math.floor(ms / stepMs) * stepMs;
  const range = { fromMs: floor(query.fromMs), toMs: Math.ceil(query.toMs / stepMs) * stepMs };
  const table = new StepTable(Math.min(limit, (range.toMs - range.fromMs) / stepMs), query.value ?? 'mean');
  const isWhole = stepMs % MINUTE_MS === 0;
  for (const { startMs, addTo } of isWhole ? minutePieces(archive, query, range) : samplePieces(archive, node, range, order)) {
    const start = floor(startMs);
    if (table.count === 0 || table.startMs[table.count - 1] !== start) {
      // Pieces are ordered by time, so this one and all later ones are beyond the page.
      if (table.isFull) return table.toPage(true);
      table.begin(start);
    }
    addTo(table);
  }
  return table.toPage(false);
}

/** An indivisible time span, and how to add it to the current step. */
interface TimePiece {
  startMs: number;
  readonly addTo: (table: StepTable) => void;
}

/** The samples of a range, ordered by time. The yielded object is reused for the next sample. */
function* samplePieces(archive: Archive, node: string, { fromMs, toMs }: TimeRange, order: Order): Generator<TimePiece> {
  for (const chunk of archive.samples.chunks(node, fromMs, toMs, order)) {
    let row = 0;
    const addTo = (table: StepTable): void => {
      table.addStatus(chunk.status[row] as number);
      for (let m = 0; m < METRICS.length; m += 1) {
        const value = (chunk.metrics[m] as Float64Array)[row] as number;
        if (!Number.isNaN(value)) table.addMetric(m, 1, value);
      }
    };
    const piece: TimePiece = { startMs: 0, addTo };
    for (let n = 0; n < chunk.count; n += 1) {
      row = order === 'asc' ? n : chunk.count - 1 - n;
      piece.startMs = chunk.timestampMs[row] as number;
      if (piece.startMs >= fromMs && piece.startMs < toMs) yield piece;
    }
  }
}

/** Minutes of a range, ordered by time; an hour whose minutes are pruned is one piece. The yielded object is reused for the next piece. */
function* minutePieces(archive: Archive, { node, order, value }: HistoryQuery, { fromMs, toMs }: TimeRange): Generator<TimePiece> {
  const hours = archive.hours.starts(node, hourOf(fromMs), toMs);
  for (const hourMs of order === 'asc' ? hours : hours.reverse()) {
    const minutes = archive.hours.minuteTable(node, hourMs, value ?? 'mean');
    let row = 0;
    const piece: TimePiece = { startMs: 0, addTo: (table) => table.addRow(minutes, row) };
    for (const next of rowsInOrder(minutes, order)) {
      row = next;
      piece.startMs = minutes.startMs[row] as number;
      if (piece.startMs >= fromMs && piece.startMs < toMs) yield piece;
    }
  }
}

/** Minutes are stored in order of arrival, which differs from order of time after the clock was set back. */
function rowsInOrder({ count, startMs }: StepTable, order: Order): number[] {
  const rows = Array.from({ length: count }, (_, row) => row);
  const sign = order === 'asc' ? 1 : -1;
  return rows.sort((a, b) => sign * ((startMs[a] as number) - (startMs[b] as number)));
}

interface Bucket extends TimeRange {
  readonly summary: Summary;
  readonly histograms: Histograms;
}

const BUCKET_MS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const;

/** The buckets of the range; only those being filled are in memory. */
class Buckets {
  readonly #query: AggregateQuery;
  readonly #widthMs: number;
  readonly #originMs: number;
  readonly #filling = new Map<number, Bucket>();
  /** Clock jumps, which do not count as gaps between samples. */
  readonly jumps: readonly ClockEvent[];
  #next = 0;

  constructor(query: AggregateQuery, jumps: readonly ClockEvent[]) {
    this.#query = query;
    this.jumps = jumps;
    this.#widthMs = query.by === null ? query.toMs - query.fromMs : BUCKET_MS[query.by];
    this.#originMs = query.by === null ? query.fromMs : Math.floor(query.fromMs / this.#widthMs) * this.#widthMs;
  }

  at(ms: number): Bucket {
    return this.#bucket(Math.floor((ms - this.#originMs) / this.#widthMs));
  }

  /** Removes and returns the buckets that end by `ms`; every sample up to then must have been added. */
  *takeUntil(ms: number): Generator<Bucket> {
    for (;;) {
      const startMs = this.#originMs + this.#next * this.#widthMs;
      if (startMs >= this.#query.toMs || Math.min(startMs + this.#widthMs, this.#query.toMs) > ms) return;
      const bucket = this.#bucket(this.#next);
      this.#filling.delete(this.#next);
      this.#next += 1;
      yield bucket;
    }
  }

  #bucket(index: number): Bucket {
    let bucket = this.#filling.get(index);
    if (!bucket) {
      const startMs = this.#originMs + index * this.#widthMs;
      const fromMs = Math.max(startMs, this.#query.fromMs);
      const toMs = Math.min(startMs + this.#widthMs, this.#query.toMs);
      bucket = { fromMs, toMs, summary: emptySummary(), histograms: emptyHistograms() };
      this.#filling.set(index, bucket);
    }
    return bucket;
  }
}

/**
 * Statistics of a range, or of each of its minutes, hours or days (UTC). Hours that lie completely inside come from the hour tier with
 * their histograms. The incomplete hours at both ends are computed from raw samples, or from minutes (without percentiles) once the raw
 * samples are pruned.
 */
export function aggregate(archive: Archive, query: AggregateQuery, nowMs: number): Aggregate[] {
  const { node } = query;
  const { sampling } = archive;
  const jumps = [...sampling.clockEvents, ...futureJump(sampling.clockEvents, nowMs, query.toMs, sampling.firstSeenMs(node))];
  const known = { fromMs: Math.max(query.fromMs, archive.firstSampleMs(node) ?? query.toMs), nowMs };
  const buckets = new Buckets(query, jumps);
  const answer: Aggregate[] = [];
  const answerUntil = (ms: number): void => {
    for (const bucket of buckets.takeUntil(ms)) answer.push(toAggregate(archive, node, bucket, known));
  };
  // The range is not cut at the current time: after the clock was set back there are samples with later times.
  for (const hourMs of archive.hours.starts(node, hourOf(known.fromMs), query.toMs)) {
    answerUntil(hourMs);
    const hour = archive.hours.hour(node, hourMs);
    const bucket = buckets.at(Math.max(hourMs, query.fromMs));
    if (hour && hourMs >= bucket.fromMs && hourMs + HOUR_MS <= bucket.toMs) {
      addStretch(bucket.summary, hour.summary, sampling.periodMsAt(node, hourMs), jumps);
      mergeAllHistograms(bucket.histograms, hour.histograms);
      continue;
    }
    const part = { fromMs: Math.max(hourMs, query.fromMs), toMs: Math.min(hourMs + HOUR_MS, query.toMs) };
    if (!hour || archive.samples.hasWholeHour(node, hourMs)) addSamples(archive, node, part, buckets);
    else addMinutes(archive, node, hourMs, part, buckets);
  }
  answerUntil(query.toMs);
  return answer;
}

function addMinutes(archive: Archive, node: string, hourMs: number, { fromMs, toMs }: TimeRange, buckets: Buckets): void {
  for (const [minute, later] of [...archive.hours.minutes(node, hourMs)].sort(([a], [b]) => a - b)) {
    const startMs = hourMs + minute * MINUTE_MS;
    if (startMs >= fromMs && startMs < toMs)
      addStretch(buckets.at(startMs).summary, later, archive.sampling.periodMsAt(node, startMs), buckets.jumps);
  }
}

function addSamples(archive: Archive, node: string, { fromMs, toMs }: TimeRange, buckets: Buckets): void {
  for (const chunk of archive.samples.chunks(node, fromMs, toMs, 'asc')) {
    for (let row = 0; row < chunk.count; row += 1) {
      const at = chunk.timestampMs[row] as number;
      if (at < fromMs || at >= toMs) continue;
      const { summary, histograms } = buckets.at(at);
      addRow(summary, histograms, chunk, row, archive.sampling.periodMsAt(node, at), buckets.jumps);
    }
  }
}

/** Number of samples due in a range, by the publish rates in force and the time that the wall clock spent in the range. */
function expectedSamples({ sampling }: Archive, node: string, { fromMs, toMs }: TimeRange, nowMs: number): number {
  const rates = sampling.ratesOf(node);
  let expected = 0;
  rates.forEach((rate, i) => {
    const from = i === 0 ? fromMs : Math.max(fromMs, rate.sinceMs);
    const to = Math.min(toMs, rates[i + 1]?.sinceMs ?? toMs);
    if (to > from) expected += (clockTimeMs(sampling.clockEvents, from, to, nowMs, sampling.firstSeenMs(node)) / 1000) * rate.hertz;
  });
  return Math.round(expected);
}

/** `known`: start of the node's samples and the current time. */
function toAggregate(archive: Archive, node: string, bucket: Bucket, known: { fromMs: number; nowMs: number }): Aggregate {
  const { summary, histograms } = bucket;
  const { nowMs } = known;
  const fromMs = Math.max(bucket.fromMs, known.fromMs);
  const toMs = Math.min(bucket.toMs, nowMs);
  if (toMs > fromMs) {
    const { clockEvents } = archive.sampling;
    const periodMs = archive.sampling.periodMsAt(node, toMs);
    const { firstMs, lastMs, received } = summary;
    addGap(summary, fromMs, received === 0 ? toMs : firstMs, periodMs, clockEvents);
    if (received > 0) addGap(summary, lastMs, toMs, periodMs, clockEvents);
  }
  const expected = bucket.toMs > fromMs ? expectedSamples(archive, node, { fromMs, toMs: bucket.toMs }, nowMs) : 0;
  const metrics = {} as Record<Metric, MetricAggregate>;
  METRICS.forEach((metric, m) => {
    metrics[metric] = metricAggregate(summary, histograms, m);
  });
  const status_seconds = {} as Record<Status, number>;
  STATUSES.forEach((status, i) => {
    const ms = (summary.statusMs[i] as number) + (status === 'UNKNOWN' ? summary.gapMs : 0);
    status_seconds[status] = Math.round(ms) / 1000;
  });
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
