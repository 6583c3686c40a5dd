/**
 * Runs test files, each in its own process. Prints a line for each, the failures again at the end, and the counts in the last line.
 *   run.ts [FILE...]                     the quick tests, or these files
 *   run.ts --system [PART...]            the parts of parts.ts
 *   run.ts --system --packages [PART...] the Debian packages of these parts
 *   run.ts --system --help
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { type FileResult, runFile } from './file-run.ts';
import { PARTS, type Part, packagesOf } from './parts.ts';

/** Longer fuzz runs, as in CONTRIBUTING.md, extend the limit. */
const LIMIT_SECONDS = { quick: 300, system: 1200 + 2 * Number(process.env['EDGE_HEALTH_FUZZ_SECONDS'] ?? 0) } as const;
const MAX_JOBS = 8;
/** The only accepted reason for a skip if all parts run: ROS 2 is not in Debian. */
const ACCEPTED_SKIP = /needs a sourced ROS 2/;
const USAGE_STATUS = 64;

// Tests compare the modes of files.
process.umask(0o022);

const print = (text: string): void => void process.stdout.write(`${text}\n`);

function duration(seconds: number): string {
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

function usage(): string {
  const rows = PARTS.map(
    ({ name, proves, needs, minutes }) =>
      `  ${name.padEnd(10)} ${String(minutes).padStart(2)} min  ${proves}\n${' '.repeat(21)}needs ${needs}`,
  );
  return `Usage: npm run test:system [-- PART...]

Runs the tests that need more than npm test: as root on Debian 12. Installs the Debian packages of the parts it runs.
Without PART all of them run, one after the other.

${rows.join('\n')}

Exit status: 0 all tests passed, 1 some failed, 64 wrong usage.`;
}

interface Lane {
  readonly files: readonly string[];
  readonly jobs: number;
  readonly limitSeconds: number;
  readonly environment: NodeJS.ProcessEnv;
}

const results: FileResult[] = [];
const interruption = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interruption.abort());

