import { resolve } from 'node:path';
import { printable } from '../../src/core/text.ts';
import { becomeOwnerOf } from '../../src/system/privileges.ts';
import { VERDICT_EXIT } from '../engine/judgement.ts';
import { writeReports } from '../report/write.ts';
import type { HarnessCommand } from './command.ts';
import { folderOf, harnessContext } from './context.ts';

export const report: HarnessCommand = {
  name: 'report',
  summary: 'Write the report of a run again, from its record',
  usage: 'report [DIR]',
  help: `Writes report.html, report.md, report.json and junit.xml into DIR; without DIR of the run that \`start\` began, else of the newest.
An unfinished run gives an interim report, which is INCOMPLETE at best.

Exit codes: 0 PASS, 1 FAIL, 2 INCOMPLETE, 64 wrong usage, 69 there is no such run, or its record was altered.`,
  options: {},
  positionals: 1,
  run: async ({ positionals: [named] }) => {
    const folder = resolve(named ?? folderOf(named, harnessContext()));
    process.umask(0o027); // As in the run itself.
    becomeOwnerOf(folder, process.env);
    const { files, statement, verdict, warnings } = await writeReports(folder);
    for (const warning of warnings) process.stderr.write(`edge-health harness: warning: ${printable(warning)}\n`);
    process.stdout.write(`${verdict}: ${printable(statement)}\n${files.join('\n')}\n`);
    return VERDICT_EXIT[verdict];
  },
};
