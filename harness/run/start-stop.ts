import * as fs from 'node:fs';
import { join, resolve } from 'node:path';
import { changeUnits, hasRootRights } from '../../src/client/root-helper.ts';
import { showUnits } from '../../src/client/systemctl-show.ts';
import { RECORD_FILE } from '../record/entries.ts';
import { EXIT, type HarnessCommand, Refusal, text } from './command.ts';
import { pollUntil } from './poll.ts';
import { durationOf, renderReport, transportOf } from './run.ts';
import { explained, folderName, harnessContext, observerOf, readRequest, settleRequest, writeRequest } from './run-folder.ts';
import { ServiceSupervisor } from './service-supervisor.ts';
import { MAIN_UNIT } from './subject.ts';

/** The unit of the harness itself. */
export const HARNESS_UNIT = 'edge-health-harness.service';

/** The report of a week takes seconds, and a stop of the service up to half a minute. */
const STOP_SECONDS = 120;
const POLL_MS = 200;

export const start: HarnessCommand = {
  name: 'start',
  summary: 'Observe with edge-health-harness.service, across logouts and reboots',
  usage: 'start [--duration TIME] [--out DIR] [--transport NAME] [--unit NAME]',
  help: `  --duration TIME    how long to observe; 168h by default
  --out DIR          folder of the record and the reports, below the data folder, where the unit can write; a new folder
                     of reports/ there by default
  --transport NAME   ROS 2 transport: auto, embedded, rclnodejs, off
  --unit NAME        the unit to observe; edge-health.service by default

Needs root. The unit resumes after a reboot until the run is complete, and then stays inactive. See its progress with
\`edge-health harness status\` or \`systemctl status edge-health-harness\`; end it early with \`edge-health harness stop\`.

Exit codes: 0 started, 64 wrong usage, 69 it cannot be started, 75 a run is in progress.`,
  options: { duration: { type: 'string' }, out: { type: 'string' }, transport: { type: 'string' }, unit: { type: 'string' } },
  positionals: 0,
  run: async (given) => {
    const { stateFolder, isCheckout, reports, requestFile } = harnessContext();
    if (isCheckout) throw new Refusal(EXIT.unavailable, 'this is a checkout, which has no unit; use: npm run harness -- --duration 168h');
    refuseUnlessRoot('start');
    const duration = text(given, 'duration') ?? '168h';
    const seconds = durationOf(duration) ?? 0;
    const transport = transportOf(text(given, 'transport'));
    const name = text(given, 'unit') ?? MAIN_UNIT;
    const unit = name.includes('.') ? name : `${name}.service`;
    const out = resolve(text(given, 'out') ?? join(reports, folderName(Date.now())));
    if (!out.startsWith(`${resolve(stateFolder)}/`))
      throw new Refusal(EXIT.usage, `--out is "${out}"; allowed: a folder below ${stateFolder}, where the unit can write`);
    const before = readRequest(requestFile);
    if (before !== null) {
      const state = (await isHarnessUnitActive())
        ? `a run is in progress in ${before.out}: see it with: edge-health harness status;`
        : `a run in ${before.out} is not finished: resume it with: systemctl start ${HARNESS_UNIT};`;
      throw new Refusal(EXIT.inUse, `${state} end it with: edge-health harness stop`);
    }
    writeRequest(requestFile, { out, duration, duration_seconds: seconds, transport, unit, requested: new Date().toISOString() });
    const { code, output } = await changeUnits(['enable', '--now', HARNESS_UNIT], process.env);
    if (code !== 0) {
      process.stderr.write(`${output}\n`);
      await changeUnits(['disable', '--now', HARNESS_UNIT], process.env);
      settleRequest(requestFile);
      throw new Refusal(
        EXIT.unavailable,
        `${HARNESS_UNIT} did not start, and no run is in progress; for the reason: journalctl -u ${HARNESS_UNIT}`,
      );
    }
    process.stdout.write(`${HARNESS_UNIT} observes ${unit} for ${duration}; record and reports: ${out}\n`);
    return EXIT.ok;
  },
};

export const stop: HarnessCommand = {
  name: 'stop',
  summary: 'End a run early: write its report and disable the unit',
  usage: 'stop [DIR]',
  help: `Without DIR: the run of \`start\`; needs root. With DIR: the run that is recorded there, by any process. If no process
observes it any more, the service that it started is stopped, and its report is written.

Exit codes: 0 ended, 64 wrong usage, 69 there is no such run, or it cannot be ended.`,
  options: {},
  positionals: 1,
  run: ({ positionals: [folder] }) => (folder === undefined ? stopUnit() : stopFolder(resolve(folder))),
};

async function stopUnit(): Promise<number> {
  const { isCheckout, requestFile } = harnessContext();
  if (isCheckout) throw new Refusal(EXIT.usage, 'name the folder of the run: edge-health harness stop DIR');
  refuseUnlessRoot('stop');
  const request = readRequest(requestFile);
  const { code, output } = await changeUnits(['disable', '--now', HARNESS_UNIT], process.env);
  if (code !== 0) throw new Refusal(EXIT.unavailable, `${HARNESS_UNIT} could not be stopped: ${output}`);
  if (request === null) throw new Refusal(EXIT.unavailable, 'no run is in progress; start one with: edge-health harness start');
  settleRequest(requestFile);
  const hasRecord = fs.existsSync(join(request.out, RECORD_FILE));
  process.stdout.write(hasRecord ? `stopped; record and report: ${request.out}\n` : 'stopped; there is no record yet\n');
  return EXIT.ok;
}

async function stopFolder(folder: string): Promise<number> {
  if (!explained(folder, () => fs.statSync(folder, { throwIfNoEntry: false })))
    throw new Refusal(EXIT.unavailable, `${folder} does not exist; name the folder of a run`);
  const observer = observerOf(folder);
  if (observer !== null) {
    process.kill(observer, 'SIGTERM');
    if (!(await pollUntil(() => observerOf(folder) !== observer, STOP_SECONDS, POLL_MS)))
      throw new Refusal(
        EXIT.unavailable,
        `process ${observer} did not exit within ${STOP_SECONDS} s; kill -9 ${observer} loses at most a minute`,
      );
    process.stdout.write(`stopped; record and report: ${folder}\n`);
    return EXIT.ok;
  }
  await new ServiceSupervisor(folder).stop();
  if (!fs.existsSync(join(folder, RECORD_FILE))) throw new Refusal(EXIT.unavailable, `${folder} contains no run`);
  process.stdout.write('no process was observing it; writing the report\n');
  return (await renderReport(folder)) === null ? EXIT.unavailable : EXIT.ok;
}

/** Whether the unit is active; also true while it starts, stops or waits for its restart. */
export async function isHarnessUnitActive(): Promise<boolean> {
  const shown = await showUnits([HARNESS_UNIT], ['ActiveState'], { environment: process.env });
  return shown.kind === 'units' && shown.units.some(({ ActiveState }) => /^(active|activating|reloading|deactivating)$/.test(ActiveState));
}

function refuseUnlessRoot(command: string): void {
  if (!hasRootRights(process.env)) throw new Refusal(EXIT.unavailable, `this needs root; run: sudo edge-health harness ${command}`);
}
