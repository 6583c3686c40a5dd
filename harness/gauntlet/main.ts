/** Tries faults on the installed package in containers, one after the other, and writes what came of it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { thisKernel, thisMachine } from '../../bench/support/machine.ts';
import { containersUnavailable, SUITES, type Suite } from '../../testkit/container/images.ts';
import { builtPackage } from '../../testkit/container/package.ts';
import { peersUnavailable } from '../../testkit/dds/peers.ts';
import { HERTZ } from './arena-config.ts';
import type { Fault } from './fault.ts';
import { FAULTS } from './faults/index.ts';
import { Stage } from './stage.ts';
import { type Gauntlet, renderPage, renderTable, type Tried } from './table.ts';

const EXIT = { held: 0, failed: 1, incomplete: 2, usage: 64, unavailable: 69 } as const;
const GROUPS = [...new Set(FAULTS.map(({ group }) => group))];

const USAGE = `Usage: npm run gauntlet -- [--core] [--only NAME,...] [--suite bookworm|trixie] [--out DIR] [--list]

Tries faults on the installed package in containers with a real systemd, and writes what was expected, what was observed and what it cost.
Needs root. Takes most of an hour, the core less than five minutes.

  --core           only those that matter most
  --only NAME,...  only these faults, or groups: ${GROUPS.join(', ')}
  --suite SUITE    the Debian that the containers are (default bookworm)
  --out DIR        where gauntlet.md and gauntlet.json go (default build/gauntlet)
  --list           tells the faults and what is expected, and ends

Exit status: 0 everything held, 1 something did not, 2 interrupted, 64 wrong usage, 69 it cannot run here.
`;

interface Options {
  readonly faults: readonly Fault[];
  readonly suite: Suite;
  readonly folder: string;
  readonly list: boolean;
}

function end(message: string, code: number): never {
  process.stderr.write(`gauntlet: ${message}\n`);
  process.exit(code);
}

/** Null: the usage was asked for. */
function readOptions(): Options | null {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string' },
        core: { type: 'boolean', default: false },
        suite: { type: 'string', default: 'bookworm' },
        out: { type: 'string', default: 'build/gauntlet' },
        list: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (values.help) return null;
    const suite = SUITES.find((name) => name === values.suite);
    if (suite === undefined) throw new Error(`--suite is "${values.suite}"; allowed: ${SUITES.join(', ')}`);
    const wanted = values.only?.split(',') ?? null;
    const unknown = wanted?.filter((name) => !GROUPS.includes(name) && !FAULTS.some((fault) => fault.name === name)) ?? [];
    if (unknown.length > 0) throw new Error(`there is no fault nor group "${unknown.join(', ')}"; --list tells them`);
    const faults = FAULTS.filter(
      ({ name, group, core }) => (!values.core || core) && (wanted === null || wanted.includes(name) || wanted.includes(group)),
    );
    if (faults.length === 0) throw new Error('that leaves no fault to try');
    return { faults: besideTheirLikes(faults), suite, folder: resolve(values.out), list: values.list };
  } catch (error) {
    return end(`${(error as Error).message}\n\n${USAGE}`, EXIT.usage);
  }
}

/** In the order given, but those that want the same machine one after the other. */
function besideTheirLikes(faults: readonly Fault[]): Fault[] {
  const byWish = Map.groupBy(faults, ({ boot }) => JSON.stringify(boot ?? {}));
  return [...byWish.values()].flat();
}

function write(folder: string, gauntlet: Gauntlet): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'gauntlet.json'), `${JSON.stringify(gauntlet, null, 2)}\n`);
  writeFileSync(join(folder, 'gauntlet.md'), renderPage(gauntlet));
}

async function main(): Promise<number> {
  const options = readOptions();
  if (options === null || options.list) {
    const list = options?.faults.map(({ name, group, core, expected }) => `${name} (${group}${core ? ', core' : ''}): ${expected}\n`);
    process.stdout.write(list?.join('') ?? USAGE);
    return EXIT.held;
  }
  const unavailable = containersUnavailable() || peersUnavailable();
  if (unavailable) end(unavailable, EXIT.unavailable);
  const progress = (text: string): void => void process.stderr.write(`${text}\n`);
  const { file, version } = await builtPackage();
  const stage = new Stage({ suite: options.suite, deb: file, progress });
  const interruption = new Promise<null>((interrupted) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted(null));
  });
  const began = new Date().toISOString();
  const tried: Tried[] = [];
  for (const [index, fault] of options.faults.entries()) {
    const { name, group, core, expected } = fault;
    progress(`[${index + 1}/${options.faults.length}] ${name}: ${expected}`);
    const start = performance.now();
    const observation = await Promise.race([stage.try(fault), interruption]);
    if (observation === null) break;
    const seconds = (performance.now() - start) / 1000;
    tried.push({ fault: { name, group, core, expected }, suite: fault.boot?.suite ?? options.suite, seconds, observation });
    progress(`  ${observation.held ? 'held' : 'FAILED'} after ${seconds.toFixed(0)} s: ${observation.observed}`);
  }
  const untried = options.faults.slice(tried.length).map(({ name }) => name);
  if (untried.length > 0) progress('interrupted; taking the machines away');
  await stage.clear();
  const gauntlet = { began, package: version, machine: thisMachine(), kernel: thisKernel(), hertz: HERTZ, tried, untried };
  write(options.folder, gauntlet);
  process.stdout.write(`${renderTable(tried)}\n`);
  progress(`written to ${options.folder}`);
  if (tried.some(({ observation }) => !observation.held)) return EXIT.failed;
  return untried.length > 0 ? EXIT.incomplete : EXIT.held;
}

// What an interrupted fault still waits for is not waited for.
process.exit(await main());
