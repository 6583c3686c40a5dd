import * as fs from 'node:fs';
import { join, resolve } from 'node:path';
import { changeUnits } from '../../src/system/root-helper.ts';
import { RECORD_FILE } from '../record/entries.ts';
import { watcherOf } from '../run/folder.ts';
import { Keeper } from '../run/keeper.ts';
import { renderReport } from '../run/render.ts';
import { settleRequest } from '../run/request.ts';
import { EXIT, type HarnessCommand, Refusal } from './command.ts';
import { explained, harnessContext } from './context.ts';
import { HARNESS_UNIT, refuseUnlessRoot } from './unit.ts';

/** The report of a week takes seconds, a service that is stopped up to half a minute. */
const END_SECONDS = 120;
const POLL_MS = 200;

export const stop: HarnessCommand = {
  name: 'stop',
  summary: 'End a run early: its report is written, and the unit rests',
  usage: 'stop [DIR]',
  help: `Without DIR: the run that \`start\` began; needs root. With DIR: the run that is recorded there, whoever watches it; where nobody
does any more, the service that it had started for itself is ended, and its report is written.

Exit codes: 0 ended, 64 wrong usage, 69 there is no such run, or it cannot be ended.`,
  options: {},
  positionals: 1,
  run: ({ positionals: [folder] }) => (folder === undefined ? stopUnit() : stopFolder(resolve(folder))),
};

async function stopUnit(): Promise<number> {
  const { isCheckout, requests } = harnessContext();
  if (isCheckout) throw new Refusal(EXIT.usage, 'name the folder of the run: edge-health harness stop DIR');
  refuseUnlessRoot('stop');
  const request = explained(requests.folder, () => requests.current());
  const { code, output } = await changeUnits(['disable', '--now', HARNESS_UNIT], process.env);
  if (code !== 0) throw new Refusal(EXIT.unavailable, `${HARNESS_UNIT} could not be stopped: ${output}`);
  if (request === null) throw new Refusal(EXIT.unavailable, 'no run is under way; begin one with: edge-health harness start');
  settleRequest(requests.currentFile);
  process.stdout.write(
    fs.existsSync(join(request.out, RECORD_FILE))
      ? `stopped; record and report: ${request.out}\n`
      : 'stopped; nothing had been recorded yet\n',
  );
  return EXIT.ok;
}

async function stopFolder(folder: string): Promise<number> {
  if (!explained(folder, () => fs.statSync(folder, { throwIfNoEntry: false })))
    throw new Refusal(EXIT.unavailable, `${folder} is not there; name the folder of a run`);
  const watcher = watcherOf(folder);
  if (watcher !== null) {
    process.kill(watcher, 'SIGTERM');
    const deadline = performance.now() + END_SECONDS * 1000;
    while (watcherOf(folder) === watcher && performance.now() < deadline)
      await new Promise((later) => {
        setTimeout(later, POLL_MS);
      });
    if (watcherOf(folder) === watcher)
      throw new Refusal(EXIT.unavailable, `process ${watcher} does not end; kill -9 ${watcher} loses at most a minute`);
    process.stdout.write(`stopped; record and report: ${folder}\n`);
    return EXIT.ok;
  }
  await new Keeper(folder).stop();
  if (!fs.existsSync(join(folder, RECORD_FILE))) throw new Refusal(EXIT.unavailable, `${folder} holds no run`);
  process.stdout.write('nobody was watching it; writing the report\n');
  return (await renderReport(folder)) === null ? EXIT.unavailable : EXIT.ok;
}
