/** Runs the benchmarks, one program after another, and writes bench/RESULTS.md. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Outcome } from './support/outcome.ts';
import { quantity, verdict } from './support/render.ts';
import { saveOutcome } from './support/results.ts';
import { serviceNodeOptions } from './support/service-process.ts';

interface Program {
  readonly about: string;
  /** Timeout, in addition to the long measurement. */
  readonly timeoutMinutes: number;
  /** Maximum length of its long measurement as a multiple of --minutes. */
  readonly long?: number;
}

const PROGRAMS: Readonly<Record<string, Program>> = {
  sample: { about: 'CPU of one sample, against systeminformation', timeoutMinutes: 4 },
  spool: { about: 'one record in the spool, against SQLite', timeoutMinutes: 2 },
  service: { about: 'the whole service at 1 Hz, against collectd, node_exporter, netdata and Glances', timeoutMinutes: 3, long: 1 },
  start: { about: 'start to the first health status, against node_exporter', timeoutMinutes: 3 },
  rest: { about: '/health at 1,000 requests per second, against node_exporter', timeoutMinutes: 4 },
  week: { about: 'queries over a week of samples, against plain SQL', timeoutMinutes: 15 },
  thousand: { about: '1,000 samples per second, for information', timeoutMinutes: 4 },
  appliance: { about: 'the package under systemd: installation, start, cost, recovery', timeoutMinutes: 10, long: 1 },
  ros: { about: 'both ROS 2 transports: latency, cost, 1,000 statuses per second', timeoutMinutes: 15, long: 1 },
  fleet: { about: 'one appliance and 10, 100, 300 robots on the ROS 2 graph', timeoutMinutes: 30 },
  dashboard: { about: 'the page in Chromium on a slowed processor: first data, a week, live data, 300 nodes', timeoutMinutes: 6, long: 1 },
  ops: { about: 'the scheduler with all maintenance jobs, for an hour', timeoutMinutes: 4, long: 6 },
  harness: { about: 'the harness over a week: its record and its report', timeoutMinutes: 5 },
};
const ORDER = Object.keys(PROGRAMS);
/** Time from SIGTERM to SIGKILL, in which the program must end its child processes. */
const KILL_AFTER_SECONDS = 30;

const USAGE = `Usage: npm run bench -- [--only NAME,...] [--minutes N]

Measures edge-health and comparable programs (baselines) and writes bench/RESULTS.md. Takes about three hours; run nothing else
on the machine.

  --only NAME,...  run only these; the figures of the others are kept:
${ORDER.map((name) => `                     ${name.padEnd(9)} ${PROGRAMS[name]?.about}`).join('\n')}
  --minutes N      length of the long measurement of \`service\`; \`ros\` takes half of it, \`ops\` six times as long (default 10)
`;

function fail(message: string): never {
  process.stderr.write(`bench: ${message}\n\n${USAGE}`);
  process.exit(64);
}

function readOptions(): { names: readonly string[]; minutes: number } | null {
  const options = { only: { type: 'string' }, minutes: { type: 'string', default: '10' }, help: { type: 'boolean', short: 'h' } } as const;
  try {
    const { values } = parseArgs({ options });
    if (values.help) return null;
    const minutes = Number(values.minutes);
    if (!(minutes > 0 && minutes <= 1440)) fail(`--minutes is "${values.minutes}"; allowed: above 0 up to 1440`);
    const wanted = values.only?.split(',') ?? ORDER;
    const unknown = wanted.filter((name) => !ORDER.includes(name));
    if (unknown.length > 0) fail(`unknown benchmark "${unknown.join(', ')}"`);
    return { names: ORDER.filter((name) => wanted.includes(name)), minutes };
  } catch (error) {
    return fail((error as Error).message);
  }
}

let interrupted = false;

/** Runs one program, which ends its own child processes. Returns null if it failed or timed out. */
async function runProgram(name: string, minutes: number): Promise<Outcome | null> {
  const file = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
  const argv = [...process.execArgv, ...(name === 'sample' || name === 'spool' ? serviceNodeOptions() : []), file, `--minutes=${minutes}`];
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  const timeoutMinutes = (PROGRAMS[name]?.timeoutMinutes ?? 0) + (PROGRAMS[name]?.long ?? 0) * minutes;
  let killer: NodeJS.Timeout | undefined;
  const end = (): void => {
    child.kill('SIGTERM');
    killer ??= setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_SECONDS * 1000);
  };
  const timeout = setTimeout(end, timeoutMinutes * 60_000);
  const onSignal = (): void => {
    interrupted = true;
    end();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  const [code] = (await once(child, 'close')) as [number | null];
  process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  clearTimeout(timeout);
  clearTimeout(killer);
  return code === 0 ? (JSON.parse(text) as Outcome) : null;
}

async function main(): Promise<number> {
  const options = readOptions();
  if (options === null) {
    process.stdout.write(USAGE);
    return 0;
  }
  const failed: string[] = [];
  for (const name of options.names) {
    if (interrupted) break;
    process.stderr.write(`${name}: ${PROGRAMS[name]?.about}\n`);
    const outcome = await runProgram(name, options.minutes);
    if (outcome === null) {
      failed.push(name);
      continue;
    }
    saveOutcome(name, outcome, ORDER);
    for (const row of outcome.rows) {
      const baseline = row.baseline ? ` (${row.baseline.name}: ${quantity(row.baseline.value, row.unit)})` : '';
      process.stdout.write(`${row.figure}: ${quantity(row.value, row.unit)}${baseline} ${verdict(row).replaceAll('*', '')}\n`);
    }
  }
  if (failed.length > 0) process.stderr.write(`bench: failed: ${failed.join(', ')}; see above\n`);
  return failed.length > 0 || interrupted ? 1 : 0;
}

process.exitCode = await main();
