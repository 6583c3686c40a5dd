/** The harness over a week: the record of 604,800 health statuses from the topic and the event stream, and its report. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { RECORD_FILE, type RecordEntry } from '../harness/record/entries.ts';
import { RecordWriter } from '../harness/record/writer.ts';
import type { ReportDocument } from '../harness/report/document.ts';
import { REPORT_FILES } from '../harness/report/render.ts';
import type { Cleanup } from '../testkit/cleanup.ts';
import { ROOT } from '../testkit/service/service.ts';
import { week } from '../testkit/weeks/weeks.ts';
import type { Outcome } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { median, pause, worst } from './support/statistics.ts';

const STATUSES = 604_800;
const RUNS = 10;
/** Entries per write. An observer syncs once per minute; doing that here for a week of entries would take too long. */
const BATCH = 500;
const POLL_SECONDS = 0.002;

/** Cost of a program from its start to its end. */
interface Cost {
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** Peak resident memory. */
  readonly megabytes: number;
}

function writeRecord(folder: string): number {
  const [begin, ...entries] = week();
  if (begin?.type !== 'begin') throw new Error('the first entry of the week is not of type begin');
  const writer = RecordWriter.create(folder, begin);
  let statuses = 0;
  for (let from = 0; from < entries.length; from += BATCH) {
    const batch = entries.slice(from, from + BATCH);
    writer.append(...batch);
    for (const entry of batch) statuses += countStatuses(entry);
  }
  writer.close();
  if (writer.problem) throw new Error(writer.problem);
  // A late joiner receives the last statuses again.
  if (statuses < STATUSES || statuses > STATUSES + 20) throw new Error(`${statuses} statuses instead of ${STATUSES}`);
  return writer.bytes;
}

function countStatuses(entry: RecordEntry): number {
  if (entry.type !== 'minute' || !entry.topic) return 0;
  return entry.topic.first === null ? 0 : 1 + entry.topic.steps.length;
}

/** Runs a command of the harness as a user does. Reads VmHWM repeatedly until the process ends, because it is not available afterwards. */
async function run(cleanup: Cleanup, argv: readonly string[]): Promise<Cost & { readonly code: number | null; readonly output: string }> {
  const begun = performance.now();
  const child: ChildProcess = cleanup.own(
    spawn(join(ROOT, 'bin/edge-health'), ['harness', ...argv], { stdio: ['ignore', 'pipe', 'inherit'] }),
  );
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  let exited = false;
  const ended = once(child, 'exit').then(([code]) => {
    exited = true;
    return { code: code as number | null, seconds: (performance.now() - begun) / 1000 };
  });
  let [megabytes, cpuSeconds] = [0, 0];
  while (!exited) {
    try {
      const status = readFileSync(`/proc/${child.pid}/status`, 'latin1');
      megabytes = Math.max(megabytes, (Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024) / 1e6);
      const stat = readFileSync(`/proc/${child.pid}/stat`, 'latin1');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      cpuSeconds = (Number(fields[11]) + Number(fields[12])) / 100;
    } catch {
      // The process has already ended.
    }
    await pause(POLL_SECONDS);
  }
  return { ...(await ended), megabytes, cpuSeconds, output };
}

await benchmark('harness', async ({ cleanup, progress }): Promise<Outcome> => {
  const folder = join(cleanup.folderOnDisk(), 'week');
  progress('writing the record of a week');
  const bytes = writeRecord(folder);
  const reports: Cost[] = [];
  for (let n = 0; n < RUNS; n += 1) {
    progress(`report ${n + 1} of ${RUNS}`);
    const { code, output, ...cost } = await run(cleanup, ['report', folder]);
    if (code !== 0) throw new Error(`the report exited with ${code} instead of 0: ${output}`);
    reports.push(cost);
  }
  const report = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')) as ReportDocument;
  if (report.verdict !== 'PASS' || report.record?.bytes !== bytes) throw new Error(`${report.verdict} of ${report.record?.bytes} bytes`);
  progress('verify');
  const verified = await run(cleanup, ['verify', folder]);
  if (verified.code !== 0) throw new Error(`verify exited with ${verified.code}: ${verified.output}`);
  const sizes = REPORT_FILES.map((name) => statSync(join(folder, name)).size);
  return {
    rows: [
      { figure: 'record of a week at 1 Hz, topic and event stream', unit: 'MB', value: bytes / 1e6, atMost: 50 },
      {
        figure: `report of a week, from the record to the files, worst of ${RUNS}`,
        unit: 's',
        value: worst(reports.map((of) => of.seconds)),
        atMost: 3,
      },
      { figure: 'the same, median', unit: 's', value: median(reports.map((of) => of.seconds)) },
      { figure: 'its CPU time, median', unit: 's', value: median(reports.map((of) => of.cpuSeconds)) },
      { figure: 'its resident memory, highest', unit: 'MB', value: worst(reports.map((of) => of.megabytes)), atMost: 200 },
      { figure: 'verify of the same week', unit: 's', value: verified.seconds },
      { figure: 'its resident memory', unit: 'MB', value: verified.megabytes },
      { figure: 'the four files of the report', unit: 'MB', value: sizes.reduce((sum, size) => sum + size, 0) / 1e6 },
    ],
    notes: [
      `A synthetic week of ${STATUSES.toLocaleString('en-US')} health statuses with verdict PASS, received on the topic and on the event stream, one entry per minute, written by the harness's own writer; then \`edge-health harness report\` as a separate process, from its start to its end: it verifies the hash chain, judges, and writes report.html, report.md, report.json and junit.xml.`,
      `${RECORD_FILE} was in the page cache. Memory: VmHWM of the process, read every ${POLL_SECONDS * 1000} ms until it ended.`,
    ],
  };
});
