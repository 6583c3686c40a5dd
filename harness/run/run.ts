import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transportEnvironment } from '../../src/client/topic-subscription.ts';
import { dataPath } from '../../src/config/load.ts';
import { installation } from '../../src/core/files/installation.ts';
import { optionsForShortLived, PROGRAMS } from '../../src/core/files/programs.ts';
import { systemClocks } from '../../src/core/platform/clocks.ts';
import { LogOutput } from '../../src/core/platform/log-output.ts';
import { serviceManager, watchdogSeconds } from '../../src/core/platform/notify.ts';
import { becomeOwnerOf } from '../../src/core/platform/privileges.ts';
import { printable } from '../../src/core/text.ts';
import { VERDICT_EXIT } from '../engine/judgement.ts';
import { EXIT, type HarnessCommand, Refusal, text } from './command.ts';
import { Display } from './display.ts';
import { folderName, harnessContext, lockFolder, readRequest, settleRequest } from './run-folder.ts';
import { Session, type SessionOptions } from './session.ts';
import { configFileOf, loaded } from './subject.ts';

const TRANSPORTS = ['auto', 'embedded', 'rclnodejs', 'off'] as const;
type Transport = (typeof TRANSPORTS)[number];

const UNIT_SECONDS: Readonly<Record<string, number>> = { d: 86_400, h: 3600, m: 60, min: 60, s: 1 };
const DURATION = /^(?:\d+(?:\.\d+)?\s*(?:d|h|min|m|s))+$/;
const DURATION_PART = /(\d+(?:\.\d+)?)\s*(d|h|min|m|s)/g;
const SHORTEST_SECONDS = 10;
const LONGEST_SECONDS = 366 * 86_400;

/** Exit codes of verdicts are 0 to 2; any other code means that there is no report. */
const HIGHEST_VERDICT = 2;

export const run: HarnessCommand = {
  name: 'run',
  summary: 'Observe the service for a length of time and report',
  usage: 'run [--duration TIME] [--out DIR] [--url URL | --unit NAME] [--config FILE] [--transport NAME]',
  help: `  --duration TIME    how long to observe: 168h (the length of the test, and the default), 10m, 90s, 1h30m …
  --out DIR          folder of the record and the reports; a new folder of reports/ by default.
                     An unfinished run in it is resumed
  --url URL          the service to observe, on this machine or another
  --unit NAME        the systemd unit to observe, such as edge-health@sensor_node; edge-health on an appliance.
                     Without --url and --unit a checkout starts a service of its own, and stops it at the end
  --config FILE      configuration of the service: its address and ROS 2 domain; by default the file that the service uses
  --transport NAME   ROS 2 transport: auto, embedded, rclnodejs, or off (event stream only)
  --request FILE     options as written by \`start\`; for the unit

The run is complete once the service was observed for that long; monitoring gaps do not count.
Ctrl-C and SIGTERM end it early, with a report. The same command resumes it, also after SIGKILL or a reboot.
A closed terminal does not end it.

Exit codes: 0 PASS, 1 FAIL, 2 INCOMPLETE (a run of less than 168 h never passes), 64 wrong usage, 69 no response or
the folder cannot be used, 70 an internal error, 75 another process observes into DIR, 78 configuration invalid.`,
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
    const request = requestFile === null ? null : readRequest(requestFile);
    if (requestFile !== null && request === null)
      throw new Refusal(EXIT.unavailable, `${requestFile} does not exist: no run was requested with \`edge-health harness start\``);
    const { isCheckout, reports } = harnessContext();
    const transport = transportOf(request?.transport ?? text(given, 'transport'));
    const durationSeconds = durationOf(request?.duration ?? text(given, 'duration'));
    const url = text(given, 'url');
    const unit = request?.unit ?? text(given, 'unit');
    if (url !== null && unit !== null)
      throw new Refusal(EXIT.usage, 'give either --url or --unit: the address of a unit is in its configuration');
    const configFile = configFileOf(text(given, 'config'), unit);
    const config = loaded(configFile);
    restartForRos(transport, dataPath(config, configFile, process.env, installation()));
    const folder = resolve(request?.out ?? text(given, 'out') ?? join(reports, folderName(Date.now())));
    process.umask(0o027); // Same as in the units: other users cannot read the record.
    becomeOwnerOf(folder, process.env);
    process.title = 'edge-health-harness'; // Shown by systemctl status and top.
    const options = { folder, durationSeconds, url, unit, config, configFile, transport, isCheckout, signal: endingSignal() };
    return observe(options, requestFile);
  },
};

