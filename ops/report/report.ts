import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { judge } from '../../harness/engine/judge.ts';
import { compose, memoryColumns } from '../../harness/report/compose.ts';
import type { ReportDocument } from '../../harness/report/document.ts';
import type { RestClient } from '../../src/client/rest.ts';
import { isoUtc } from '../../src/core/time.ts';
import { type AlertChanges, alertChanges } from './alert-changes.ts';
import { asCollected } from './as-collected.ts';
import { type ReadCounts, readRows, type ServiceRow } from './collected-rows.ts';
import { evidenceOf } from './evidence.ts';
import { lookAtStored, looksAtRows } from './looks.ts';
import { type NodeFigures, NodeSums, nodeNotes } from './node-figures.ts';
import type { Period } from './period.ts';
import { inOrder, type PlacedRow } from './timeline.ts';

export interface ReportOptions {
  readonly dataFolder: string;
  readonly period: Period;
  readonly rest: RestClient;
  readonly configuredHertz: number;
  readonly version: string;
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

/** The report of a period from a data folder's metrics/ and alerts/, and the service's stored samples if it answers; null: there is no row. */
export async function reportOf(options: ReportOptions): Promise<ReportDocument | null> {
  const { configuredHertz, dataFolder, nowMs, period, rest, signal, version } = options;
  const nodes = new NodeSums();
  const found: ServiceRow[] = [];
  const reader = { node: nodes.add.bind(nodes), service: (row: ServiceRow) => void found.push(row) };
  const counts = await readRows(join(dataFolder, 'metrics'), period, reader, signal);
  const rows = inOrder(found);
  const last = rows.at(-1);
  if (!last) return null;
  const folder = join(dataFolder, 'alerts');
  const alerts = await alertChanges(folder, last.node, period, signal);
  const collected = { period, rows, looks: looksAtRows(rows, period, counts.hasEarlier), version, configuredHertz };
  const figures = nodes.figures();
  const stored = await lookAtStored(rest, last.node, period, nowMs);
  const { evidence, series, untold } = evidenceOf(
    { ...collected, openBefore: alerts.openBefore, changes: alerts.changes },
    { alerts, collected: alerts.files > 0 || existsSync(join(folder, 'cursor.json')), isAlone: figures.length <= 1 },
    stored,
  );
  const [begun, ended] = [isoUtc(period.fromMs), isoUtc(period.toMs)];
  return compose({
    evidence,
    judgements: asCollected(judge(evidence), evidence, untold),
    series,
    memory: memoryColumns(evidence),
    run: {
      id: `${begun}/${ended}`,
      begun,
      ended,
      node_name: last.node,
      version: rows.findLast(({ answered }) => answered)?.version ?? null,
      how: how(counts, alerts, stored.problem),
      machine: null,
      harness: null,
      notes: notes(rows, counts.foreign + alerts.foreign, figures),
    },
    record: null,
    madeMs: nowMs,
    madeBy: version,
  });
}

function how(counts: ReadCounts, alerts: AlertChanges, problem: string | null): string[] {
  return [
    `${counts.rows} rows of metrics/ (files: ${counts.files}), as collect_metrics wrote them`,
    `${alerts.changes.length} changes of alerts of this node, of alerts/ (files: ${alerts.files}), as collect_alerts wrote them`,
    problem === null ? 'the stored samples, by /health/history' : `not the stored samples: ${problem}`,
  ];
}

function notes(rows: readonly PlacedRow[], foreign: number, figures: readonly NodeFigures[]): string[] {
  const unanswered = Map.groupBy(
    rows.filter(({ answered }) => !answered),
    ({ reason }) => reason,
  );
  return [
    ...(foreign > 0 ? [`${foreign === 1 ? '1 line' : `${foreign} lines`} of the files cannot be read, and were passed over.`] : []),
    ...[...unanswered].map(([reason, of]) => `In ${of.length} of ${rows.length} rows the service did not answer: ${reason}.`),
    ...nodeNotes(figures),
  ];
}
