import { median } from '../../src/core/statistics/quantile.ts';
import { formatDuration } from '../../src/core/time/duration.ts';
import { isoUtc, roundToMilliseconds } from '../../src/core/time/time.ts';
import { stabilityOf } from '../engine/criteria/stability.ts';
import type { ChartSeries, Evidence } from '../engine/evidence.ts';
import { CRITERIA, type Judgement, REQUIRED_SECONDS, type TestVerdict, worst } from '../engine/judgement.ts';
import { REPORT_SCHEMA, type ReportDocument, type ReportRun, type ReportSeries } from './document.ts';
import { enumeration, moment } from './figures.ts';

/** Facts about a run in addition to its evidence. */
export interface RunFacts extends Pick<ReportRun, 'id' | 'node_name' | 'version' | 'how' | 'machine' | 'harness' | 'begun' | 'ended'> {
  readonly notes: readonly string[];
}

export interface ReportInput {
  readonly evidence: Evidence;
  /** Judgements of the engine for this evidence. */
  readonly judgements: readonly Judgement[];
  readonly series: ChartSeries;
  /** See memoryColumns. */
  readonly memory: Pick<ReportSeries, 'memory_medians' | 'memory_trend'>;
  readonly run: RunFacts;
  readonly record: ReportDocument['record'];
  readonly madeMs: number;
  /** Version of the edge-health that writes the report. */
  readonly madeBy: string;
}

/** Composes the report of a run. It decides nothing: the judgements are those of the engine, unchanged. */
export function compose({ evidence, judgements, madeBy, madeMs, memory, record, run, series }: ReportInput): ReportDocument {
  const { notes, ...facts } = run;
  const verdict = overall(judgements);
  const described: ReportRun = {
    ...facts,
    origin: evidence.origin,
    planned_seconds: evidence.plannedSeconds,
    observed_seconds: totalSeconds(evidence.observed),
    monitoring_gap_seconds: totalSeconds(evidence.monitoringGaps),
    finished: evidence.ended,
  };
  return {
    schema: REPORT_SCHEMA,
    verdict,
    is_168_hour_verdict: is168HourVerdict(described),
    statement: statement(described, judgements, verdict),
    made: isoUtc(madeMs),
    made_by: madeBy,
    run: described,
    judgements,
    notes: [...new Set([...recordNotes(record), ...clockNotes(evidence), ...notes])],
    series: { ...columns(series), ...memory },
    record,
  };
}

/** The data that Stability computed, for its chart: the medians, and for each service run a line with the common slope. */
export function memoryColumns(evidence: Evidence): ReportInput['memory'] {
  const variance = stabilityOf(evidence);
  const megabytes = (bytes: number): number => Math.round(bytes / 1e3) / 1e3;
  const runs = variance?.medians ?? [];
  const memory_medians = runs.flat().map(({ at, value }) => ({ at, megabytes: megabytes(value) }));
  const slope = variance?.slope ?? null;
  if (slope === null) return { memory_medians, memory_trend: [] };
  const memory_trend = runs.flatMap((points) => {
    const [first, last] = [points[0], points.at(-1)];
    if (first === undefined || last === undefined || first === last) return [];
    const base = median(Float64Array.from(points, ({ at, value }) => value - slope * at));
    const valueAt = (at: number): number => megabytes(base + slope * at);
    return [{ from: first.at, to: last.at, megabytes_from: valueAt(first.at), megabytes_to: valueAt(last.at) }];
  });
  return { memory_medians, memory_trend };
}

/** The verdict on all six criteria; a criterion without a judgement counts as INCOMPLETE. */
function overall(judgements: readonly Judgement[]): TestVerdict {
  const missing = CRITERIA.filter((criterion) => !judgements.some((judgement) => judgement.criterion === criterion));
  return worst([...judgements.map(({ verdict }) => verdict), ...missing.map((): TestVerdict => 'INCOMPLETE')]);
}

function totalSeconds(spans: readonly { readonly from: number; readonly to: number }[]): number {
  return roundToMilliseconds(spans.reduce((sum, { from, to }) => sum + (to - from), 0));
}

/** Neither a shorter run nor a report on collected files gives the 168-hour verdict. */
function is168HourVerdict({ origin, planned_seconds }: ReportRun): boolean {
  return origin === 'observed' && planned_seconds >= REQUIRED_SECONDS;
}