async function run({ files, jobs, limitSeconds, environment }: Lane): Promise<void> {
  const left = [...files];
  const worker = async (): Promise<void> => {
    for (let file = left.shift(); file !== undefined && !interruption.signal.aborted; file = left.shift()) {
      const result = await runFile(file, { environment, limitSeconds, signal: interruption.signal });
      results.push(result);
      const skipped = result.skips.length > 0 ? `, ${result.skips.length} skipped` : '';
      const failed = result.failures.length > 0 ? `, ${result.failures.length} failed` : '';
      print(
        `${result.failures.length > 0 ? 'FAILED' : 'ok    '} ${file} (${result.passed} passed${failed}${skipped}, ${duration(result.seconds)})`,
      );
      printFailures(result);
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
}

const indent = (text: string): string => text.replaceAll(/^(?=.)/gm, '    ');

function printFailures({ failures, stderr }: FileResult): void {
  for (const { name, detail } of failures) print(indent(`${name}\n${indent(detail)}`));
  if (failures.length > 0 && stderr !== '') print(indent(`printed on standard error:\n${indent(stderr)}`));
}

/** All files except the system tests. The larger ones come first, so that the run does not wait for them at the end. */
function quickFiles(): string[] {
  const found = globSync('{src,ops,harness,dashboard/src,scripts,testkit,test}/**/*.test.ts').filter(
    (file) => !file.includes('node_modules') && !PARTS.some(({ folder, name }) => name !== 'fuzz' && file.startsWith(`${folder}/`)),
  );
  return found.sort((a, b) => Number(b.startsWith('test/')) - Number(a.startsWith('test/')) || a.localeCompare(b));
}

/** The long fuzz part runs every file whose number of cases can be increased. */
function filesOf({ folder, name }: Part): string[] {
  const others = name === 'fuzz' ? quickFiles().filter((file) => readFileSync(file, 'utf8').includes("testkit/effort.ts'")) : [];
  return [...new Set([...globSync(`${folder}/**/*.test.ts`), ...others])].sort();
}

async function runParts(parts: readonly Part[]): Promise<void> {
  for (const part of parts) {
    if (interruption.signal.aborted) return;
    const files = filesOf(part);
    print(`\n${part.name}: ${part.proves}; about ${part.minutes} min, needs ${part.needs}`);
    const begun = performance.now();
    await run({
      files,
      jobs: part.jobs ?? 2,
      limitSeconds: LIMIT_SECONDS.system,
      environment: { ...process.env, ...part.environment },
    });
    print(`${part.name}: ${duration((performance.now() - begun) / 1000)}`);
    // A part without test files has failed.
    if (files.length === 0)
      results.push({
        file: part.folder,
        seconds: 0,
        passed: 0,
        skips: [],
        stderr: '',
        failures: [{ name: part.name, detail: 'no test file' }],
      });
  }
}

function summarize(begun: number, isSystem: boolean, isWhole: boolean): void {
  const failed = results.filter(({ failures }) => failures.length > 0);
  const skips = results.flatMap(({ file, skips: all }) => all.map((skip) => ({ file, ...skip })));
  if (failed.length > 0) {
    print('\nFailures:');
    for (const result of failed) {
      print(`  ${result.file}`);
      printFailures(result);
    }
  }
  if (skips.length > 0) {
    print('\nSkipped:');
    for (const [reason, group] of Map.groupBy(skips, ({ reason }) => reason)) {
      print(`  ${group.length} in ${new Set(group.map(({ file }) => file)).size} files: ${reason}`);
    }
  }
  // On CI, where everything is installed, a skip counts as a failure.
  const gaps = process.env['CI'] ? skips.filter(({ reason }) => !ACCEPTED_SKIP.test(reason)).length : 0;
  print(
    `\n${results.length} files in ${duration((performance.now() - begun) / 1000)}${interruption.signal.aborted ? ', interrupted' : ''}`,
  );
  if (!isSystem && isWhole) {
    print(
      `Not run here: ${PARTS.map(({ name }) => name).join(', ')} (real systemd, DDS peers, Chromium, Prometheus, Podman …): npm run test:system`,
    );
  }
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  const failures = results.reduce((sum, result) => sum + result.failures.length, 0);
  // A run in which nothing passed has failed, even if nothing else reports it.
  const bad = failures + gaps + Number(passed === 0 && failures === 0) + Number(interruption.signal.aborted);
  print(`${passed} passed, ${bad} failed${skips.length > 0 ? `, ${skips.length} skipped` : ''}`);
  process.exitCode = bad > 0 ? 1 : 0;
}

function partsNamed(names: readonly string[]): Part[] {
  const unknown = names.filter((name) => !PARTS.some((part) => part.name === name));
  if (unknown.length > 0) {
    process.stderr.write(`test:system: no part "${unknown.join('", "')}"; the parts are ${PARTS.map(({ name }) => name).join(', ')}\n`);
    process.exit(USAGE_STATUS);
  }
  return PARTS.filter(({ name }) => names.length === 0 || names.includes(name));
}

/** `npm test -- FILE...`: a misspelled file is wrong usage, not a failed test. */
function requireFiles(files: readonly string[]): void {
  const missing = files.filter((file) => !existsSync(file));
  if (missing.length === 0) return;
  process.stderr.write(`npm test: no such file: ${missing.join(', ')}; give paths of test files, such as src/core/csv.test.ts\n`);
  process.exit(USAGE_STATUS);
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { system: { type: 'boolean' }, packages: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) return print(usage());
  const begun = performance.now();
  if (!values.system) {
    requireFiles(positionals);
    const files = positionals.length > 0 ? positionals : quickFiles();
    const jobs = Math.min(Math.max(2, availableParallelism()), MAX_JOBS);
    await run({ files, jobs, limitSeconds: LIMIT_SECONDS.quick, environment: process.env });
    return summarize(begun, false, positionals.length === 0);
  }
  const parts = partsNamed(positionals);
  if (values.packages) return print(packagesOf(parts).join(' '));
  await runParts(parts);
  summarize(begun, true, positionals.length === 0);
}

await main();
