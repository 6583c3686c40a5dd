/** `npm run faults`: runs the fault tests one after the other, reports progress, and writes the table of their results. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { containersUnavailable, SUITES } from '../../testkit/container/images.ts';
import { builtPackage } from '../../testkit/container/package.ts';
import { peersUnavailable } from '../../testkit/dds/peers.ts';
import { thisKernel, thisMachine } from '../../testkit/machine/machine-info.ts';
import { type FaultRecord, isDone, renderPage, renderTable } from './support/report.ts';

const EXIT = { passed: 0, failed: 1, interrupted: 2, usage: 64, unavailable: 69 } as const;
const ROOT = resolve(import.meta.dirname, '../..');
const HERTZ = 10;
const FILES = globSync('*.test.ts', { cwd: import.meta.dirname }).sort();

const USAGE = `Usage: npm run faults -- [--core] [--suite bookworm|trixie] [--out DIR] [--list] [NAME...]

Injects faults into the installed package, in containers with a real systemd, and writes what was expected, what was observed, how long the
recovery took and what was lost. Needs root. All faults take about 30 minutes, the core about 6.

  NAME...          only these faults, or families of faults: ${FILES.map(familyOf).join(', ')}
  --core           only those of the core, which npm run test:system runs as well
  --suite SUITE    Debian release of the containers (default bookworm)
  --out DIR        folder for faults.md and faults.json (default build/faults)
  --list           print the faults with what is expected, and exit

Exit status: 0 every check held, 1 some did not, 2 interrupted, 64 wrong usage, 69 cannot run here.
`;

function familyOf(file: string): string {
  return basename(file, '.test.ts');
}

function exit(message: string, code: number): never {
  process.stderr.write(`faults: ${message}\n`);
  process.exit(code);
}

/** The records in a folder, in the order of the families, and within a family in the order in which its faults are registered. */
function readRecords(folder: string, order: readonly string[] = []): FaultRecord[] {
  const records = readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as FaultRecord);
  return records.sort((a, b) => order.indexOf(a.fault.name) - order.indexOf(b.fault.name));
}

/** Every existing fault, as the test files register them. */
function listFaults(): FaultRecord[] {
  const folder = mkdtempSync(join(tmpdir(), 'edge-health-faults-'));
  try {
    const imports = FILES.map((file) => `import ${JSON.stringify(pathToFileURL(join(import.meta.dirname, file)).href)};`).join('\n');
    const env = { ...process.env, EDGE_HEALTH_FAULTS: 'list', EDGE_HEALTH_FAULTS_RESULTS: folder };
    const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', imports];
    const { status, stderr, stdout } = spawnSync(process.execPath, args, { cwd: ROOT, env, encoding: 'utf8' });
    if (status !== 0) throw new Error(`the faults cannot be listed: ${stderr}${stdout}`);
    return readRecords(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Options {
  readonly faults: readonly FaultRecord[];
  readonly suite: string;
  readonly out: string;
  readonly list: boolean;
}

/** Null: the usage was requested. */
function readOptions(): Options | null {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        core: { type: 'boolean', default: false },
        suite: { type: 'string', default: 'bookworm' },
        out: { type: 'string', default: 'build/faults' },
        list: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (values.help) return null;
    if (!SUITES.some((name) => name === values.suite)) throw new Error(`--suite is "${values.suite}"; allowed: ${SUITES.join(', ')}`);
    const all = listFaults();
    const unknown = positionals.filter((name) => !all.some(({ fault }) => [fault.name, fault.family].includes(name)));
    if (unknown.length > 0) throw new Error(`no fault or family is called "${unknown.join(', ')}"; --list shows them`);
    const isNamed = ({ fault }: FaultRecord): boolean => positionals.includes(fault.name) || positionals.includes(fault.family);
    const faults = all.filter((record) => (!values.core || record.fault.core) && (positionals.length === 0 || isNamed(record)));
    if (faults.length === 0) throw new Error('no fault is left to run');
    return { faults, suite: values.suite, out: resolve(values.out), list: values.list };
  } catch (error) {
    return exit(`${(error as Error).message}\n\n${USAGE}`, EXIT.usage);
  }
}

/** Shows the comments of the tests and the checks that fail, and skips the rest of the TAP output. */
function showProgress(child: ChildProcess, names: readonly string[]): void {
  let count = 0;
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  lines.on('line', (line) => {
    const comment = /^\s+# (?!time=|Subtest)(.*)$/.exec(line)?.[1];
    const failure = /^\s{6,}not ok \d+ - (.*)$/.exec(line)?.[1];
    const begun = comment && names.find((name) => comment.startsWith(`${name}: `));
    if (begun && !/: (passed|FAILED) after/.test(comment)) {
      count += 1;
      process.stderr.write(`[${count}/${names.length}] ${comment}\n`);
    } else if (comment) process.stderr.write(`  ${comment}\n`);
    else if (failure) process.stderr.write(`  DOES NOT HOLD: ${failure}\n`);
    else if (/^not ok/.test(line)) process.stderr.write(`FAILED: ${line}\n`);
  });
}

async function main(): Promise<number> {
  const options = readOptions();
  if (options === null || options.list) {
    const list = options?.faults.map(({ fault }) => `${fault.name} (${fault.family}${fault.core ? ', core' : ''}): ${fault.expected}\n`);
    process.stdout.write(list?.join('') ?? USAGE);
    return EXIT.passed;
  }
  const unavailable = containersUnavailable() || peersUnavailable();
  if (unavailable) exit(unavailable, EXIT.unavailable);
  process.stderr.write('building the package unless it is up to date\n');
  const { file, version } = await builtPackage();
  const began = new Date().toISOString();
  const names = options.faults.map(({ fault }) => fault.name);
  const families = new Set(options.faults.map(({ fault }) => fault.family));
  const results = mkdtempSync(join(tmpdir(), 'edge-health-faults-'));
  const child = spawn(
    'node_modules/.bin/tap',
    ['--reporter=tap', '--jobs=1', ...FILES.filter((name) => families.has(familyOf(name))).map((name) => `test/faults/${name}`)],
    {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'inherit'],
      // A process group of its own: an interruption ends tap and the test, not only tap.
      detached: true,
      env: {
        ...process.env,
        PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH']}`,
        EDGE_HEALTH_DEB: file,
        EDGE_HEALTH_FAULTS: names.join(','),
        EDGE_HEALTH_FAULTS_RESULTS: results,
        EDGE_HEALTH_FAULTS_SUITE: options.suite,
      },
    },
  );
  showProgress(child, names);
  let isInterrupted = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      isInterrupted = true;
      if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid as number), 'SIGTERM');
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  const done = readRecords(results, names);
  rmSync(results, { recursive: true, force: true });
  const faults = options.faults.map((fault) => done.find((record) => record.fault.name === fault.fault.name) ?? fault);
  const run = { began, package: version, machine: thisMachine(), kernel: thisKernel(), hertz: HERTZ, faults };
  mkdirSync(options.out, { recursive: true });
  writeFileSync(join(options.out, 'faults.json'), `${JSON.stringify(run, null, 2)}\n`);
  writeFileSync(join(options.out, 'faults.md'), renderPage(run));
  process.stdout.write(`${renderTable(faults)}\n`);
  process.stderr.write(`written to ${options.out}\n`);
  if (isInterrupted) return EXIT.interrupted;
  return code === 0 && faults.every((record) => isDone(record) && record.result.passed) ? EXIT.passed : EXIT.failed;
}

process.exitCode = await main();
