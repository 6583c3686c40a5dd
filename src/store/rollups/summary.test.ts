import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { STATUSES, type Status } from '../../core/alerts/alert.ts';
import { METRICS, type Readings } from '../../core/metrics.ts';
import type { ClockEvent } from '../../core/time/clock-watch.ts';
import { toColumns } from '../testing/rows.ts';
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
  worstOfSummary,
} from './summary.ts';

const PERIOD_MS = 1000;
const idle: Readings = { cpu_percent: 10, memory_percent: 20, disk_percent: 30, temperature: 40 };

interface Row {
  readonly timestampMs: number;
  readonly readings: Readings;
  readonly status: Status;
}

function summarize(rows: readonly Row[], events: readonly ClockEvent[] = [], histograms: Histograms | null = null): Summary {
  const summary = emptySummary();
  const columns = toColumns(rows.map(({ readings, ...row }) => ({ ...row, values: METRICS.map((metric) => readings[metric]) })));
  for (let i = 0; i < columns.count; i += 1) addRow(summary, histograms, columns, i, PERIOD_MS, events);
  return summary;
}

function worstStatus(summary: Summary): Status | undefined {
  return STATUSES[worstOfSummary(summary)];
}

/** Samples at these times, all of one status. */
function samplesAt(times: readonly number[], status: Status = 'OK', readings: Readings = idle): Row[] {
  return times.map((timestampMs) => ({ timestampMs, readings, status }));
}

t.test('no samples have no mean and no deviation, and their status is UNKNOWN', async (t) => {
  const summary = emptySummary();
  t.equal(summary.received, 0);
  for (const metric of summary.metrics) {
    t.equal(meanOf(metric), null);
    t.equal(standardDeviationOf(metric), null);
  }
  t.equal(worstStatus(summary), 'UNKNOWN');
});

t.test('each metric has its own minimum, maximum, mean, deviation and last value', async (t) => {
  const temperatures = [2, 4, 4, 4, 5, 5, 7, 9];
  const rows = temperatures.map((temperature, i) => ({ timestampMs: i * 1000, readings: { ...idle, temperature }, status: 'OK' as const }));
  const { metrics, received, firstMs, lastMs } = summarize(rows);
  t.same({ received, firstMs, lastMs }, { received: 8, firstMs: 0, lastMs: 7000 });
  const [cpu, , , temperature] = metrics as [Summary['metrics'][0], unknown, unknown, Summary['metrics'][0]];
  t.match(temperature, { count: 8, min: 2, max: 9, last: 9 });
  t.equal(meanOf(temperature), 5);
  t.equal(standardDeviationOf(temperature), 2);
  t.match(cpu, { count: 8, min: 10, max: 10, last: 10 });
  t.equal(standardDeviationOf(cpu), 0);
});

t.test('an unavailable reading is skipped, not counted as 0, and the last value stays the last measured', async (t) => {
  const histograms = emptyHistograms();
  const rows = [...samplesAt([0], 'OK', { ...idle, temperature: 50 }), ...samplesAt([1000], 'OK', { ...idle, temperature: null })];
  const summary = summarize(rows, [], histograms);
  t.match(summary.metrics[3], { count: 1, sum: 50, min: 50, max: 50, last: 50 });
  t.match(summary.metrics[0], { count: 2 });
  t.equal(summary.received, 2);
  t.same([...(histograms[3] ?? [])], [[500, 1]]);
});

t.test('each sample accounts for one period of its status', async (t) => {
  const rows = [
    ...samplesAt([0, 1000, 2000]),
    ...samplesAt([3000, 4000], 'WARNING'),
    ...samplesAt([5000], 'CRITICAL'),
    ...samplesAt([6000], 'UNKNOWN'),
  ];
  t.same(summarize(rows).statusMs, [3000, 2000, 1000, 0, 1000], 'in the order of STATUSES');
});

t.test('a pause of more than three periods is a gap, a shorter one is not', async (t) => {
  t.match(summarize(samplesAt([0, 3000])), { statusMs: [2000, 0, 0, 0, 0], gapMs: 0 });
  t.match(summarize(samplesAt([0, 3001])), { statusMs: [2000, 0, 0, 0, 0], gapMs: 2001 });
  t.equal(summarize(samplesAt([0, 60_000])).gapMs, 59_000, 'all but the period of the last sample');
});

