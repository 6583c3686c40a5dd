import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { judge } from '../harness/engine/judge.ts';
import type { TestVerdict } from '../harness/engine/judgement.ts';
import { compose, memoryColumns } from '../harness/report/compose.ts';
import { writeDocument } from '../harness/report/write.ts';
import { DAY_MS, isoUtc } from '../src/core/time.ts';
import { diskProblem } from './lib/disk-problem.ts';
import { utcDay } from './lib/files.ts';
import { makeFolder } from './lib/folder.ts';
import { type Job, type JobArguments, type JobResult, type JobStatus, UsageError } from './lib/job.ts';
import { nodeNotes, type Period, readAlerts, readRows } from './report/collected.ts';
import { evidenceOf } from './report/evidence.ts';
import { storedGaps } from './report/gaps.ts';
import { judgementOfCollected, notesOf } from './report/judgements.ts';
import { clockEvents, placeRows } from './report/timeline.ts';

const STATUS: Readonly<Record<TestVerdict, JobStatus>> = { PASS: 'OK', INCOMPLETE: 'WARNING', FAIL: 'CRITICAL' };
const DEFAULT_DAYS = 7;
const TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;

export const generateReport: Job = {
  name: 'generate_7day_report',
  summary: 'Judges the last seven days by the collected files, and writes report.html, report.md, report.json and junit.xml',
  usage: 'generate_7day_report [--from TIME] [--to TIME] [--days N] [--out DIR] [--dry-run] [OPTIONS]',
  help: `Reads metrics/ and alerts/ of the data folder, and the stored samples if the service responds. The criteria are those of the
harness, but this is not the verdict of the 168-hour harness: nothing observed the service from outside. OK: every criterion is
met and has its evidence; WARNING: nothing failed, but evidence is missing, and the report shows how to get it; CRITICAL: a
criterion failed; UNKNOWN: there is no data.

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
      const error = `no rows from ${begun} to ${ended} in ${join(dataFolder, 'metrics')}; is collect_metrics scheduled (edge-health ops list), is this the data folder?`;
      return { status: 'UNKNOWN', lines: [`UNKNOWN  ${error}`], document: { error } };
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
      return { status: 'CRITICAL', lines: [`CRITICAL  the report is not written: ${problem}`], document: { error: problem } };
    }
    return resultOf(report, folder);
  },
};

/** The period of --from, --to and --days; by default the last seven days. */
function periodOf(options: JobArguments['options'], nowMs: number): Period {
  const { days: daysText, from, to } = options as Readonly<Record<string, string | undefined>>;
  for (const [name, value] of Object.entries({ from, to })) {
    if (value === undefined || (TIME.test(value) && !Number.isNaN(Date.parse(value)))) continue;
    throw new UsageError(`--${name} is "${value}"; allowed: a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31 (UTC)`);
  }
  const days = Number(daysText ?? DEFAULT_DAYS);
  if (!(days > 0 && days <= 3650)) throw new UsageError(`--days is "${daysText}"; allowed: a number above 0 up to 3650`);
  if (from !== undefined && to !== undefined && daysText !== undefined) {
    throw new UsageError('--from, --to and --days are given; two of them define the period');
  }
  // Without --days a period with --from lasts until now.
  const defaultTo = from !== undefined && daysText !== undefined ? Date.parse(from) + days * DAY_MS : nowMs;
  const toMs = to === undefined ? defaultTo : Date.parse(to);
  const period = { fromMs: from === undefined ? toMs - days * DAY_MS : Date.parse(from), toMs: Math.min(toMs, nowMs) };
  if (period.fromMs < period.toMs) return period;
  const [begin, end] = [isoUtc(period.fromMs), isoUtc(period.toMs)];
  throw new UsageError(`the period would begin at ${begin} and end at ${end}; it must begin before it ends, and before now`);
}

function resultOf(report: ReturnType<typeof compose>, folder: string | null): JobResult {
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
