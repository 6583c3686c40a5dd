/**
 * Checks that the quick tests detect faults: inserts each fault of deliberate-faults.txt into a copy of the checkout, runs the tests that
 * are expected to detect it, and fails if they pass. The same tests first run without a fault, because a test that fails anyway proves
 * nothing.
 *   deliberate-faults.ts [--only NAME,...] [--list] [--help]
 * A text of the table that no longer occurs exactly once in its file is an error: the table has to follow the code.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { PARTS } from './parts.ts';

interface Fault {
  readonly name: string;
  readonly file: string;
  /** Files of `npm test` that detect the fault. */
  readonly tests: readonly string[];
  /** Whether the tests run the built program. */
  readonly needsBuild: boolean;
  readonly from: string;
  readonly to: string;
}

const USAGE = `Usage: npm run test:deliberate-faults [-- --only NAME,... | --list]

Puts deliberate faults into a copy of the checkout, one by one, and fails when the quick tests miss one of them.

  --only NAME,...  only these faults
  --list           the faults and the files they are put into

Exit status: 0 all faults detected, 1 not all, 64 wrong usage.`;

const USAGE_STATUS = 64;
const ROOT = resolve(import.meta.dirname, '../..');
const NODE_OPTIONS = ['--disable-warning=ExperimentalWarning'];

const print = (text: string): void => void process.stdout.write(`${text}\n`);

function parseTable(text: string): Fault[] {
  const table: Fault[] = [];
  let where: Pick<Fault, 'file' | 'tests' | 'needsBuild'> | null = null;
  for (const line of text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))) {
    const fault = /^ {2}([a-z0-9-]+): (.+) ==>(?: (.*))?$/.exec(line);
    const header = /^(\S+)( \(built\))?: (.+)$/.exec(line);
    if (fault && where) table.push({ name: fault[1] as string, ...where, from: fault[2] as string, to: fault[3] ?? '' });
    else if (header) where = { file: header[1] as string, tests: (header[3] as string).split(' '), needsBuild: header[2] !== undefined };
    else throw new Error(`deliberate-faults.txt: neither a file nor a fault: ${line}`);
  }
  return table;
}

/** Errors in the table, such as a text that is no longer in its file. */
function problemsOf(table: readonly Fault[]): string[] {
  const isQuick = (test: string): boolean =>
    existsSync(join(ROOT, test)) && !PARTS.some(({ folder, name }) => name !== 'fuzz' && test.startsWith(`${folder}/`));
  return table.flatMap(({ name, file, from, tests }, i) => {
    const problems = tests.filter((test) => !isQuick(test)).map((test) => `${name}: ${test} is not a file of npm test`);
    if (table.findIndex((fault) => fault.name === name) !== i) problems.push(`${name}: the name occurs twice`);
    const count = existsSync(join(ROOT, file)) ? readFileSync(join(ROOT, file), 'utf8').split(from).length - 1 : 0;
    return count === 1 ? problems : [...problems, `${name}: "${from}" occurs ${count} times in ${file}, not once`];
  });
}

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

async function run(program: string, argv: readonly string[], folder: string): Promise<Ended> {
  const child = spawn(program, argv, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output };
}

async function mustRun(program: string, argv: readonly string[], folder: string): Promise<string> {
  const { code, output } = await run(program, argv, folder);
  if (code !== 0) throw new Error(`${program} ${argv.join(' ')} failed:\n${output}`);
  return output;
}

const runTests = (tests: readonly string[], folder: string): Promise<Ended> =>
  run(process.execPath, [...NODE_OPTIONS, 'scripts/tests/run.ts', ...tests], folder);
const build = (folder: string): Promise<string> => mustRun(process.execPath, [...NODE_OPTIONS, 'scripts/build.ts'], folder);

