import { stabilityOf } from '../engine/criteria/stability.ts';
import type { Evidence } from '../engine/evidence.ts';
import { CRITERIA, type Judgement, type Verdict, worst } from '../engine/judgement.ts';
import type { Series } from '../engine/series.ts';
import { median } from '../engine/statistics.ts';
import { REPORT_SCHEMA, type ReportDocument, type ReportRun, type ReportSeries } from './document.ts';
import { duration } from './figures.ts';
import { is168HourVerdict, statement } from './statement.ts';

/** What is known of a run besides its evidence. */
export interface RunFacts extends Pick<ReportRun, 'id' | 'node_name' | 'version' | 'how' | 'machine' | 'harness'> {
  /** ISO 8601, UTC. */
  readonly begun: string;
  readonly ended: string;
  readonly notes: readonly string[];
}

export interface ReportInput {
  readonly evidence: Evidence;
  /** Of the engine, for this evidence. */
  readonly judgements: readonly Judgement[];
  readonly series: Series;
  /** What Stability computed, for its chart. */
  readonly memory: Pick<ReportSeries, 'memory_medians' | 'memory_trend'>;
  readonly run: RunFacts;
  readonly record: ReportDocument['record'];
  readonly madeMs: number;
  /** Version of the edge-health that makes the report. */
  readonly madeBy: string;
}

/** The report of a run. Computes nothing that decides: the judgements are those of the engine, as they are. */
export function compose({ evidence, judgements, madeBy, madeMs, memory, record, run, series }: ReportInput): ReportDocument {
  const { notes, ...facts } = run;
  const verdict = overall(judgements);
  const stated = {
    ...facts,
    origin: evidence.origin,
    planned_seconds: evidence.plannedSeconds,
    watched_seconds: rounded(total(evidence.watched)),
    absent_seconds: rounded(total(evidence.absences)),
    finished: evidence.ended,
  };
  return {
    schema: REPORT_SCHEMA,
    verdict,
    is_168_hour_verdict: is168HourVerdict(stated),
    statement: statement(stated, judgements, verdict),
    made: new Date(madeMs).toISOString(),
    made_by: madeBy,
    run: stated,
    judgements,
    notes: [...new Set([...recordNotes(record), ...clockNotes(evidence), ...notes])],
    series: { ...columns(series), ...memory },
    record,
  };
}

/** What Stability computed, for its chart: the medians, and for each run of the service a line with the slope of all. */
export function memoryColumns(evidence: Evidence): ReportInput['memory'] {
  const variance = stabilityOf(evidence);
  const round = (bytes: number): number => Math.round(bytes / 1e3) / 1e3;
  const runs = variance?.medians ?? [];
  const memory_medians = runs.flat().map(({ at, value }) => ({ at, megabytes: round(value) }));
  const slope = variance?.slope ?? null;
  if (slope === null) return { memory_medians, memory_trend: [] };
  const memory_trend = runs.flatMap((points) => {
    const [first, last] = [points[0], points.at(-1)];
    if (first === undefined || last === undefined || first === last) return [];
    const height = median(Float64Array.from(points, ({ at, value }) => value - slope * at));
    return [
      { from: first.at, to: last.at, megabytes_from: round(height + slope * first.at), megabytes_to: round(height + slope * last.at) },
    ];
  });
  return { memory_medians, memory_trend };
}

/** Of all six criteria: where one was not judged, nothing passes. */
export function overall(judgements: readonly Judgement[]): Verdict {
  const missing = CRITERIA.filter((criterion) => !judgements.some((judgement) => judgement.criterion === criterion));
  return worst([...judgements.map(({ verdict }) => verdict), ...missing.map((): Verdict => 'INCOMPLETE')]);
}

function total(spans: readonly { readonly from: number; readonly to: number }[]): number {
  return spans.reduce((sum, { from, to }) => sum + (to - from), 0);
}

const rounded = (seconds: number): number => Math.round(seconds * 1000) / 1000;

function recordNotes(record: ReportDocument['record']): string[] {
  if (record === null || record.torn_lines === 0) return [];
  const lines = record.torn_lines === 1 ? '1 line of the record was' : `${record.torn_lines} lines of the record were`;
  return [`${lines} cut off when the watcher was killed or the power failed; what was heard since the line before is lost.`];
}

function clockNotes({ clockSteps, suspends }: Evidence): string[] {
  const slept = suspends.reduce((sum, { seconds }) => sum + seconds, 0);
  return [
    ...(clockSteps.length > 0
      ? [
          `The wall clock was set ${times(clockSteps.length)}. Nothing is judged by it; the charts go by the boot-time clock and are labelled in UTC as it was at the begin.`,
        ]
      : []),
    ...(suspends.length > 0
      ? [`The machine was suspended ${times(suspends.length)}, for ${duration(slept)} in all. No status is expected of that time.`]
      : []),
  ];
}

const times = (count: number): string => ['never', 'once', 'twice'][count] ?? `${count} times`;

/** As many digits as a chart can show. */
function column(values: readonly (number | null)[], digits: number): (number | null)[] {
  const factor = 10 ** digits;
  return values.map((value) => (value === null || !Number.isFinite(value) ? null : Math.round(value * factor) / factor));
}

function columns(series: Series): Omit<ReportSeries, 'memory_medians' | 'memory_trend'> {
  return {
    begun_epoch_seconds: series.begunEpochSeconds,
    at: column(series.at, 1) as number[],
    rate_percent: column(series.ratePercent, 2),
    memory_megabytes: column(series.memoryMegabytes, 2),
    host_memory_percent: column(series.hostMemoryPercent, 1),
    cpu_percent: column(series.cpuPercent, 3),
    host_cpu_percent: column(series.hostCpuPercent, 1),
    celsius: column(series.celsius, 1),
    alerts: series.alerts.map(({ alertId, from, metric, severity, to }) => ({ from, to, severity, metric, alert_id: alertId })),
    restarts: series.restarts.map(({ at, cause, detail }) => ({ at, cause, detail })),
    absences: series.absences.map(({ from, kind, to }) => ({ from, to, kind })),
    suspends: series.suspends.map(({ at, seconds }) => ({ at, seconds })),
    clock_steps: series.clockSteps.map(({ at, seconds }) => ({ at, seconds })),
  };
}
