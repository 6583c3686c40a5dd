import { resolve } from 'node:path';
import { judge } from '../engine/judge.ts';
import { EvidenceBuilder } from '../record/evidence.ts';
import { readRecord } from '../record/reader.ts';
import { EXIT, type HarnessCommand, Refusal } from './command.ts';
import { block } from './display.ts';
import { ResumeState } from './resume-state.ts';
import { explained, folderOf, harnessContext, observerOf } from './run-folder.ts';
import { HARNESS_UNIT, isActive } from './start-stop.ts';

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
    const folder = resolve(folderOf(named, context));
    const resume = new ResumeState();
    const builder = new EvidenceBuilder();
    const { entries, head, problem, state } = explained(folder, () =>
      readRecord(folder, (entry) => {
        resume.add(entry);
        builder.add(entry);
      }),
    );
    if (state === 'none' || resume.target === null) throw new Refusal(EXIT.unavailable, `${folder} holds no run yet`);
    if (state === 'altered' || state === 'foreign')
      throw new Refusal(
        EXIT.unavailable,
        `${folder}: the record was altered in line ${problem?.line}: ${problem?.what}; see: edge-health harness verify ${folder}`,
      );
    const pid = observerOf(folder);
    const isOfUnit = !context.isCheckout && explained(context.requests.folder, () => context.requests.current())?.out === folder;
    const isResuming = isOfUnit && pid === null && (await isActive(HARNESS_UNIT));
    const observedBy = pid !== null ? `process ${pid} observes` : isResuming ? `${HARNESS_UNIT} is about to resume` : null;
    const lines = block(
      {
        nodeName: resume.target.node_name,
        url: resume.target.url,
        folder,
        plannedSeconds: resume.plannedSeconds,
        observedSeconds: builder.watchedSeconds,
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
