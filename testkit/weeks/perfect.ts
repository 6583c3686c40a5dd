import type { CoverageEvidence, Evidence, MemoryEvidence, OpenEpisode, ServiceRun } from '../../harness/engine/evidence.ts';

const WEEK = 604_800;
const DAY = 86_400;

export const COVERAGE: CoverageEvidence = { count: WEEK, covered: 1, gaps: [], longestSeconds: 1, unscannedSeconds: 0 };

export function serviceRun(from: number, more: Partial<ServiceRun> = {}): ServiceRun {
  return { from, started: `start at ${from}`, version: '0.1.0', cause: 'signal', detail: 'SIGKILL', unseen: 0, ...more };
}

export function episode(alertId: string, severity: OpenEpisode['severity'], more: Partial<OpenEpisode> = {}): OpenEpisode {
  return { alertId, metric: 'cpu_percent', severity, since: '2026-03-04T05:06:07.000Z', ...more };
}

/** Memory evidence with one reading per minute. */
export function memoryOf(bytes: (at: number) => number, seconds = WEEK - 1, from = 60): MemoryEvidence {
  const at = Float64Array.from({ length: Math.floor((seconds - from) / 60) + 1 }, (_, index) => from + index * 60);
  return { at, bytes: at.map(bytes), hostPercent: at.map(() => 41.5), group: { lastBytes: 80e6, maxBytes: 90e6 } };
}

/** Evidence of a week without any fault. */
export function perfectEvidence(more: Partial<Evidence> = {}): Evidence {
  return {
    origin: 'observed',
    plannedSeconds: WEEK,
    ended: true,
    observed: [{ from: 0, to: WEEK, awakeSeconds: WEEK }],
    monitoringGaps: [],
    suspends: [],
    clockSteps: [],
    runs: [serviceRun(-DAY, { cause: 'first', detail: '' })],
    lastSeenAt: WEEK,
    reliability: {
      by: 'topic',
      reason: null,
      hertz: 1,
      expected: WEEK,
      received: WEEK,
      unobserved: 0,
      duplicates: 0,
      outOfOrder: 0,
      lost: { notSampled: 0, notPublished: 0, notDelivered: 0, unknown: 0 },
      byEvents: { expected: WEEK, received: WEEK },
    },
    memory: memoryOf(() => 60e6),
    cpu: { cpuSeconds: WEEK / 100, awakeSeconds: WEEK, from: 'CPU time of its control group', hostMeanPercent: 7 },
    alerts: { episodes: { WARNING: 0, ERROR: 0, CRITICAL: 0 }, openByRest: [], openByTopic: [], reason: null },
    integrity: { stored: COVERAGE, collected: { ...COVERAGE, count: 10_080, longestSeconds: 60 }, reason: null },
    ...more,
  };
}
