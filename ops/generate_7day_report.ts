import { join } from 'node:path';
import { isoUtc } from '../src/core/time.ts';
import { Misuse, type OpsContext, type OpsProgram, type Outcome } from './program.ts';
import { figures, markdown } from './report/markdown.ts';
import { type Period, periodOf } from './report/period.ts';
import { NOTE, type ReportDocument, reportOf } from './report/report.ts';
import { writeAtomically } from './support/atomic-file.ts';
import { utcDay } from './support/dated-files.ts';
import { diskProblem } from './support/disk-problem.ts';
import { makeFolder } from './support/folder.ts';

export const generateReport: OpsProgram = {
  name: 'generate_7day_report',
  summary: 'Writes the figures of the last seven days from what was collected, as report.md and report.json',
  usage: 'generate_7day_report [--from TIME] [--to TIME] [--days N] [--out DIR] [--dry-run] [OPTIONS]',
  help: `From metrics/ and alerts/ of the data folder; the service need not run. The figures are not the verdict of the
168-hour harness. WARNING: the data is incomplete; UNKNOWN: there is none.

  --from TIME     beginning, such as 2026-01-31 (UTC) or 2026-01-31T12:00:00Z
  --to TIME       end; otherwise now
  --days N        length; otherwise 7
  --out DIR       where the report is written; otherwise reports/7day_YYYY-MM-DD of the data folder
  --dry-run       shows the figures and writes nothing
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
    const period = periodOf(options, context.nowMs());
    if (typeof period === 'string') throw new Misuse(period);
    const report = await reportOf(context.dataFolder, period, context.nowMs(), context.signal);
    if (report === null) return unknown(nothing(context, period));
    const folder = (options['out'] as string | undefined) ?? join(context.dataFolder, 'reports', `7day_${utcDay(period.toMs)}`);
    if (options['dry-run'] === true) return told(report, null);
    try {
      await makeFolder(folder);
      await writeAtomically(join(folder, 'report.json'), `${JSON.stringify(report, null, 2)}\n`);
      await writeAtomically(join(folder, 'report.md'), markdown(report));
    } catch (error) {
      const problem = diskProblem(error, folder);
      if (problem === null) throw error;
      return { status: 'CRITICAL', lines: [`CRITICAL  the report is not written: ${problem}`], document: { error: problem } };
    }
    return told(report, folder);
  },
};

function told(report: ReportDocument, folder: string | null): Outcome {
  const { incomplete } = report;
  const width = Math.max(...figures(report).map(([name]) => name.length));
  const status = incomplete.length === 0 ? 'OK' : 'WARNING';
  const where = folder === null ? 'nothing is written' : `report.md and report.json in ${folder}`;
  return {
    status,
    lines: [
      ...figures(report).map(([name, value]) => `${name.padEnd(width)}  ${value}`),
      NOTE,
      ...incomplete.map((what) => `WARNING  incomplete: ${what}`),
      `${status}  ${where}`,
    ],
    document: { ...report, folder },
  };
}

function nothing({ dataFolder }: OpsContext, { fromMs, toMs }: Period): string {
  return `no rows from ${isoUtc(fromMs)} to ${isoUtc(toMs)} in ${join(dataFolder, 'metrics')}; is collect_metrics scheduled (edge-health ops list), is this the data folder?`;
}

function unknown(error: string): Outcome {
  return { status: 'UNKNOWN', lines: [`UNKNOWN  ${error}`], document: { error } };
}
