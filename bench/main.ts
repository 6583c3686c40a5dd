/** Runs the benchmarks, one program after the other, and writes bench/RESULTS.md. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { thisMachine } from '../testkit/machine/machine-info.ts';
import { serviceNodeOptions } from './support/ours.ts';
import type { Outcome } from './support/outcome.ts';
import { quantity, verdict } from './support/render.ts';
import { saveOutcome } from './support/results.ts';

interface Program {
  readonly about: string;
  /** It is ended after so long, the long measurement not counted. */
  readonly boundMinutes: number;
  /** It has a long measurement, whose length is so many times --minutes at most. */
  readonly long?: number;
}

const PROGRAMS: Readonly<Record<string, Program>> = {
  sample: { about: 'CPU of one sample, against systeminformation', boundMinutes: 4 },
  service: { about: 'the whole service at 1 Hz, against collectd and node_exporter', boundMinutes: 3, long: 1 },
  start: { about: 'start to the first health status, against node_exporter', boundMinutes: 3 },
  rest: { about: '/health at 1,000 requests a second, against node_exporter', boundMinutes: 4 },
  week: { about: 'questions over a week of samples, against plain SQL', boundMinutes: 15 },
  thousand: { about: '1,000 samples a second, for information', boundMinutes: 4 },
  appliance: { about: 'the package under systemd: installation, start, cost, recovery', boundMinutes: 10, long: 1 },
  ros: { about: 'both ROS 2 transports: latency, cost, 1,000 statuses a second', boundMinutes: 15, long: 1 },
  fleet: { about: 'one appliance and 10, 100, 300 robots on the ROS 2 graph', boundMinutes: 30 },
  ops: { about: 'the scheduler of operations with all jobs, for an hour', boundMinutes: 4, long: 6 },
  harness: { about: 'the harness over a week: its record and its report', boundMinutes: 5 },
};
const ORDER = Object.keys(PROGRAMS);
/** After being asked to end, a program has this long to end what it started. */
const PATIENCE_SECONDS = 30;

const USAGE = `Usage: npm run bench -- [--only NAME,...] [--minutes N]

Measures edge-health beside its rivals and writes bench/RESULTS.md. Takes about three hours; nothing else should run meanwhile.

  --only NAME,...  only these, the others keep their figures:
${ORDER.map((name) => `                     ${name.padEnd(9)} ${PROGRAMS[name]?.about}`).join('\n')}
  --minutes N      length of the long measurement of \`service\`, and twice that of \`ros\`, a sixth of that of \`ops\` (default 10)
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
    if (unknown.length > 0) fail(`there is no benchmark "${unknown.join(', ')}"`);
    return { names: ORDER.filter((name) => wanted.includes(name)), minutes };
  } catch (error) {
    return fail((error as Error).message);
  }
}

let interrupted = false;

/** Runs one program; null when it failed or took too long. It ends what it started by itself. */
async function run(name: string, minutes: number): Promise<Outcome | null> {
  const file = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
  const argv = [...process.execArgv, ...(name === 'sample' ? serviceNodeOptions() : []), file, `--minutes=${minutes}`];
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  const boundMinutes = (PROGRAMS[name]?.boundMinutes ?? 0) + (PROGRAMS[name]?.long ?? 0) * minutes;
  let killer: NodeJS.Timeout | undefined;
  const end = (): void => {
    child.kill('SIGTERM');
    killer ??= setTimeout(() => child.kill('SIGKILL'), PATIENCE_SECONDS * 1000);
  };
  const bound = setTimeout(end, boundMinutes * 60_000);
  const onSignal = (): void => {
    interrupted = true;
    end();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  const [code] = (await once(child, 'close')) as [number | null];
  process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  clearTimeout(bound);
  clearTimeout(killer);
  return code === 0 ? (JSON.parse(text) as Outcome) : null;
}

async function main(): Promise<number> {
  const options = readOptions();
  if (options === null) {
    process.stdout.write(USAGE);
    return 0;
  }
  const machine = thisMachine();
  const failed: string[] = [];
  for (const name of options.names) {
    if (interrupted) break;
    process.stderr.write(`${name}: ${PROGRAMS[name]?.about}\n`);
    const outcome = await run(name, options.minutes);
    if (outcome === null) {
      failed.push(name);
      continue;
    }
    saveOutcome(machine, name, outcome, ORDER);
    for (const row of outcome.rows) {
      const rival = row.rival ? ` (${row.rival.name}: ${quantity(row.rival.value, row.unit)})` : '';
      process.stdout.write(`${row.figure}: ${quantity(row.ours, row.unit)}${rival} ${verdict(row).replaceAll('*', '')}\n`);
    }
  }
  if (failed.length > 0) process.stderr.write(`bench: not measured: ${failed.join(', ')}; see above\n`);
  return failed.length > 0 || interrupted ? 1 : 0;
}

process.exitCode = await main();