t.test('the longest gap is the longest time between two samples', async (t) => {
  t.equal(summarize(samplesAt([0, 1000, 9000, 10_000, 12_000])).longestGapMs, 8000);
  t.equal(summarize(samplesAt([5000])).longestGapMs, 0);
});

t.test('time in a suspend is no gap', async (t) => {
  const events: ClockEvent[] = [{ kind: 'suspend', timestamp_ms: 3_601_000, delta_seconds: 3600 }];
  const summary = summarize(samplesAt([0, 3_601_000]), events);
  t.equal(summary.longestGapMs, 1000);
  t.equal(summary.gapMs, 0);
});

t.test('a clock set forward is no gap', async (t) => {
  const events: ClockEvent[] = [{ kind: 'step', timestamp_ms: 3_601_000, delta_seconds: 3600 }];
  t.equal(summarize(samplesAt([0, 3_601_000]), events).longestGapMs, 1000);
  t.equal(summarize(samplesAt([3_601_000, 3_602_000]), events).longestGapMs, 1000, 'the step affects only the samples on both sides of it');
});

t.test('a clock set back is no gap, neither at the step nor among the earlier samples of the same times', async (t) => {
  // 0 to 100 s, then set back by 60 s: 41 s to 50 s.
  const events: ClockEvent[] = [{ kind: 'step', timestamp_ms: 41_000, delta_seconds: -60 }];
  const seconds = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => (from + i) * 1000);
  const summary = summarize(samplesAt([...seconds(0, 100), ...seconds(41, 50)]), events);
  t.equal(summary.longestGapMs, 1000);
  t.equal(summary.gapMs, 0);
});

t.test('no gap is negative', async (t) => {
  t.equal(summarize(samplesAt([100_000, 41_000])).longestGapMs, 0);
  t.equal(summarize(samplesAt([0, 1000]), [{ kind: 'suspend', timestamp_ms: 1000, delta_seconds: 2 }]).longestGapMs, 0);
});

t.test('equal values have no deviation, despite rounding of their squares', async (t) => {
  for (let hundredths = 1; hundredths <= 10_000; hundredths += 7) {
    const cpu_percent = hundredths / 100;
    const metric = summarize(samplesAt([0, 1000, 2000], 'OK', { ...idle, cpu_percent })).metrics[0];
    const deviation = metric && standardDeviationOf(metric);
    if (!(typeof deviation === 'number' && deviation < 1e-4)) t.fail(`${cpu_percent} deviates by ${deviation}`);
  }
  t.pass('for every value');
});

t.test('gaps at both ends of a range count', async (t) => {
  const summary = summarize(samplesAt([10_000, 11_000]));
  addGap(summary, 0, 10_000, PERIOD_MS, []);
  addGap(summary, 11_000, 41_000, PERIOD_MS, []);
  t.equal(summary.longestGapMs, 30_000);
  t.match(summary, { statusMs: [2000, 0, 0, 0, 0], gapMs: 9000 + 29_000 });
});

t.test('a range without samples is one gap, and UNKNOWN', async (t) => {
  const summary = emptySummary();
  addGap(summary, 0, 60_000, PERIOD_MS, []);
  t.equal(summary.longestGapMs, 60_000);
  t.equal(worstStatus(summary), 'UNKNOWN');
});

t.test('the worst status represents the whole, and gaps never outweigh the statuses of samples', async (t) => {
  t.equal(worstStatus(summarize(samplesAt([0, 60_000]))), 'OK');
  t.equal(worstStatus(summarize([...samplesAt([0], 'UNKNOWN'), ...samplesAt([1000], 'WARNING')])), 'UNKNOWN');
  t.equal(worstStatus(summarize([...samplesAt([0], 'UNKNOWN'), ...samplesAt([1000], 'ERROR')])), 'ERROR');
  t.equal(worstStatus(summarize([...samplesAt([0]), ...samplesAt([1000], 'WARNING')])), 'WARNING');
  t.equal(worstStatus(summarize([...samplesAt([0], 'CRITICAL'), ...samplesAt([1000], 'WARNING')])), 'CRITICAL');
  t.equal(worstStatus(summarize(samplesAt([0], 'UNKNOWN'))), 'UNKNOWN');
});

t.test('merging an empty summary has no effect, and the source is not modified', async (t) => {
  const rows = samplesAt([0, 1000]);
  const summary = summarize(rows);
  addStretch(summary, emptySummary(), PERIOD_MS, []);
  t.same(summary, summarize(rows));
  addStretch(emptySummary(), summary, PERIOD_MS, []);
  addStretch(summary, summarize(samplesAt([2000])), PERIOD_MS, []);
  const later = summarize(samplesAt([3000]));
  addStretch(summary, later, PERIOD_MS, []);
  t.same(later, summarize(samplesAt([3000])));
});

