import type { ChartSeries } from '../../engine/evidence.ts';
import type { ReportInput } from '../compose.ts';
import { sixJudgements } from './judgements.ts';
import { BEGUN_MS, evidence, memoryOf, minutes, record, runFacts, WEEK } from './runs.ts';

/** Every kind of fault: restarts, an outage, monitoring gaps, a suspend, clock steps, a leak, alerts of every kind, gaps. */
export function badWeek(): ReportInput {
  const away = { from: 190_000, to: 204_400, kind: 'away' as const };
  const off = { from: 400_000, to: 400_900, kind: 'off' as const };
  const length = WEEK + 14_400 + 900;
  const base = minutes(length, (at) => !(at > away.from && at < away.to) && !(at > off.from && at < off.to));
  const isDown = (at: number): boolean => at > 302_000 && at < 309_200;
  const series: ChartSeries = {
    ...base,
    ratePercent: base.at.map((at, index) => (isDown(at) ? 0 : at > 500_000 && at < 520_000 ? 61.7 : (base.ratePercent[index] ?? null))),
    memoryMegabytes: base.at.map((at, index) => (isDown(at) ? null : (base.memoryMegabytes[index] ?? 0) + (at / 3600) * 0.11)),
    cpuPercent: base.at.map((at, index) => (isDown(at) ? null : at > 420_000 ? 13 + ((index * 7) % 5) : (base.cpuPercent[index] ?? null))),
    celsius: base.at.map((at, index) => (at > 420_000 ? 84 + ((index * 3) % 4) : (base.celsius[index] ?? null))),
    alerts: [
      { from: 60_000, to: 61_200, severity: 'WARNING', metric: 'cpu_percent', alertId: 'robot_7/cpu_percent/01JA' },
      { from: 302_010, to: 309_200, severity: 'ERROR', metric: 'health_status', alertId: 'robot_7/health_status/01JB' },
      { from: 421_000, to: 425_000, severity: 'WARNING', metric: 'temperature', alertId: 'robot_7/temperature/01JC' },
      { from: 425_000, to: null, severity: 'CRITICAL', metric: 'temperature', alertId: 'robot_7/temperature/01JC' },
      ...Array.from({ length: 120 }, (_, index) => ({
        from: 440_000 + index * 1200,
        to: 440_300 + index * 1200,
        severity: 'WARNING',
        metric: 'memory_percent',
        alertId: `robot_7/memory_percent/01JD${index}`,
      })),
    ],
    restarts: [
      { at: 130_000, cause: 'watchdog', detail: 'SIGABRT' },
      { at: 309_200, cause: 'exit', detail: 'exit status 70' },
      { at: 400_900, cause: 'reboot', detail: '' },
    ],
    monitoringGaps: [away, off],
    suspends: [{ at: 90_000, seconds: 7200 }],
    clockSteps: [
      { at: 250_000, seconds: 3600 },
      { at: 260_000, seconds: -3600 },
    ],
  };
  const judgements = sixJudgements({
    uptime: {
      verdict: 'FAIL',
      measured: { label: 'Restarts', value: 3, unit: '' },
      limit: { comparison: '<', value: 3, unit: '' },
      margin: 0,
      summary: 'The service was restarted 3 times: by the watchdog, after exit status 70, and with a reboot.',
      tables: [
        {
          title: 'Restarts',
          columns: ['At', 'Cause', 'Detail'],
          rows: series.restarts.map(({ at, cause, detail }) => [new Date(BEGUN_MS + at * 1000).toISOString(), cause, detail]),
        },
      ],
    },
    reliability: {
      verdict: 'FAIL',
      measured: { label: 'Received of expected', value: 97.5312, unit: '%' },
      margin: -1.4688,
      summary: '589,869 of 604,800 statuses were received.',
      tables: [
        {
          title: 'Losses',
          columns: ['Where', 'Statuses'],
          rows: [
            ['not sampled', 7200],
            ['not delivered', 7731],
            ['unknown', null],
          ],
        },
      ],
    },
    stability: {
      verdict: 'FAIL',
      measured: { label: 'Memory variance', value: 28.4711, unit: '%' },
      margin: -18.4711,
      summary: 'Memory rose from 61.7 to 80.5 MB.',
    },
    alerts: {
      verdict: 'FAIL',
      measured: { label: 'Open CRITICAL alerts', value: 1, unit: '' },
      margin: 0,
      summary: '1 CRITICAL alert is open: temperature.',
      tables: [{ title: 'Open at the end', columns: ['Alert', 'Metric'], rows: [['robot_7/temperature/01JC', 'temperature']] }],
    },
    performance: {
      verdict: 'PASS',
      measured: { label: 'CPU of one core', value: 9.99961, unit: '%' },
      margin: 0.00039,
      summary: 'The service used 60,478 s of CPU.',
    },
    integrity: {
      verdict: 'INCOMPLETE',
      measured: { label: 'Longest gap', value: null, unit: 's' },
      margin: null,
      summary: 'The collected rows could not be read.',
      missing: ['rows of metrics/: the data folder is not readable'],
    },
  });
  return {
    evidence: evidence(WEEK, {
      observed: [
        { from: 0, to: away.from, awakeSeconds: away.from - 7200 },
        { from: away.to, to: off.from, awakeSeconds: off.from - away.to },
        { from: off.to, to: length, awakeSeconds: length - off.to },
      ],
      monitoringGaps: [away, off],
      suspends: series.suspends,
      clockSteps: series.clockSteps.map((step) => ({ ...step, wall: '' })),
    }),
    judgements,
    series,
    memory: memoryOf(series),
    run: runFacts(length, { notes: ['The event stream broke off and was opened again.'] }),
    record: { ...record, torn_lines: 1 },
    madeMs: BEGUN_MS + length * 1000,
    madeBy: '0.1.0',
  };
}
