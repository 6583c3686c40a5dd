/** The reports in docs/develop/reports/ are unchanged program output, and every check in them held. */
import { globSync, readFileSync } from 'node:fs';
import t from 'tap';
import type { ReportDocument } from '../../harness/report/document.ts';
import { verifyRun } from '../../harness/report/verify.ts';
import { type FaultRun, isDone } from '../faults/support/report.ts';

const REPORTS = 'docs/develop/reports';
const json = <T>(path: string): T => JSON.parse(readFileSync(`${REPORTS}/${path}`, 'utf8')) as T;

t.test('the run is unchanged since, this engine computes the same report, and no criterion failed', async (t) => {
  const { document, lines } = verifyRun(`${REPORTS}/run`);
  // If the format of reports has changed: edge-health harness report docs/develop/reports/run writes this report again.
  t.equal(document.result, 'intact', lines.join('\n'));
  const { judgements, statement, verdict } = json<ReportDocument>('run/report.json');
  t.equal(verdict, 'INCOMPLETE', 'no run that is shorter is the verdict of 168 hours');
  t.match(statement, /not the 168-hour verdict/);
  t.same(
    judgements.filter((judgement) => judgement.verdict === 'FAIL'),
    [],
  );
});

interface SoakFacts {
  readonly transport: string;
  /** That were to be taken. */
  readonly samples: number;
}

t.test('the soaks cover a week of samples with each transport, and every check held', async (t) => {
  for (const [folder, transport] of [
    ['soak', 'embedded'],
    ['soak-rclnodejs', 'rclnodejs'],
  ]) {
    // Of schema 1, with findings, until the next run with this transport.
    const { facts, findings, verdict } = json<{ verdict: string; facts?: SoakFacts; findings?: SoakFacts }>(`${folder}/soak.json`);
    const { samples, transport: used } = (facts ?? findings) as SoakFacts;
    t.same([verdict, used, samples], ['PASS', transport, 604_800]);
  }
});

t.test('the fault run is complete, and every check held', async (t) => {
  const { faults } = json<FaultRun>('faults/faults.json');
  t.equal(faults.filter(isDone).length, faults.length);
  t.ok(faults.length >= 64, `${faults.length} faults`);
  t.same(
    faults.filter(({ result }) => result?.passed !== true).map(({ fault }) => fault.name),
    [],
  );
});

t.test('the reports contain no path of the machine on which they were made', async (t) => {
  for (const path of globSync(`${REPORTS}/**/*.{md,json,xml,html,ndjson}`)) {
    const text = readFileSync(path, 'utf8');
    t.notMatch(text, /\/(?:tmp|home|root|work)\//, path);
  }
});
