import type { ChartSeries, Evidence } from '../../engine/evidence.ts';
import type { ReportInput, RunFacts } from '../compose.ts';
import { sixJudgements } from './judgements.ts';

/** Inputs of compose: a perfect week, ten minutes, and nothing at all. */

export const BEGUN_MS = Date.UTC(2026, 2, 2, 7, 30);
export const WEEK = 604_800;

/** Reproducible noise. */
function noise(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

export function minutes(seconds: number, isThere: (at: number) => boolean = () => true): ChartSeries {
  const random = noise(7);
  const at = Array.from({ length: Math.floor(seconds / 60) }, (_, minute) => (minute + 1) * 60).filter(isThere);
  const day = (time: number): number => Math.sin((time / 86_400) * 2 * Math.PI);
  const column = (value: (time: number) => number): number[] => at.map(value);
  return {
    begunEpochSeconds: BEGUN_MS / 1000,
    at,
    ratePercent: column(() => (random() < 0.001 ? 98.33 : 100)),
    memoryMegabytes: column((time) => 61.5 + 0.6 * (1 - Math.exp(-time / 20_000)) + random() * 0.5),
    hostMemoryPercent: column((time) => 41 + 3 * day(time) + random()),
    cpuPercent: column(() => 0.26 + random() * 0.12),
    hostCpuPercent: column((time) => 22 + 14 * day(time) + random() * 9),
    celsius: column((time) => 51 + 5 * day(time - 7200) + random() * 2),
    alerts: [
      {
        from: seconds * 0.31,
        to: seconds * 0.31 + Math.min(900, seconds / 10),
        severity: 'WARNING',
        metric: 'temperature',
        alertId: 'robot_7/temperature/01J',
      },
    ],
    restarts: [],
    monitoringGaps: [],
    suspends: [],
    clockSteps: [],
  };
}

export function evidence(seconds: number, others: Partial<Evidence> = {}): Evidence {
  return { ...NO_EVIDENCE, plannedSeconds: seconds, ended: true, observed: [{ from: 0, to: seconds, awakeSeconds: seconds }], ...others };
}

/** The evidence of a run without data. */
export const NO_EVIDENCE: Evidence = {
  origin: 'observed',
  plannedSeconds: WEEK,
  ended: false,
  lastSeenAt: null,
  observed: [],
  monitoringGaps: [],
  suspends: [],
  clockSteps: [],
  runs: [],
  reliability: {
    by: null,
    reason: null,
    hertz: null,
    expected: 0,
    received: 0,
    unobserved: 0,
    duplicates: 0,
    outOfOrder: 0,
    lost: { notSampled: 0, notPublished: 0, notDelivered: 0, unknown: 0 },
    byEvents: null,
  },
  memory: { at: new Float64Array(), bytes: new Float64Array(), hostPercent: new Float64Array(), group: null },
  cpu: { cpuSeconds: 0, awakeSeconds: 0, from: '', hostMeanPercent: null },
  alerts: { episodes: { WARNING: 0, ERROR: 0, CRITICAL: 0 }, openByRest: null, openByTopic: null, reason: null },
  integrity: { stored: null, collected: null, reason: null },
};

export function runFacts(seconds: number, others: Partial<RunFacts> = {}): RunFacts {
  return {
    id: '6f1d2c3b4a5968778695a4b3c2d1e0f0',
    node_name: 'robot_7',
    version: '0.1.0',
    how: [
      'edge-health.service of systemd on this machine, and REST at http://127.0.0.1:5000',
      '/health_status and /alerts on ROS 2 by the transport embedded: light, and independent of what is installed',
    ],
    machine: {
      hostname: 'robot-7',
      model: 'Raspberry Pi 5',
      os: 'Debian 12',
      kernel: '6.6.31',
      architecture: 'arm64',
      cpu: 'Cortex-A76',
      cores: 4,
      memory_bytes: 8.3e9,
    },
    harness: { cpu_percent: 0.18, resident_bytes: 61_300_000 },
    begun: new Date(BEGUN_MS).toISOString(),
    ended: new Date(BEGUN_MS + seconds * 1000).toISOString(),
    notes: [],
    ...others,
  };
}

export const record = { file: 'record.ndjson', entries: 10_263, bytes: 14_310_221, head: 'ab'.repeat(32), torn_lines: 0 };

export function memoryOf(series: ChartSeries): ReportInput['memory'] {
  const medians = series.at.flatMap((at, index) =>
    at % 300 === 0 && at >= 3600 ? [{ at: at - 150, megabytes: series.memoryMegabytes[index] ?? 0 }] : [],
  );
  const [first, last] = [medians[0], medians.at(-1)];
  const memory_trend =
    first && last && medians.length > 2
      ? [{ from: first.at, to: last.at, megabytes_from: first.megabytes, megabytes_to: last.megabytes }]
      : [];
  return { memory_medians: medians, memory_trend };
}

export function perfectWeek(): ReportInput {
  const series = minutes(WEEK);
  return {
    evidence: evidence(WEEK),
    judgements: sixJudgements(),
    series,
    memory: memoryOf(series),
    run: runFacts(WEEK),
    record,
    madeMs: BEGUN_MS + WEEK * 1000,
    madeBy: '0.1.0',
  };
}

export function tenMinutes(): ReportInput {
  const series = minutes(600);
  const judgements = sixJudgements({
    uptime: {
      verdict: 'INCOMPLETE',
      measured: { label: 'Observed', value: 1 / 6, unit: 'h' },
      margin: 1 / 6 - 168,
      summary: 'The service was observed for 10 min of the required 168 h, and was never restarted.',
      missing: ['167 h 50 min of observation'],
    },
    stability: {
      verdict: 'INCOMPLETE',
      measured: { label: 'Memory variance', value: null, unit: '%' },
      margin: null,
      summary: 'The warm-up of one hour was not over.',
      evidence: [],
      missing: ['five-minute medians after the first hour'],
    },
  });
  return {
    ...perfectWeek(),
    evidence: evidence(600),
    judgements,
    series,
    memory: memoryOf(series),
    run: runFacts(600),
    madeMs: BEGUN_MS + 601_000,
  };
}

/** A record that ended with its first entry. */
export function nothing(): ReportInput {
  const verdict = 'INCOMPLETE' as const;
  const judgements = sixJudgements().map((judgement) => ({
    ...judgement,
    verdict,
    measured: { ...judgement.measured, value: null },
    margin: null,
    summary: 'Nothing was recorded.',
    evidence: [],
    tables: [],
    missing: ['everything'],
  }));
  const series = { ...minutes(0), alerts: [] };
  const run = runFacts(0, { machine: null, harness: null, version: null, how: [] });
  return {
    ...perfectWeek(),
    evidence: NO_EVIDENCE,
    judgements,
    series,
    memory: { memory_medians: [], memory_trend: [] },
    run,
    record: null,
  };
}
