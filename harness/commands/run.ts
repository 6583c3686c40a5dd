import { join, resolve } from 'node:path';
import { dataPath } from '../../src/installation/data-path.ts';
import { installation } from '../../src/installation/installation.ts';
import { becomeOwnerOf } from '../../src/system/privileges.ts';
import { transportEnvironment } from '../observe/transport.ts';
import { DURATION_ALLOWED, parseDuration } from '../run/duration.ts';
import { folderName } from '../run/place.ts';
import { readRequest } from '../run/request.ts';
import { runHarness } from '../run/run.ts';
import { configFileOf, loaded } from '../run/subject.ts';
import { EXIT, type HarnessCommand, Refusal, text } from './command.ts';
import { explained, harnessContext } from './context.ts';

export const TRANSPORTS = ['auto', 'embedded', 'rclnodejs', 'off'] as const;
export type Transport = (typeof TRANSPORTS)[number];

export const run: HarnessCommand = {
  name: 'run',
  summary: 'Watch the service for a length of time and report',
  usage: 'run [--duration TIME] [--out DIR] [--url URL | --unit NAME] [--config FILE] [--transport NAME]',
  help: `  --duration TIME    how long to watch: 168h (what the test asks for, and the default), 10m, 90s, 1h30m …
  --out DIR          where the record and the reports go; a folder of its own under reports/ by default.
                     An unfinished run that is there is gone on with
  --url URL          the service to watch, on this machine or another
  --unit NAME        the systemd unit to watch, such as edge-health@sensor_node; edge-health on an appliance.
                     Without --url and --unit a checkout starts a service of its own, and ends it
  --config FILE      configuration of the service: where it listens, ROS 2 domain; as the service finds it by default
  --transport NAME   how to listen to ROS 2: auto, embedded, rclnodejs, or off (by the event stream alone)
  --request FILE     what \`start\` asked for; for the unit

It ends by itself once the service has been watched for that long; the time in which nobody watched is not part of it.
Ctrl-C and SIGTERM end it early, with a report; the same command goes on later. So it does after a kill or a reboot.
A closed terminal does not end it.

Exit codes: 0 PASS, 1 FAIL, 2 INCOMPLETE (a run of less than 168 h never passes), 64 wrong usage, 69 nothing answers or
the folder cannot be used, 70 an internal error, 75 somebody watches into DIR already, 78 configuration invalid.`,
  options: {
    duration: { type: 'string' },
    out: { type: 'string' },
    url: { type: 'string' },
    unit: { type: 'string' },
    config: { type: 'string' },
    transport: { type: 'string' },
    request: { type: 'string' },
  },
  positionals: 0,
  run: async (given) => {
    const requestFile = text(given, 'request');
    const request = requestFile === null ? null : explained(requestFile, () => readRequest(requestFile));
    if (requestFile !== null && request === null)
      throw new Refusal(EXIT.unavailable, `${requestFile} is not there: nothing was asked for with \`edge-health harness start\``);
    const config = text(given, 'config');
    const { isCheckout, reports } = harnessContext();
    const transport = transportOf(request?.transport ?? text(given, 'transport'));
    const durationSeconds = durationOf(request?.duration ?? text(given, 'duration'));
    const url = text(given, 'url');
    const unit = request?.unit ?? text(given, 'unit');
    if (url !== null && unit !== null)
      throw new Refusal(EXIT.usage, 'give either --url or --unit: the unit says where its service listens');
    const configFile = configFileOf({ config, unit });
    restartForRos(transport, () => dataPath(loaded(configFile), configFile, process.env, installation()));
    const out = request?.out ?? text(given, 'out');
    const folder = resolve(out ?? join(reports, folderName(Date.now())));
    process.umask(0o027); // As the units have it: what a run records is not for everybody.
    becomeOwnerOf(folder, process.env);
    process.title = 'edge-health-harness'; // What systemctl status and top call it; else it would be the runtime's name.
    return runHarness({ folder, durationSeconds, url, unit, config, transport, isCheckout, requestFile, signal: endingSignal() });
  },
};

/** Null: it was not given. */
export function durationOf(given: string | null): number | null {
  const seconds = given === null ? null : parseDuration(given);
  if (given !== null && seconds === null) throw new Refusal(EXIT.usage, `--duration is "${given}"; allowed: ${DURATION_ALLOWED}`);
  return seconds;
}

export function transportOf(given: string | null): Transport {
  const found = TRANSPORTS.find((name) => name === (given ?? 'auto'));
  if (!found) throw new Refusal(EXIT.usage, `--transport is "${given}"; allowed: ${TRANSPORTS.join(', ')}`);
  return found;
}

/** Becomes the same program again, with the library path of what was prepared for rclnodejs. */
function restartForRos(transport: Transport, dataFolder: () => string): void {
  if (transport === 'off' || transport === 'embedded' || !process.execve) return;
  const environment = transportEnvironment({ transport, environment: process.env, dataFolder: dataFolder() });
  if (environment) process.execve(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1)], environment);
}

/** Aborted by SIGINT and SIGTERM; a second one (npm passes on what the terminal sent already) changes nothing. SIGHUP is left aside. */
function endingSignal(): AbortSignal {
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => ending.abort(new Error(`stopped by ${signal}`)));
  process.on('SIGHUP', () => undefined);
  return ending.signal;
}