// Compares random data with a direct computation.

const reading = fc.option(
  fc.integer({ min: -4000, max: 15_000 }).map((hundredths) => hundredths / 100),
  { freq: 8 },
);
const step = fc.record({
  pauseMs: fc.oneof({ weight: 6, arbitrary: fc.integer({ min: 900, max: 1100 }) }, fc.integer({ min: 1, max: 400_000 })),
  /** Milliseconds of the pause that were a suspend. */
  sleptMs: fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, fc.integer({ min: 500, max: 4_000_000 })),
  readings: fc.record({ cpu_percent: reading, memory_percent: reading, disk_percent: reading, temperature: reading }),
  status: fc.constantFrom(...STATUSES),
});

function timeline(steps: readonly { pauseMs: number; sleptMs: number; readings: Readings; status: Status }[]) {
  let timestampMs = 1_772_600_000_000;
  const events: ClockEvent[] = [];
  const rows = steps.map(({ pauseMs, sleptMs, readings, status }) => {
    timestampMs += pauseMs + sleptMs;
    if (sleptMs > 0) events.push({ kind: 'suspend', timestamp_ms: timestampMs, delta_seconds: sleptMs / 1000 });
    return { timestampMs, readings, status };
  });
  // The first pause is before the first sample.
  return { rows, events, pauses: steps.slice(1).map(({ pauseMs }) => pauseMs) };
}

const close = (a: number, b: number): boolean => Math.abs(a - b) <= 1e-6 * Math.max(1, Math.abs(a), Math.abs(b));

t.test('summaries merged in any split equal the direct computation from all samples', async (t) => {
  let merges = 0;
  const cuts = fc.uniqueArray(fc.nat(80), { maxLength: 8, size: 'max' });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 80, size: 'max' }), cuts, (steps, cuts) => {
      const { rows, events, pauses } = timeline(steps);
      const merged = emptySummary();
      const histograms = emptyHistograms();
      const bounds = [0, ...cuts.filter((cut) => cut < rows.length).sort((a, b) => a - b), rows.length];
      for (let i = 1; i < bounds.length; i += 1) {
        const partHistograms = emptyHistograms();
        const part = summarize(rows.slice(bounds[i - 1], bounds[i]), events, partHistograms);
        addStretch(merged, part, PERIOD_MS, events);
        mergeAllHistograms(histograms, partHistograms);
        merges += 1;
      }
      if (merged.received !== rows.length) return false;
      if (merged.firstMs !== rows[0]?.timestampMs || merged.lastMs !== rows.at(-1)?.timestampMs) return false;
      if (!close(merged.longestGapMs, Math.max(0, ...pauses))) return false;
      const silent = pauses.filter((pause) => pause > 3 * PERIOD_MS).reduce((sum, pause) => sum + pause - PERIOD_MS, 0);
      const statusesRight = STATUSES.every((status, i) => {
        const measured = rows.filter((row) => row.status === status).length * PERIOD_MS;
        return close(merged.statusMs[i] as number, measured);
      });
      return (
        statusesRight &&
        close(merged.gapMs, silent) &&
        METRICS.every((name, m) => {
          const values = rows.map((row) => row.readings[name]).filter((value) => value !== null);
          const metric = merged.metrics[m] as Summary['metrics'][number];
          const median = percentiles(histograms[m] ?? new Map(), [0.5])[0] as number | null;
          if (values.length === 0) return metric.count === 0 && meanOf(metric) === null && median === null;
          const mean = values.reduce((a, b) => a + b) / values.length;
          const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
          const middle = [...values].sort((a, b) => a - b)[Math.ceil(values.length / 2) - 1] as number;
          return (
            metric.count === values.length &&
            metric.min === Math.min(...values) &&
            metric.max === Math.max(...values) &&
            metric.last === values.at(-1) &&
            close(meanOf(metric) as number, mean) &&
            Math.abs((standardDeviationOf(metric) as number) - deviation) < 1e-4 &&
            Math.abs((median as number) - middle) <= 0.1
          );
        })
      );
    }),
    { numRuns: runs(300, 3000), seed: SEED },
  );
  t.ok(merges > 300, 'most runs merged several parts');
});