/** Observes until the run is complete or stopped, and writes the report. The exit code is that of the verdict. */
async function observe(options: SessionOptions, requestFile: string | null): Promise<number> {
  const { folder } = options;
  const locked = lockFolder(folder);
  try {
    const clocks = systemClocks();
    const output = new LogOutput(process.stderr.fd, () => '');
    const display = new Display({
      stream: process.stderr,
      write: (text) => output.write(text),
      manager: serviceManager(process.env, fileURLToPath(PROGRAMS.sdNotify), (level, message) =>
        output.write(`${level}: ${printable(message)}\n`),
      ),
      watchdogSeconds: watchdogSeconds(process.env, process.pid),
      monotonicSeconds: () => clocks.monotonicSeconds(),
    });
    const session = new Session(options, display, clocks);
    const reason = await session.observe();
    if (reason === null) return EXIT.ok;
    display.end();
    display.print(reason === 'complete' ? 'the run is complete; writing the report' : 'stopped; writing the report');
    const code = await display.pingDuring(renderReport(folder));
    if (code === null) display.print(`the record is intact; write the report with: edge-health harness report ${folder}`);
    // The unit has no further work once the run is complete.
    if (reason === 'complete' && requestFile !== null) settleRequest(requestFile);
    return code ?? VERDICT_EXIT[session.verdict()];
  } finally {
    locked.release();
  }
}

/**
 * Writes the report in a separate process, whose memory is freed when it exits, so that the observer stays small. Resolves with the exit
 * code of the verdict, or with null if it failed and has printed the reason.
 */
export function renderReport(folder: string): Promise<number | null> {
  return new Promise((done) => {
    const child = spawn(process.execPath, [...optionsForShortLived(), fileURLToPath(PROGRAMS.harness), 'report', folder], {
      stdio: ['ignore', 'inherit', 'inherit'],
      // On a terminal, Ctrl-C applies only to the observer, which waits for the report.
      detached: true,
    });
    child.once('error', (error) => {
      process.stderr.write(`edge-health harness: the report cannot be written: ${error.message}\n`);
      done(null);
    });
    child.once('exit', (code) => done(code !== null && code <= HIGHEST_VERDICT ? code : null));
  });
}

/**
 * Converts `168h`, `10m`, `90s`, `7d` or `1h30m` to seconds; null if not given. Throws Refusal if it is not a duration, or out of range.
 */
export function durationOf(given: string | null): number | null {
  if (given === null) return null;
  let seconds = 0;
  if (DURATION.test(given))
    for (const [, number, unit = ''] of given.matchAll(DURATION_PART)) seconds += Number(number) * (UNIT_SECONDS[unit] ?? 0);
  if (seconds >= SHORTEST_SECONDS && seconds <= LONGEST_SECONDS) return seconds;
  throw new Refusal(EXIT.usage, `--duration is "${given}"; allowed: a length of time such as 168h, 10m, 90s or 1h30m, from 10s to 366d`);
}

export function transportOf(given: string | null): Transport {
  const found = TRANSPORTS.find((name) => name === (given ?? 'auto'));
  if (!found) throw new Refusal(EXIT.usage, `--transport is "${given}"; allowed: ${TRANSPORTS.join(', ')}`);
  return found;
}

/** Replaces this process by the same program with the library path of the prepared rclnodejs, if the transport needs it. */
function restartForRos(transport: Transport, dataFolder: string): void {
  if (transport === 'off' || !process.execve) return;
  const environment = transportEnvironment({ transport, environment: process.env, dataFolder });
  if (environment) process.execve(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1)], environment);
}

/**
 * Aborted by SIGINT and SIGTERM. A repeated signal (npm forwards a signal that the terminal has already sent) and SIGHUP have no effect.
 */
function endingSignal(): AbortSignal {
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => ending.abort(new Error(`stopped by ${signal}`)));
  process.on('SIGHUP', () => undefined);
  return ending.signal;
}
