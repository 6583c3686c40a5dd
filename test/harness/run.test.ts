/** A run of some seconds against a real service: the record, the report, its verification, and tampering. */
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type Criterion, type Judgement, VERDICT_EXIT } from '../../harness/engine/judgement.ts';
import type { ReportDocument } from '../../harness/report/document.ts';
import { verifyRun } from '../../harness/report/verify.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { isRunning, RunFolder } from '../../testkit/service/harness-process.ts';
import { until } from '../../testkit/wait.ts';

t.setTimeout(300_000);

/** The shortest possible run. */
const SECONDS = 10;
const REPORTS = ['junit.xml', 'report.html', 'report.json', 'report.md'];

function judgement({ judgements }: ReportDocument, criterion: Criterion): Judgement {
  return judgements.find((one) => one.criterion === criterion) as Judgement;
}

const evidence = ({ evidence: quantities }: Judgement, label: string): number | null | undefined =>
  quantities.find((one) => one.label === label)?.value;

/** A copy of the run with another record. */
function tampered(t: Test, folder: string, change: (lines: string[]) => string[]): string {
  const copy = temporaryFolder(t);
  cpSync(folder, copy, { recursive: true });
  const file = join(copy, 'record.ndjson');
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  rmSync(file);
  writeFileSync(file, `${change(lines).join('\n')}\n`);
  return copy;
}

t.test('a run goes from the start to the report', async (t) => {
  const folder = new RunFolder(t);
  const run = folder.run('--duration', `${SECONDS}s`);
  await run.printed(/observing health_monitor at unix:\S+\/rest\.sock for 10 s/);
  const pids = [run.pid, ...(await folder.pids())];
  const second = await folder.command('run', '--out', folder.path, '--duration', '10s');
  t.equal(second.by, 75, 'a second run into the folder is refused');
  t.match(second.output, `in use by another edge-health harness (process ${run.pid})`);

  const { by, output } = await run.ended();
  const report = folder.report();
  t.not(report.verdict, 'PASS', 'only a run of 168 hours passes');
  t.equal(by, VERDICT_EXIT[report.verdict], output);
  t.match(output, 'It is not the 168-hour verdict');
  t.match(report, { is_168_hour_verdict: false, run: { finished: true, origin: 'observed', planned_seconds: SECONDS } });
  t.ok(report.run.observed_seconds >= SECONDS);
  t.equal(report.run.monitoring_gap_seconds, 0);
  t.equal(report.record?.entries, folder.entries().length);
  t.equal(report.record?.head, folder.entries().at(-1)?.hash);
  t.same(
    readdirSync(folder.path).filter((name) => /^(report|junit)/.test(name)),
    REPORTS,
  );
  await until('nothing of it is running', () => !pids.some(isRunning));

  await t.test('every criterion with evidence is judged', async (t) => {
    const reliability = judgement(report, 'reliability');
    t.equal(judgement(report, 'uptime').verdict, 'INCOMPLETE');
    t.equal(evidence(judgement(report, 'uptime'), 'restarts'), 0);
    // A machine that is too busy to take a sample shows in the same counts.
    const [expected, received, lost] = ['expected', 'received', 'lost'].map((label) => evidence(reliability, label) ?? -1);
    t.ok((received ?? 0) > 0, 'samples were received');
    t.equal((received ?? 0) + (lost ?? 0), expected);
    t.equal(judgement(report, 'stability').verdict, 'INCOMPLETE', 'the warm-up is not over');
    t.equal(judgement(report, 'alerts').verdict, 'PASS');
    t.ok((judgement(report, 'performance').measured.value ?? 0) > 0);
    t.ok((evidence(judgement(report, 'integrity'), 'stored samples') ?? 0) >= (received ?? 0), 'each was stored');
    const text = readFileSync(join(folder.path, 'report.md'), 'utf8');
    t.match(text, /This run lasted \d+ s\. It is not the 168-hour verdict\./);
    t.match(text, /event stream/, 'and that nothing was received on the topic');
  });

  await t.test('the run is verified, and later changes are detected', async (t) => {
    const verified = await folder.command('verify', folder.path);
    t.equal(verified.by, 0, verified.output);
    t.match(verified.output, 'INTACT');
    const changes: Readonly<Record<string, (lines: string[]) => string[]>> = {
      'one byte changed': (lines) => lines.map((line) => line.replace('"samples_lost":0', '"samples_lost":1')),
      'a record removed': (lines) => lines.toSpliced(2, 1),
      'the last record removed': (lines) => lines.slice(0, -1),
      'a record added': (lines) => [...lines, lines.at(-1) as string],
      'a record added within': (lines) => lines.toSpliced(2, 0, lines[2] as string),
    };
    for (const [what, change] of Object.entries(changes)) {
      const copy = tampered(t, folder.path, change);
      t.match(verifyRun(copy), { exit: 1, document: { result: 'altered' } }, what);
    }
    const altered = await folder.command(
      'verify',
      tampered(t, folder.path, (lines) => lines.toSpliced(2, 1)),
    );
    t.match(altered, { by: 1, output: /ALTERED record\.ndjson: line 3: / });
  });
});
