import { STATUSES, type Status } from '../../core/alerts/alert.ts';
import { METRICS, type Metric, type Reading } from '../../core/metrics.ts';
import { addSample, emptyHistograms, emptySummary, type Histograms, mergeSummary, type Summary } from '../../core/statistics/summary.ts';
import type { ClockEvent } from '../../core/time/clock-watch.ts';
import { HOUR_MS, MINUTE_MS } from '../../core/time/time.ts';
import { jumpsBetween } from '../events/clock-events.ts';
import type { Columns } from '../samples/chunk.ts';

/** One hour of one node as built from its samples: 60 minutes, their total, and the histograms for percentiles. */
export interface HourRecord {
  readonly hourMs: number;
  readonly minutes: Map<number, Summary>;
  readonly summary: Summary;
  readonly histograms: Histograms;
  /** The database has this hour with fewer samples, so it must be written again. */
  readonly wasWritten: boolean;
}

export function emptyHour(hourMs: number, wasWritten = false): HourRecord {
  return { hourMs, minutes: new Map(), summary: emptySummary(), histograms: emptyHistograms(), wasWritten };
}

const scratch: Record<Metric, Reading> = { cpu_percent: null, memory_percent: null, disk_percent: null, temperature: null };

/** Readings of row `i`. The object is reused by the next call, so that scanning a week creates no garbage. */
export function readingsAt(columns: Columns, i: number): Readonly<Record<Metric, Reading>> {
  for (let m = 0; m < METRICS.length; m += 1) {
    const value = (columns.metrics[m] as Float64Array)[i] as number;
    scratch[METRICS[m] as Metric] = Number.isNaN(value) ? null : value;
  }
  return scratch;
}

export function statusAt(columns: Columns, i: number): Status {
  return STATUSES[columns.status[i] as number] as Status;
}

/** Adds row `i`, the next in time. The gap before it counts, less any clock jump. */
export function addRow(
  summary: Summary,
  histograms: Histograms | null,
  columns: Columns,
  i: number,
  periodMs: number,
  events: readonly ClockEvent[],
): void {
  const timestampMs = columns.timestampMs[i] as number;
  const jumps = jumpsBetween(events, summary.received > 0 ? summary.lastMs : timestampMs, timestampMs);
  addSample(summary, histograms, timestampMs, readingsAt(columns, i), statusAt(columns, i), periodMs, jumps);
}

/** Appends a later time span. The gap between the two counts, less any clock jump. */
export function addStretch(into: Summary, later: Summary, periodMs: number, events: readonly ClockEvent[]): void {
  mergeSummary(into, later, periodMs, into.received > 0 ? jumpsBetween(events, into.lastMs, later.firstMs) : []);
}

/** Adds row `i`, which must lie in the hour. */
export function addToHour(hour: HourRecord, columns: Columns, i: number, periodMs: number, events: readonly ClockEvent[]): void {
  const timestampMs = columns.timestampMs[i] as number;
  const minute = Math.floor((timestampMs - hour.hourMs) / MINUTE_MS);
  let summary = hour.minutes.get(minute);
  if (!summary) {
    summary = emptySummary();
    hour.minutes.set(minute, summary);
  }
  addRow(summary, null, columns, i, periodMs, events);
  addRow(hour.summary, hour.histograms, columns, i, periodMs, events);
}

export function hourOf(timestampMs: number): number {
  return Math.floor(timestampMs / HOUR_MS) * HOUR_MS;
}
