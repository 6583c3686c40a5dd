/** The wording of a report made from collected files instead of an observed run. */
import type { Evidence } from '../../harness/engine/evidence.ts';
import type { Criterion, Judgement, TestVerdict } from '../../harness/engine/judgement.ts';
import type { compose } from '../../harness/report/compose.ts';
import { METRICS, toHundredths } from '../../src/core/metrics.ts';
import type { JobResult, JobStatus } from '../lib/job.ts';
import type { NodeSums } from './collected.ts';
import type { PlacedRow } from './timeline.ts';

/** How a criterion is computed, if it differs from an observed run. */
const FORMULAS: Readonly<Partial<Record<Criterion, string>>> = {
  uptime:
    'observed = time between rows of one boot, by CLOCK_BOOTTIME, that are at most 150 s apart or show the same run of the service, and up to 150 s at both ends of the period, ≥ 168 h; ' +
    'restarts = other service_started in the rows, < 3; last seen before the end = end − last row with a response, ≤ 300 s',
  reliability:
    'received ÷ expected > 99 %; expected = Hz × CLOCK_MONOTONIC seconds between the rows; received = growth of the statuses that the service handed to the ROS 2 graph, where a row does not show them of the samples it took, from 0 in each run of it; ' +
    'what a run that ended may have sampled after its last row is unknown',
  alerts:
    'episodes of severity CRITICAL open at the end, by the changes in alerts/ and by what /status counted in the last rows, = 0; both must have the same number open',
};

/** How to get missing evidence, now or for the next report. */
const REMEDIES: Readonly<Record<Criterion, string>> = {
  uptime: 'keep ops.collect_metrics at every minute for 168 h, and report 7 days',
  reliability: 'keep ops.collect_metrics at every minute, or run: edge-health harness run',
  stability: 'keep ops.collect_metrics at every minute: service_memory_bytes of its rows',
  alerts: 'keep ops.collect_alerts at every 5 minutes, and see why it fails: edge-health ops list',
  performance: 'keep ops.collect_metrics at every minute: service_cpu_seconds of its rows',
  integrity: 'report while the service runs and has the samples of the whole period, and keep ops.collect_metrics at every minute',
};

/** A judgement of collected files. No criterion passes without all its evidence, and each missing piece comes with the way to get it. */
export function judgementOfCollected(judgement: Judgement, { reliability }: Evidence, missing: readonly string[]): Judgement {
  const { criterion, formula, summary, verdict } = judgement;
  const isIncomplete = verdict === 'PASS' && missing.length > 0;
  const { by, expected, received, unobserved } = reliability;
  const percent = (Math.floor((1e5 * received) / expected) / 1e3).toFixed(3);
  const statuses = missing.length > 0 ? 'samples taken' : 'statuses published';
  const counted = `${received} of ${expected} ${statuses} (${percent} %), ${expected - received - unobserved} not${unobserved > 0 ? `, ${unobserved} not known` : ''}, by the counters of the service.`;
  // The engine's words for the topic and for REST are replaced by the sources used here: the files and /status.
  const words = (text: string): string =>
    criterion === 'alerts' ? text.replace('by the topic', 'by alerts/').replace('by /alerts', 'by /status') : text;
  return {
    ...judgement,
    evidence: judgement.evidence.map((quantity) => ({ ...quantity, label: words(quantity.label) })),
    tables: judgement.tables.map((table) => ({ ...table, columns: table.columns.map(words) })),
    verdict: isIncomplete ? 'INCOMPLETE' : verdict,
    formula: FORMULAS[criterion] ?? formula,
    summary: criterion === 'reliability' && by !== null ? counted : summary,
    missing: [...judgement.missing.map((text) => `${text}; ${REMEDIES[criterion]}`), ...missing],
  };
}

/** Notes of the report: unreadable lines, and rows without a response. */
export function notesOf(unreadable: number, rows: readonly PlacedRow[]): string[] {
  const lines = unreadable === 1 ? '1 line' : `${unreadable} lines`;
  const byReason = Map.groupBy(
    rows.filter(({ answered }) => !answered),
    ({ reason }) => reason,
  );
  return [
    ...(unreadable === 0 ? [] : [`${lines} of the files cannot be read, and were skipped.`]),
    ...[...byReason].map(([reason, of]) => `In ${of.length} of ${rows.length} rows the service did not respond: ${reason}.`),
  ];
}

/** Longer lists are truncated. */
const MOST_NODES = 50;

/** One line per node with its values: this machine's node first, the others by name. */
export function nodeNotes(nodes: ReadonlyMap<string, NodeSums>): string[] {
  const sorted = [...nodes.values()].sort((a, b) => Number(b.local) - Number(a.local) || (a.node < b.node ? -1 : 1));
  const notes = sorted.slice(0, MOST_NODES).map(({ metrics, node, rows, stale }) => {
    const values = METRICS.filter((metric) => metrics[metric].rows > 0).map((metric) => {
      const { max, min, rows: count, sum } = metrics[metric];
      return `${metric} ${toHundredths(sum / count)} (${min} to ${max})`;
    });
    return `${node}, mean (min to max) over ${rows} rows${stale > 0 ? `, stale in ${stale}` : ''}: ${values.join(', ') || 'nothing was available'}.`;
  });
  return sorted.length > MOST_NODES ? [...notes, `${sorted.length - MOST_NODES} more nodes are in metrics/.`] : notes;
}

const STATUS: Readonly<Record<TestVerdict, JobStatus>> = { PASS: 'OK', INCOMPLETE: 'WARNING', FAIL: 'CRITICAL' };

/** The output of the job; `folder` is the folder of the report, or null if it was not written. */
export function resultOf(report: ReturnType<typeof compose>, folder: string | null): JobResult {
  const { judgements, notes, series: _, statement, verdict, ...rest } = report;
  const status = STATUS[verdict];
  const where = folder === null ? 'nothing is written' : `report.html, report.md, report.json and junit.xml in ${folder}`;
  return {
    status,
    lines: [
      `${verdict}: ${statement}`,
      ...judgements.flatMap(({ missing, summary, title, verdict: of }) => [
        `${title.padEnd(14)}  ${of.padEnd(10)}  ${summary}`,
        ...missing.map((what) => `${' '.repeat(28)}missing: ${what}`),
      ]),
      ...notes,
      `${status}  ${where}`,
    ],
    document: { verdict, statement, judgements, notes, ...rest, folder },
  };
}
