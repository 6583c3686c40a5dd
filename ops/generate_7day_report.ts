import { join } from 'node:path';
import type { Verdict } from '../harness/engine/judgement.ts';
import type { ReportDocument } from '../harness/report/document.ts';
import { writeDocument } from '../harness/report/write.ts';
import { isoUtc } from '../src/core/time.ts';
import { diskProblem } from './lib/disk-problem.ts';
import { utcDay } from './lib/files.ts';
import { makeFolder } from './lib/folder.ts';
import { type Job, type JobContext, type JobResult, type JobStatus, UsageError } from './lib/job.ts';
import { type Period, periodOf } from './report/period.ts';
import { reportOf } from './report/report.ts';

const STATUS: Readonly<Record<Verdict, JobStatus>> = { PASS: 'OK', INCOMPLETE: 'WARNING', FAIL: 'CRITICAL' };

export const generateReport: Job = {
  name: 'generate_7day_report',
  summary: 'Judges the last seven days by what was collected, and writes report.html, report.md, report.json and junit.xml',
  usage: 'generate_7day_report [--from TIME] [--to TIME] [--days N] [--out DIR] [--dry-run] [OPTIONS]',
  help: `From metrics/ and alerts/ of the data folder, and the stored samples where the service answers. It is judged as a run of the
harness is, though it is not the verdict of the 168-hour harness: nobody watched from outside. OK: every criterion is met and
has its evidence; WARNING: nothing failed, but evidence is missing, and the report shows how to get it; CRITICAL: something
failed; UNKNOWN: there is no data.

  --from TIME     beginning, such as 2026-01-31 (UTC) or 2026-01-31T12:00:00Z
  --to TIME       end; otherwise now
  --days N        length; otherwise 7
  --out DIR       where the report is written; otherwise reports/7day_YYYY-MM-DD of the data folder
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
  run: async (context, { options }) => {
    const { config, dataFolder, rest, signal, version } = context;
    const nowMs = context.nowMs();
    const period = periodOf(options, nowMs);
    if (typeof period === 'string') throw new UsageError(period);
    const configuredHertz = config.publish_frequency;
    const report = await reportOf({ configuredHertz, dataFolder, nowMs, period, rest, signal, version });
    if (report === null) return unknown(nothing(context, period));
    if (options['dry-run'] === true) return told(report, null);
    const folder = (options['out'] as string | undefined) ?? join(dataFolder, 'reports', `7day_${utcDay(period.toMs)}`);
    try {
      await makeFolder(folder);
      await writeDocument(folder, report);
    } catch (error) {
      const problem = diskProblem(error, folder);
      if (problem === null) throw error;
      return { status: 'CRITICAL', lines: [`CRITICAL  the report is not written: ${problem}`], document: { error: problem } };
    }
    return told(report, folder);
  },
};

function told(report: ReportDocument, folder: string | null): JobResult {
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

function nothing({ dataFolder }: JobContext, { fromMs, toMs }: Period): string {
  return `no rows from ${isoUtc(fromMs)} to ${isoUtc(toMs)} in ${join(dataFolder, 'metrics')}; is collect_metrics scheduled (edge-health ops list), is this the data folder?`;
}

function unknown(error: string): JobResult {
  return { status: 'UNKNOWN', lines: [`UNKNOWN  ${error}`], document: { error } };
}
