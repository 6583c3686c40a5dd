/** Evidence for the six criteria from the rows and alert changes of a period. */
import type {
  AlertEvidence,
  ChartSeries,
  CpuEvidence,
  Evidence,
  MemoryEvidence,
  OpenEpisode,
  ServiceRun,
} from '../../harness/engine/evidence.ts';
import type { Criterion } from '../../harness/engine/judgement.ts';
import { SEVERITIES, type Severity } from '../../src/core/alerts/alert.ts';
import { isoUtc, MINUTE_MS, roundToMilliseconds } from '../../src/core/time/time.ts';
import type { AlertRecord } from '../collect/alert-files.ts';
import type { CollectedAlerts } from './collected.ts';
import { countStatuses } from './counters.ts';
import { rowGaps, type StoredSamples } from './gaps.ts';
import type { Period } from './period.ts';
import { type ClockEvent, coverage, type PlacedRow } from './timeline.ts';

/** Alerts are collected less often than rows. Both must have agreed once within this time before the last row. */
const AGREE_MS = 10 * MINUTE_MS;
/** A shorter time at the start has no point in the charts. */
const LEAST_SECONDS = 30;
const MORE_RESTARTS =
  'whether there were more restarts in the minute before each that was seen; journalctl --unit=edge-health lists every start';
const PUBLISHED_REMEDY =
  'the service was not on the ROS 2 graph, or its version was older; set ros.transport to auto and collect for 168 h, or run: edge-health harness run';

export interface Collected {
  readonly period: Period;
  /** Contains at least one row. */
  readonly rows: readonly PlacedRow[];
  readonly events: readonly ClockEvent[];
  /** Whether there are rows before the period. */
  readonly hasEarlier: boolean;
  /** Whether the rows are only of this machine's node. Otherwise, alerts that /status counts may belong to another node. */
  readonly isAlone: boolean;
  readonly alerts: CollectedAlerts;
  /** Whether collect_alerts has run; if it has, no collected change means that there was none. */
  readonly hasAlerts: boolean;
  readonly stored: StoredSamples;
  readonly configuredHertz: number;
}

export interface CollectedEvidence {
  readonly evidence: Evidence;
  readonly series: ChartSeries;
  /** What the rows cannot show about a criterion, in addition to what the engine reports as missing. */
  readonly missing: Readonly<Partial<Record<Criterion, readonly string[]>>>;
}

export function evidenceOf(collected: Collected): CollectedEvidence {
  const { alerts, configuredHertz, events, hasEarlier, period, rows, stored } = collected;
  const { gaps, isToEnd, spans } = coverage(rows, period);
  const runs = runsOf(rows);
  const { cpu, cpuPercent } = cpuOf(rows, runs);
  const { ratePercent, reliability, rowsWithoutPublished } = countStatuses(rows, configuredHertz);
  const episodes = episodesOf(alerts, rows, period);
  const open = openAlerts(collected);
  const suspends = events.filter(({ kind }) => kind === 'suspend').map(({ at, seconds }) => ({ at, seconds }));
  const clockSteps = events.filter(({ kind }) => kind === 'step').map(({ at, latest, seconds }) => ({ at, seconds, wall: isoUtc(latest) }));
  const worst = (severity: Severity): number => episodes.filter((episode) => episode.severity === severity).length;

  // A chart has a point per row, with the values of the time before it; a point has no values if nothing is known about that time.
  const end = spans.at(-1)?.to ?? 0;
  const isFromBegin = spans[0]?.from === 0;
  const points = rows
    .map((row, i) => ({ row, i, isKnown: i === 0 ? isFromBegin : !row.fresh }))
    .filter(({ i, row }) => i > 0 || !isFromBegin || row.at >= LEAST_SECONDS);
  const column = (value: (row: PlacedRow, i: number) => number | null): (number | null)[] => [
    ...points.map(({ i, isKnown, row }) => (isKnown ? value(row, i) : null)),
    ...(isToEnd ? [null] : []),
  ];
  return {
    evidence: {
      origin: 'collected',
      plannedSeconds: (period.toMs - period.fromMs) / 1000,
      ended: true,
      observed: spans,
      monitoringGaps: gaps,
      suspends,
      clockSteps,
      runs,
      lastSeenAt: rows.findLast(({ answered }) => answered)?.at ?? null,
      reliability,
      memory: memoryOf(rows),
      cpu,
      alerts: { ...open.evidence, episodes: { WARNING: worst('WARNING'), ERROR: worst('ERROR'), CRITICAL: worst('CRITICAL') } },
      integrity: { stored: stored.gaps, collected: rowGaps(rows, period, hasEarlier, events), reason: stored.problem },
    },
    series: {
      begunEpochSeconds: period.fromMs / 1000,
      at: [...points.map(({ row }) => row.at), ...(isToEnd ? [end] : [])],
      ratePercent: column((_, i) => ratePercent[i] ?? null),
      memoryMegabytes: column(({ memoryBytes }) => (memoryBytes === null ? null : memoryBytes / 1e6)),
      hostMemoryPercent: column(({ readings }) => readings.memory_percent),
      cpuPercent: column((_, i) => cpuPercent[i] ?? null),
      hostCpuPercent: column(({ readings }) => readings.cpu_percent),
      celsius: column(({ readings }) => readings.temperature),
      alerts: episodes,
      restarts: runs.slice(1).map(({ cause, detail, from }) => ({ at: from, cause, detail })),
      monitoringGaps: gaps,
      suspends,
      clockSteps: clockSteps.map(({ at, seconds }) => ({ at, seconds })),
    },
    missing: {
      uptime: runs.length > 1 ? [MORE_RESTARTS] : [],
      reliability:
        rowsWithoutPublished > 0 ? [`${rowsWithoutPublished} of ${rows.length} rows have no published_statuses: ${PUBLISHED_REMEDY}`] : [],
      alerts: open.missing,
    },
  };
}

