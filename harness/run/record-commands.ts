import { resolve } from 'node:path';
import { becomeOwnerOf } from '../../src/core/platform/privileges.ts';
import { printable } from '../../src/core/text.ts';
import { judge } from '../engine/judge.ts';
import { VERDICT_EXIT } from '../engine/judgement.ts';
import { EvidenceBuilder } from '../record/evidence.ts';
import { readRecord } from '../record/reader.ts';
import { LIMITS, verifyRun } from '../report/verify.ts';
import { writeReports } from '../report/write.ts';
import { EXIT, type HarnessCommand, Refusal, text } from './command.ts';
import { block } from './display.ts';
import { ResumeState } from './resume-state.ts';
import { explained, folderOf, harnessContext, observerOf, readRequest } from './run-folder.ts';
import { HARNESS_UNIT, isHarnessUnitActive } from './start-stop.ts';

const PIPE_COLUMNS = 200;

export const status: HarnessCommand = {
  name: 'status',
  summary: 'Show the progress of a run: elapsed, remaining, each criterion so far',
  usage: 'status [DIR]',
  help: `Without DIR: the run of \`start\`, else the newest. As of the last entry of its record, which is at most a minute old while
a process observes.

Exit codes: 0 a process observes, or the run is complete; 3 it is unfinished and no process observes it; 64 wrong usage;
69 there is no such run, or its record proves nothing.`,
  options: {},
  positionals: 1,
  run: async ({ positionals: [named] }) => {
    const context = harnessContext();
    const folder = folderOf(named, context);
    const resume = new ResumeState();
    const builder = new EvidenceBuilder();
    const { entries, head, problem, state } = explained(folder, () =>
      readRecord(folder, (entry) => {
        resume.add(entry);
        builder.add(entry);
      }),
    );
    if (state === 'none' || resume.target === null) throw new Refusal(EXIT.unavailable, `${folder} contains no run yet`);
    if (state === 'altered' || state === 'unsupported')
      throw new Refusal(
        EXIT.unavailable,
        `${folder}: the record was altered in line ${problem?.line}: ${problem?.what}; see: edge-health harness verify ${folder}`,
      );
    const pid = observerOf(folder);
    const isOfUnit = !context.isCheckout && readRequest(context.requestFile)?.out === folder;
    const isResuming = isOfUnit && pid === null && (await isHarnessUnitActive());
    const observedBy = pid !== null ? `process ${pid} observes` : isResuming ? `${HARNESS_UNIT} is about to resume` : null;
    const lines = block(
      {
        nodeName: resume.target.node_name,
        url: resume.target.url,
        folder,
        plannedSeconds: resume.plannedSeconds,
        observedSeconds: builder.observedSeconds,
        gapSeconds: resume.gapSeconds,
        judgements: judge(builder.evidence()),
        restarts: resume.serviceRestarts,
        openAlerts: resume.open,
        entries,
        head,
        problem: null,
      },
      process.stdout.columns ?? PIPE_COLUMNS,
      process.stdout.isTTY === true,
    );
    const title = resume.isComplete ? 'complete' : (observedBy ?? 'unfinished, and no process observes it');
    process.stdout.write(`${title}\n${lines.join('\n')}\n`);
    if (resume.isComplete || observedBy !== null) return EXIT.ok;
    const how = isOfUnit ? `systemctl start ${HARNESS_UNIT}` : `edge-health harness run --out ${folder}`;
    process.stdout.write(`resume with: ${how}\n`);
    return EXIT.unobserved;
  },
};

export const report: HarnessCommand = {
  name: 'report',
  summary: 'Write the report of a run again, from its record',
  usage: 'report [DIR]',
  help: `Writes report.html, report.md, report.json and junit.xml into DIR; without DIR of the run of \`start\`, else of the newest.
An unfinished run gives an interim report, which is INCOMPLETE at best.

Exit codes: 0 PASS, 1 FAIL, 2 INCOMPLETE, 64 wrong usage, 69 there is no such run, or its record was altered.`,
  options: {},
  positionals: 1,
  run: async ({ positionals: [named] }) => {
    const folder = folderOf(named, harnessContext());
    process.umask(0o027); // Same as in the run itself.
    becomeOwnerOf(folder, process.env);
    const { files, statement, verdict, warnings } = await writeReports(folder);
    for (const warning of warnings) process.stderr.write(`edge-health harness: warning: ${printable(warning)}\n`);
    process.stdout.write(`${verdict}: ${printable(statement)}\n${files.join('\n')}\n`);
    return VERDICT_EXIT[verdict];
  },
};

const HASH = /^[0-9a-f]{64}$/;

export const verify: HarnessCommand = {
  name: 'verify',
  summary: 'Find later changes of a record or its report',
  usage: 'verify DIR [--head HASH] [--json]',
  help: `Checks the hash chain of record.ndjson, judges the record again, and compares the report files with the result.
  --head HASH   a hash noted elsewhere (from the journal, from a printed report); it must be in the chain
  --json        one JSON document instead of text

${LIMITS}

Exit codes: 0 intact, 1 altered or inconsistent, 2 not judged (no record, a truncated record, no report of all of it), 64 wrong usage.`,
  options: { head: { type: 'string' }, json: { type: 'boolean' } },
  positionals: 1,
  run: async (given) => {
    const [named] = given.positionals;
    if (named === undefined) throw new Refusal(EXIT.usage, 'name the folder of a run: edge-health harness verify DIR');
    const head = text(given, 'head');
    if (head !== null && !HASH.test(head)) throw new Refusal(EXIT.usage, `--head is "${head}"; allowed: 64 hexadecimal digits`);
    const { document, exit, lines } = verifyRun(resolve(named), { head });
    process.stdout.write(given.options['json'] ? `${JSON.stringify(document, null, 2)}\n` : `${lines.join('\n')}\n`);
    return exit;
  },
};
