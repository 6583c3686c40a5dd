import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { judge } from '../harness/engine/judge.ts';
import { compose, memoryColumns } from '../harness/report/compose.ts';
import { writeDocument } from '../harness/report/write.ts';
import { isoUtc } from '../src/core/time/time.ts';
import { diskProblem, makeFolder, utcDay } from './lib/files.ts';
import type { Job } from './lib/job.ts';
import { readAlerts, readRows } from './report/collected.ts';
import { evidenceOf } from './report/evidence.ts';
import { storedGaps } from './report/gaps.ts';
import { periodOf } from './report/period.ts';
import { judgementOfCollected, nodeNotes, notesOf, resultOf } from './report/text.ts';
import { clockEvents, placeRows } from './report/timeline.ts';

export const generateReport: Job = {
  name: 'generate_7day_report',
  summary: 'Judge the last seven days by the collected files, and write report.html, report.md, report.json and junit.xml',
  usage: 'generate_7day_report [--from TIME] [--to TIME] [--days N] [--out DIR] [--dry-run] [OPTIONS]',
  help: `Reads metrics/ and alerts/ of the data folder, and the stored samples if the service responds. The criteria are those of the
harness, but this is not the verdict of the 168-hour harness: nothing observed the service from outside. OK: every criterion is
met and has its evidence; WARNING: nothing failed, but evidence is missing, and the report shows how to get it; CRITICAL: a
criterion failed; UNKNOWN: the report cannot be written. Without any data, it is WARNING, and nothing is written.

  --from TIME     begin, such as 2026-01-31 (UTC) or 2026-01-31T12:00:00Z
  --to TIME       end; default: now
  --days N        length; default: 7
  --out DIR       folder for the report; default: reports/7day_YYYY-MM-DD in the data folder
  --dry-run       shows the judgements and writes nothing
`,
  options: {
    from: { type: 'string' },
    to: { type: 'string' },
    days: { type: 'string' },
    out: { type: 'string' },
    'dry-run': { type: 'boolean' },
  },
  positionals: 0,
  run: async ({ config, dataFolder, nowMs, rest, signal, version }, { options }) => {
    const now = nowMs();
    const period = periodOf(options, now);

    const collected = await readRows(join(dataFolder, 'metrics'), period, signal);
    const rows = placeRows(collected.service, period.fromMs);
    const last = rows.at(-1);
    const [begun, ended] = [isoUtc(period.fromMs), isoUtc(period.toMs)];
    if (!last) {
      const error = `no rows from ${begun} to ${ended} in ${join(dataFolder, 'metrics')}; is collect_metrics scheduled (sudo edge-health ops list), is this the data folder?`;
      return { status: 'WARNING', lines: [`WARNING  ${error}`], document: { error } };
    }
    const events = clockEvents(rows);
    const alerts = await readAlerts(join(dataFolder, 'alerts'), last.node, period, signal);
    const stored = await storedGaps(rest, last.node, period, { events, nowMs: now, signal });

    const { evidence, missing, series } = evidenceOf({
      ...{ period, rows, events, alerts, stored },
      hasEarlier: collected.hasEarlier,
      isAlone: collected.nodes.size <= 1,
      hasAlerts: alerts.files > 0 || existsSync(join(dataFolder, 'alerts', 'cursor.json')),
      configuredHertz: config.publish_frequency,
    });
    const judgements = judge(evidence).map((judgement) => judgementOfCollected(judgement, evidence, missing[judgement.criterion] ?? []));

    const report = compose({
      evidence,
      judgements,
      series,
      memory: memoryColumns(evidence),
      run: {
        id: `${begun}/${ended}`,
        begun,
        ended,
        node_name: last.node,
        version: rows.findLast(({ answered }) => answered)?.version ?? null,
        how: [
          `${collected.rows} rows of metrics/ (files: ${collected.files}), as collect_metrics wrote them`,
          `${alerts.changes.length} changes of alerts of this node, of alerts/ (files: ${alerts.files}), as collect_alerts wrote them`,
          stored.problem === null ? 'the stored samples, by /health/history' : `not the stored samples: ${stored.problem}`,
        ],
        machine: null,
        harness: null,
        notes: [...notesOf(collected.unreadable + alerts.unreadable, rows), ...nodeNotes(collected.nodes)],
      },
      record: null,
      madeMs: now,
      madeBy: version,
    });
    if (options['dry-run'] === true) return resultOf(report, null);
    const folder = (options['out'] as string | undefined) ?? join(dataFolder, 'reports', `7day_${utcDay(period.toMs)}`);
    try {
      await makeFolder(folder);
      await writeDocument(folder, report);
    } catch (error) {
      const problem = diskProblem(error, folder);
      if (problem === null) throw error;
      return { status: 'UNKNOWN', lines: [`UNKNOWN  the report is not written: ${problem}`], document: { error: problem } };
    }
    return resultOf(report, folder);
  },
};