/** Copies the checkout with its node_modules, but without other files that git ignores. The copy is removed when this process ends. */
async function copyCheckout(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'edge-health-faults-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  const names = (await mustRun('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], ROOT)).split('\0');
  for (const name of names.filter((file) => file !== '' && existsSync(join(ROOT, file)))) {
    // `recursive` is needed for links to folders, which are copied as links.
    cpSync(join(ROOT, name), join(folder, name), { recursive: true, verbatimSymlinks: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** The first test that failed with the fault, or null if none did. */
async function detectedBy({ file, from, to, tests, needsBuild }: Fault, folder: string): Promise<string | null> {
  const path = join(folder, file);
  const text = readFileSync(path, 'utf8');
  const changed = text.replace(from, () => to);
  stripTypeScriptTypes(changed); // Throws if the fault is not valid code, because then any test would fail.
  writeFileSync(path, changed);
  try {
    if (needsBuild) await build(folder);
    const { code, output } = await runTests(tests, folder);
    if (code === 0) return null;
    // Property tests add their counterexample to the name.
    return /^FAILED (\S+) .*\n +(.{1,120})/m.exec(output)?.slice(1).join(' › ') ?? output;
  } finally {
    writeFileSync(path, text);
  }
}

/** Returns the faults that were missed. */
async function detect(faults: readonly Fault[], folder: string): Promise<Fault[]> {
  const missed: Fault[] = [];
  for (const fault of faults) {
    const begun = performance.now();
    const test = await detectedBy(fault, folder);
    if (test === null) missed.push(fault);
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    print(test === null ? `MISSED ${fault.name} by ${fault.tests.join(', ')}` : `ok     ${fault.name}: ${test} (${seconds} s)`);
  }
  return missed;
}

const namesOf = (faults: readonly Fault[]): string => faults.map(({ name }) => name).join(', ');

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { only: { type: 'string' }, list: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } });
  if (values.help) {
    print(USAGE);
    return 0;
  }
  const table = parseTable(readFileSync(join(import.meta.dirname, 'deliberate-faults.txt'), 'utf8'));
  const names = values.only?.split(',') ?? table.map(({ name }) => name);
  const unknown = names.filter((name) => !table.some((fault) => fault.name === name));
  if (unknown.length > 0) {
    process.stderr.write(`test:deliberate-faults: no fault "${unknown.join('", "')}"; see --list\n`);
    return USAGE_STATUS;
  }
  // Faults that need a build come last, because the tests of the others must not run a program built with a fault.
  const faults = table.filter(({ name }) => names.includes(name)).sort((a, b) => Number(a.needsBuild) - Number(b.needsBuild));
  if (values.list) {
    for (const { name, file } of faults) print(`${name.padEnd(36)} ${file}`);
    return 0;
  }
  const problems = problemsOf(faults);
  if (problems.length > 0) {
    print(`deliberate-faults.txt does not fit the code:\n${problems.join('\n')}`);
    return 1;
  }
  const folder = await copyCheckout();
  if (faults.some(({ needsBuild }) => needsBuild)) await build(folder);
  const tests = [...new Set(faults.flatMap((fault) => fault.tests))];
  print(`Running ${tests.length} test files without a fault...`);
  const { output } = await runTests(tests, folder);
  const failing = tests.filter((test) => !output.split('\n').some((line) => line.startsWith(`ok     ${test} (`)));
  // A test that fails anyway proves nothing.
  const unproven = faults.filter((fault) => fault.tests.some((test) => failing.includes(test)));
  const provable = faults.filter((fault) => !unproven.includes(fault));
  if (failing.length > 0) print(`${output}\nThese fail without a fault: ${failing.join(', ')}`);
  const missed = await detect(provable, folder);
  print(`\n${provable.length - missed.length} of ${faults.length} faults detected`);
  if (missed.length > 0) print(`Missed: ${namesOf(missed)}`);
  if (unproven.length > 0) print(`Not tried, since their tests fail without a fault: ${namesOf(unproven)}`);
  return missed.length + unproven.length > 0 ? 1 : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  process.stderr.write(`test:deliberate-faults: ${message}\n`);
  process.exitCode = code?.startsWith('ERR_PARSE_ARGS') ? USAGE_STATUS : 1;
}