/** A few sentences: what the report covers, what failed or is missing, and how long the monitoring gaps were. */
function statement(run: ReportRun, judgements: readonly Judgement[], verdict: TestVerdict): string {
  return [scopeSentence(run, verdict), outcomeSentence(run, judgements), gapSentence(run)].filter((sentence) => sentence !== '').join(' ');
}

function scopeSentence(run: ReportRun, verdict: TestVerdict): string {
  const observed = formatDuration(run.observed_seconds, 'h');
  const planned = formatDuration(run.planned_seconds, 'h');
  if (run.origin === 'collected')
    return `This report was compiled from files collected from ${moment(run.begun)} to ${moment(run.ended)}; the service was not observed from outside. It is not the 168-hour verdict.`;
  if (!is168HourVerdict(run)) {
    const lasted = run.finished ? `This run lasted ${observed}.` : `This run has lasted ${observed} of the ${planned} planned.`;
    return `${lasted} It is not the 168-hour verdict.`;
  }
  if (run.finished) return `This is the verdict of a run of ${planned}: ${verdict}.`;
  return verdict === 'FAIL'
    ? `This run of ${planned} has failed after ${observed}.`
    : `This run of ${planned} has not ended; observed: ${observed}. It is not the verdict yet.`;
}

function outcomeSentence({ finished }: ReportRun, judgements: readonly Judgement[]): string {
  const titles = (verdict: TestVerdict): string[] =>
    judgements.filter((judgement) => judgement.verdict === verdict).map(({ title }) => title);
  const failed = titles('FAIL');
  const incomplete = titles('INCOMPLETE');
  if (judgements.length === CRITERIA.length && failed.length + incomplete.length === 0) return 'All six criteria are met.';
  const failures = failed.length > 0 ? `Failed: ${enumeration(failed)}.` : `Nothing has failed${finished ? '' : ' yet'}.`;
  return incomplete.length > 0 ? `${failures} Evidence is missing for ${enumeration(incomplete)}.` : failures;
}

function gapSentence({ monitoring_gap_seconds: seconds, origin }: ReportRun): string {
  if (seconds < 1) return '';
  return origin === 'observed'
    ? `Monitoring gaps of ${formatDuration(seconds, 'h')} in total count neither for nor against the service.`
    : `Nothing was collected for ${formatDuration(seconds, 'h')}.`;
}

function recordNotes(record: ReportDocument['record']): string[] {
  if (record === null || record.torn_lines === 0) return [];
  const lines = record.torn_lines === 1 ? '1 line of the record was' : `${record.torn_lines} lines of the record were`;
  return [`${lines} truncated by SIGKILL or a power cut; data received after the line before is lost.`];
}

function clockNotes({ clockSteps, suspends }: Evidence): string[] {
  const suspendedSeconds = suspends.reduce((sum, { seconds }) => sum + seconds, 0);
  const notes: string[] = [];
  if (clockSteps.length > 0)
    notes.push(
      `The wall clock was set ${times(clockSteps.length)}. No criterion depends on it; the charts follow the boot-time clock, labelled in UTC as of the start.`,
    );
  if (suspends.length > 0)
    notes.push(
      `The machine was suspended ${times(suspends.length)}, for ${formatDuration(suspendedSeconds, 'h')} in total. No status is expected for that time.`,
    );
  return notes;
}

const times = (count: number): string => ['never', 'once', 'twice'][count] ?? `${count} times`;

/** Rounds to as many digits as a chart can show. */
function column(values: readonly (number | null)[], digits: number): (number | null)[] {
  const factor = 10 ** digits;
  return values.map((value) => (value === null || !Number.isFinite(value) ? null : Math.round(value * factor) / factor));
}

function columns(series: ChartSeries): Omit<ReportSeries, 'memory_medians' | 'memory_trend'> {
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
    monitoring_gaps: series.monitoringGaps.map(({ from, kind, to }) => ({ from, to, kind })),
    suspends: series.suspends.map(({ at, seconds }) => ({ at, seconds })),
    clock_steps: series.clockSteps.map(({ at, seconds }) => ({ at, seconds })),
  };
}
