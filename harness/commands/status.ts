import { resolve } from 'node:path';
import { judge } from '../engine/judge.ts';
import { EvidenceBuilder } from '../record/evidence.ts';
import { readRecord } from '../record/reader.ts';
import { watcherOf } from '../run/folder.ts';
import { block } from '../run/progress.ts';
import { SoFar } from '../run/so-far.ts';
import { EXIT, type HarnessCommand, Refusal } from './command.ts';
import { explained, folderOf, harnessContext } from './context.ts';
import { HARNESS_UNIT, isActive } from './unit.ts';

const PIPE_COLUMNS = 200;

export const status: HarnessCommand = {
  name: 'status',
  summary: 'How a run gets on: elapsed, remaining, each criterion so far',
  usage: 'status [DIR]',
  help: `Without DIR: the run that \`start\` began, else the newest. As of the last entry of its record, which is at most a minute old while
somebody watches.

Exit codes: 0 somebody watches, or the run is complete; 3 it is unfinished and nobody watches; 64 wrong usage; 69 there is no
such run, or its record proves nothing.`,
  options: {},
  positionals: 1,
  run: async ({ positionals: [named] }) => {
    const context = harnessContext();
    const folder = resolve(folderOf(named, context));
    const soFar = new SoFar();
    const builder = new EvidenceBuilder();
    const { entries, head, problem, state } = explained(folder, () =>
      readRecord(folder, (entry) => {
        soFar.add(entry);
        builder.add(entry);
      }),
    );
    if (state === 'none' || soFar.target === null) throw new Refusal(EXIT.unavailable, `${folder} holds no run yet`);
    if (state === 'altered' || state === 'foreign')
      throw new Refusal(
        EXIT.unavailable,
        `${folder}: the record was altered in line ${problem?.line}: ${problem?.what}; see: edge-health harness verify ${folder}`,
      );
    const pid = watcherOf(folder);
    const isOfUnit = !context.isCheckout && explained(context.requests.folder, () => context.requests.current())?.out === folder;
    const watched = isOfUnit && pid === null && (await isActive(HARNESS_UNIT)) ? `${HARNESS_UNIT} is about to go on` : null;
    const who = soFar.isComplete ? 'complete' : pid !== null ? `process ${pid} watches` : (watched ?? 'unfinished, and nobody watches');
    const lines = block(
      {
        nodeName: soFar.target.node_name,
        url: soFar.target.url,
        folder,
        plannedSeconds: soFar.plannedSeconds,
        watchedSeconds: builder.watchedSeconds,
        absentSeconds: soFar.absentSeconds,
        judgements: judge(builder.evidence()),
        restarts: soFar.restartsBefore,
        openAlerts: soFar.open,
        entries,
        head,
        problem: null,
      },
      process.stdout.columns ?? PIPE_COLUMNS,
      process.stdout.isTTY === true,
    );
    process.stdout.write(`${who}\n${lines.join('\n')}\n`);
    if (soFar.isComplete || pid !== null || watched !== null) return EXIT.ok;
    const how = isOfUnit ? `systemctl start ${HARNESS_UNIT}` : `edge-health harness run --out ${folder}`;
    process.stdout.write(`go on with: ${how}\n`);
    return EXIT.unwatched;
  },
};