/** The runs of the service. The cause of an end is not collected, except for a reboot and an upgrade. */
function runsOf(rows: readonly PlacedRow[]): ServiceRun[] {
  const runs: ServiceRun[] = [];
  let before: PlacedRow | null = null;
  for (const row of rows) {
    if (!row.answered) continue;
    if (row.started !== null && row.started !== runs.at(-1)?.started) {
      const age = (row.ms - Date.parse(row.started)) / 1000;
      // The age is unreliable if the clock was set since then. The run started after the previous row, and not later than this one.
      const from = Math.min(row.at, Math.max(before?.at ?? Number.NEGATIVE_INFINITY, Number.isNaN(age) ? row.at : row.at - age));
      runs.push({ from, started: row.started, version: row.version ?? '', ...causeOf(row, before), unseen: 0 });
    }
    before = row;
  }
  return runs;
}

function causeOf({ bootOf, version }: PlacedRow, before: PlacedRow | null): Pick<ServiceRun, 'cause' | 'detail'> {
  if (before === null) return { cause: 'first', detail: '' };
  if (before.bootOf !== bootOf) return { cause: 'reboot', detail: '' };
  if (before.version !== version) return { cause: 'upgrade', detail: '' };
  return { cause: 'unknown', detail: 'what ended the run before is not collected' };
}

function memoryOf(rows: readonly PlacedRow[]): MemoryEvidence {
  const known = rows.filter(({ answered, memoryBytes, started }) => answered && memoryBytes !== null && started !== null);
  return {
    at: Float64Array.from(known, ({ at }) => at),
    bytes: Float64Array.from(known, ({ memoryBytes }) => memoryBytes ?? Number.NaN),
    hostPercent: Float64Array.from(known, ({ readings }) => readings.memory_percent ?? Number.NaN),
    group: null,
  };
}

