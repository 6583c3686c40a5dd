import { join, resolve } from 'node:path';
import { changeUnits } from '../../src/system/root-helper.ts';
import { folderName } from '../run/place.ts';
import { settleRequest } from '../run/request.ts';
import { MAIN_UNIT } from '../run/subject.ts';
import { EXIT, type HarnessCommand, Refusal, text } from './command.ts';
import { explained, harnessContext } from './context.ts';
import { durationOf, transportOf } from './run.ts';
import { HARNESS_UNIT, isActive, refuseInCheckout, refuseUnlessRoot } from './unit.ts';

export const start: HarnessCommand = {
  name: 'start',
  summary: 'Have edge-health-harness.service watch, over logouts and reboots',
  usage: 'start [--duration TIME] [--out DIR] [--transport NAME] [--unit NAME]',
  help: `  --duration TIME    how long to watch; 168h by default
  --out DIR          where the record and the reports go: in the data folder, where the unit may write; a new folder of
                     reports/ there by default
  --transport NAME   how to listen to ROS 2: auto, embedded, rclnodejs, off
  --unit NAME        the unit to watch; edge-health.service by default

Needs root. The unit goes on after a reboot until the run is complete, and then rests. See how it gets on with
\`edge-health harness status\` or \`systemctl status edge-health-harness\`; end it early with \`edge-health harness stop\`.

Exit codes: 0 it watches, 64 wrong usage, 69 it cannot be started, 75 a run is under way already.`,
  options: { duration: { type: 'string' }, out: { type: 'string' }, transport: { type: 'string' }, unit: { type: 'string' } },
  positionals: 0,
  run: async (given) => {
    const { stateFolder, isCheckout, reports, requests } = harnessContext();
    refuseInCheckout(isCheckout, 'npm run harness -- --duration 168h');
    refuseUnlessRoot('start');
    const duration = text(given, 'duration') ?? '168h';
    durationOf(duration);
    const transport = transportOf(text(given, 'transport'));
    const name = text(given, 'unit') ?? MAIN_UNIT;
    const unit = name.includes('.') ? name : `${name}.service`;
    const out = resolve(text(given, 'out') ?? join(reports, folderName(Date.now())));
    if (!out.startsWith(`${resolve(stateFolder)}/`))
      throw new Refusal(EXIT.usage, `--out is "${out}"; allowed: a folder below ${stateFolder}, where the unit may write`);
    const before = explained(requests.folder, () => requests.current());
    if (before !== null && (await isActive(HARNESS_UNIT)))
      throw new Refusal(
        EXIT.inUse,
        `a run is under way in ${before.out}; see it with: edge-health harness status; end it with: edge-health harness stop`,
      );
    if (before !== null)
      throw new Refusal(
        EXIT.inUse,
        `a run in ${before.out} is not finished: go on with it (systemctl start ${HARNESS_UNIT}), or end it with: edge-health harness stop`,
      );
    explained(requests.folder, () => requests.write({ out, duration, transport, unit, requested: new Date().toISOString() }));
    const { code, output } = await changeUnits(['enable', '--now', HARNESS_UNIT], process.env);
    if (code !== 0) {
      process.stderr.write(`${output}\n`);
      await changeUnits(['disable', '--now', HARNESS_UNIT], process.env);
      settleRequest(requests.currentFile);
      throw new Refusal(
        EXIT.unavailable,
        `${HARNESS_UNIT} did not start, and nothing is watched; its journal says why: journalctl -u ${HARNESS_UNIT}`,
      );
    }
    process.stdout.write(`${HARNESS_UNIT} watches ${unit} for ${duration}; record and reports: ${out}\n`);
    return EXIT.ok;
  },
};
