import { join } from 'node:path';
import { SEVERITIES } from '../../src/core/alert.ts';
import { isoUtc, MINUTE_MS } from '../../src/core/time.ts';
import { type AlertFigures, alertFigures } from './alert-figures.ts';
import { readRows, type ServiceRow } from './collected-rows.ts';
import { NodeSums } from './node-figures.ts';
import type { Period } from './period.ts';
import { serviceFigures } from './service-figures.ts';
import { GAP_SECONDS, inOrder, slots, timeline } from './timeline.ts';

/** Below it the period is not covered well enough. */
const ENOUGH_ROWS = 0.99;

export type ReportDocument = NonNullable<Awaited<ReturnType<typeof reportOf>>>;

export const NOTE =
  'These are figures from what was collected about once a minute. They are not the verdict of the 168-hour harness, which watches every sample from outside.';

/** The figures of a period from a data folder's metrics/ and alerts/; null: there is no row of it. */
export async function reportOf(dataFolder: string, period: Period, nowMs: number, signal: AbortSignal) {
  const nodes = new NodeSums();
  const found: ServiceRow[] = [];
  const counts = await readRows(
    join(dataFolder, 'metrics'),
    period,
    { node: (row) => nodes.add(row), service: (row) => found.push(row) },
    signal,
  );
  const alerts = await alertFigures(join(dataFolder, 'alerts'), period, signal);
  const rows = inOrder(found);
  const last = rows.at(-1);
  if (!last) return null;
  const time = timeline(rows, period);
  const slot = slots(rows, period, time);
  const { boots, cpuPercent, memoryBytes, restarts, samples, unanswered } = serviceFigures(rows);
  const lastAnswer = rows.findLast(({ answered }) => answered) ?? null;
  const open = Object.fromEntries(SEVERITIES.map((severity) => [severity, lastAnswer?.open[severity] ?? null]));
  const incomplete = [
    ...(slot.withRow < ENOUGH_ROWS * slot.expected ? [`${slot.expected - slot.withRow} of ${slot.expected} rows are missing`] : []),
    ...(time.gaps.length > 0 ? [`${time.gaps.length === 1 ? '1 gap' : `${time.gaps.length} gaps`} of more than ${GAP_SECONDS} s`] : []),
    ...(counts.foreign + alerts.foreign > 0 ? [`${counts.foreign + alerts.foreign} lines cannot be read`] : []),
    ...disagreement(alerts, rows),
  ];
  return {
    kind: 'figures' as const,
    note: NOTE,
    made: isoUtc(nowMs),
    period: { from: isoUtc(period.fromMs), to: isoUtc(period.toMs), hours: round((period.toMs - period.fromMs) / 3.6e6, 2) },
    incomplete,
    collection: {
      files: counts.files,
      rows: counts.rows,
      lines_not_read: counts.foreign,
      first_row: isoUtc((rows[0] as ServiceRow).ms),
      last_row: isoUtc(last.ms),
      slot_seconds: slot.seconds,
      slots: slot.expected,
      slots_with_row: slot.withRow,
      slots_answered: slot.answered,
      answered_share: round(slot.answered / slot.expected, 5),
      longest_gap_seconds: time.longestGapSeconds,
      gaps: time.gaps,
      clock_steps: time.clockSteps,
      sleeps: time.sleeps,
      unanswered,
    },
    service: { node_name: last.node, version: lastAnswer?.version ?? null, boots, restarts },
    samples: { ...samples, share: samples.expected > 0 ? round(samples.received / samples.expected, 5) : null },
    memory_bytes: memoryBytes,
    cpu_percent_of_one_core: cpuPercent,
    nodes: nodes.figures(),
    alerts: { ...alerts, lines_not_read: alerts.foreign, open_by_last_row: open },
  };
}

/** Alerts are collected less often than rows: so long before the last row both must have agreed at some time. */
const AGREE_WITHIN_MS = 10 * MINUTE_MS;

/** What /status counted as open at the end against what the collected changes say. */
function disagreement({ open }: AlertFigures, rows: readonly ServiceRow[]): string[] {
  const answers = rows.filter(({ answered }) => answered);
  const last = answers.at(-1);
  if (!last) return [];
  const late = answers.filter(({ ms }) => ms >= last.ms - AGREE_WITHIN_MS);
  return SEVERITIES.flatMap((severity) => {
    const collected = open.filter((episode) => episode.severity === severity).length;
    if (late.some((row) => row.open[severity] === null || row.open[severity] === collected)) return [];
    return [`${last.open[severity]} ${severity} were open by the last row, ${collected} by the collected alerts`];
  });
}

function round(value: number, digits: number): number {
  return Math.round(value * 10 ** digits) / 10 ** digits;
}