/** CPU time of the service between rows of one run, including from its start if that is in the period; by row in percent. */
function cpuOf(rows: readonly PlacedRow[], runs: readonly ServiceRun[]): { cpu: CpuEvidence; cpuPercent: (number | null)[] } {
  const total = { cpuSeconds: 0, awakeSeconds: 0 };
  const host = { weighted: 0, seconds: 0 };
  let last: PlacedRow | null = null;
  const cpuPercent = rows.map((row, i): number | null => {
    const before = rows[i - 1];
    const awake = before === undefined || row.fresh ? 0 : Math.max(0, row.mono - before.mono);
    if (row.readings.cpu_percent !== null) {
      host.weighted += row.readings.cpu_percent * awake;
      host.seconds += awake;
    }
    if (!row.answered || row.started === null || row.cpuSeconds === null) return null;
    const isSameRun = last?.started === row.started && last.bootOf === row.bootOf;
    const from = runs.findLast(({ started }) => started === row.started)?.from ?? -1;
    let cpuSeconds = row.cpuSeconds;
    let awakeSeconds = 0;
    if (isSameRun) {
      cpuSeconds -= last?.cpuSeconds ?? 0;
      awakeSeconds = row.mono - (last?.mono ?? row.mono);
    } else if (from >= 0) {
      const isWithin = before !== undefined && !row.fresh && from >= before.at;
      awakeSeconds = isWithin ? Math.min(row.at - from, awake) : row.at - from;
    }
    last = row;
    if (awakeSeconds <= 0 || cpuSeconds < 0) return null;
    total.cpuSeconds += cpuSeconds;
    total.awakeSeconds += awakeSeconds;
    return (100 * cpuSeconds) / awakeSeconds;
  });
  const from = total.awakeSeconds > 0 ? 'CPU time as /status has it' : 'not known';
  return { cpu: { ...total, from, hostMeanPercent: host.seconds > 0 ? host.weighted / host.seconds : null }, cpuPercent };
}

type Episode = ChartSeries['alerts'][number];

/**
 * The episodes of this node in the period, with the worst severity of each. Changes have only wall-clock times; rows
 * map them to the time axis.
 */
function episodesOf({ changes, openBefore }: CollectedAlerts, rows: readonly PlacedRow[], { fromMs }: Period): Episode[] {
  const episodes = new Map<string, Episode>();
  const add = ({ alert_id: alertId, metric, resolved, severity }: AlertRecord, at: number): void => {
    const known = episodes.get(alertId);
    if (known && known.to !== null) return;
    const worst = known && SEVERITIES.indexOf(known.severity as Severity) > SEVERITIES.indexOf(severity) ? known.severity : severity;
    episodes.set(alertId, { alertId, metric, severity: worst, from: known?.from ?? at, to: resolved ? at : null });
  };
  for (const change of openBefore) add(change, 0);
  let next = 0;
  for (const change of changes) {
    const ms = Date.parse(change.timestamp);
    while (next < rows.length && (rows[next] as PlacedRow).ms <= ms) next += 1;
    const before = rows[next - 1] ?? { at: 0, ms: fromMs };
    const after = rows[next];
    const until = after === undefined || (after.fresh && next > 0) ? before.at : after.at;
    add(change, roundToMilliseconds(Math.min(until, before.at + Math.max(0, ms - before.ms) / 1000)));
  }
  return [...episodes.values()];
}

/** Open alerts at the end, according to the files of alerts/ and to the counts of /status in the last rows. */
function openAlerts({ alerts, hasAlerts, isAlone, rows }: Collected): {
  readonly evidence: Omit<AlertEvidence, 'episodes'>;
  readonly missing: readonly string[];
} {
  const open = alerts.open.map(
    ({ alert_id, began, metric, severity }): OpenEpisode => ({ alertId: alert_id, metric, severity, since: began }),
  );
  const byFiles = {
    openByTopic: hasAlerts ? open : null,
    reason: hasAlerts ? null : 'no alerts were collected: there is nothing in alerts/',
  };
  const answers = rows.filter(({ answered }) => answered);
  const last = answers.at(-1);
  if (!last) return { evidence: { ...byFiles, openByRest: null }, missing: [] };
  const late = answers.filter(({ ms }) => Math.abs(last.ms - ms) <= AGREE_MS);
  const agrees = (severity: Severity): boolean =>
    late.some((row) => row.open[severity] === null || row.open[severity] === alerts.openOfAll[severity]);
  const differing = SEVERITIES.filter((severity) => !agrees(severity));
  // An alert that only /status counts belongs to this node if there is no other node.
  const more = isAlone && differing.includes('CRITICAL') ? Math.max(0, (last.open.CRITICAL ?? 0) - alerts.openOfAll.CRITICAL) : 0;
  const counted = Array.from({ length: more }, (_, i): OpenEpisode => {
    const alertId = `${last.node}: counted by /status at ${isoUtc(last.ms)} (${i + 1})`;
    return { alertId, metric: 'not known', severity: 'CRITICAL', since: null };
  });
  const missing = differing.map(
    (severity) => `${last.open[severity]} ${severity} were open by the last row, ${alerts.openOfAll[severity]} by the collected alerts`,
  );
  return { evidence: { ...byFiles, openByRest: [...open, ...counted] }, missing };
}
