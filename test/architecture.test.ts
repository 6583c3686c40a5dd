import { globSync, readFileSync } from 'node:fs';
import { dirname, normalize } from 'node:path';
import t from 'tap';
import { ROOT } from '../testkit/service/service.ts';

/** Which module may import from which, besides itself, as in docs/develop/architecture.md. Imports of types count. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  core: [],
  config: ['core'],
  collect: ['core'],
  store: ['core'],
  http: ['core'],
  rtps: [],
  ros: ['core', 'rtps'],
  system: ['core'],
  shutdown: ['core', 'config'],
  client: ['core', 'config', 'ros'],
  app: ['core', 'config', 'collect', 'store', 'http', 'ros', 'shutdown', 'system'],
  cli: ['core', 'config', 'collect', 'http', 'ros', 'system', 'client', 'app'],
  main: ['cli', 'core'],
  ops: ['core', 'config', 'client', 'harness/engine', 'harness/report'],
  'harness/engine': ['core'],
  'harness/record': ['core', 'harness/engine'],
  'harness/report': ['core', 'harness/engine', 'harness/record'],
  'harness/observe': ['core', 'config', 'client', 'harness/record'],
  'harness/run': ['core', 'config', 'client', 'harness/engine', 'harness/record', 'harness/report', 'harness/observe'],
  'harness/main': ['core', 'client', 'harness/record', 'harness/run'],
};
/** Programs that test the product: they may import any module, and no module imports them. */
const TEST_PROGRAMS = ['harness/soak', 'harness/mutation'];
/** The specifiers of imports, static and dynamic. */
const IMPORT = /(?:^|\n)\s*(?:import|export)\b[^;'"]*?from\s*'([^']+)'|\bimport\('([^']+)'\)/g;

interface Import {
  readonly file: string;
  readonly target: string;
}

function importsOf(file: string): Import[] {
  const text = readFileSync(`${ROOT}/${file}`, 'utf8');
  return [...text.matchAll(IMPORT)].map((match) => ({ file, target: match[1] ?? match[2] ?? '' }));
}

/** Single files that may be imported in addition. */
const EXCEPTIONS: readonly string[] = [
  'harness/report → dashboard/src/chart-math.ts',
  'shutdown → src/http/api/schema.ts',
  'client → src/http/api/schema.ts',
  'client → src/http/api/ops-schema.ts',
  'client → src/store/database/database.ts',
  'client → src/store/samples/chunk.ts',
];

const sources = globSync(['src/**/*.ts', 'ops/**/*.ts', 'harness/**/*.ts'], { cwd: ROOT }).filter(
  (file) => !/\.test\.ts$|\/testing\//.test(file),
);
const imports = sources.flatMap(importsOf);

function moduleOf(file: string): string {
  const [top = '', first = ''] = file.split('/');
  const name = first.replace(/\.ts$/, '');
  return top === 'src' ? name : top === 'harness' ? `harness/${name}` : top;
}

function resolved({ file, target }: Import): string {
  return normalize(`${dirname(file)}/${target}`);
}

t.test('the check finds the sources and their imports', async (t) => {
  t.ok(sources.length > 50, `${sources.length} files`);
  t.ok(imports.length > 150, `${imports.length} imports`);
  t.same(
    [...new Set(sources.map(moduleOf))].filter((name) => !(name in ALLOWED) && !TEST_PROGRAMS.includes(name)),
    [],
    'every module is listed',
  );
});

t.test('modules import only in the allowed direction', async (t) => {
  for (const entry of imports.filter(({ target }) => target.startsWith('.'))) {
    const from = moduleOf(entry.file);
    const to = moduleOf(resolved(entry));
    if (TEST_PROGRAMS.includes(from)) continue;
    if (EXCEPTIONS.includes(`${from} → ${resolved(entry)}`)) continue;
    if (from !== to && !ALLOWED[from]?.includes(to)) t.fail(`${entry.file} imports ${entry.target}: ${from} must not import ${to}`);
  }
  t.pass('no other import');
});

t.test('of ops only generate_7day_report uses the harness, and the harness uses nothing of ops', async (t) => {
  const crossing = imports.filter((entry) => {
    const ends = [entry.file, entry.target.startsWith('.') ? resolved(entry) : ''];
    return ends.some((path) => path.startsWith('ops/')) && ends.some((path) => path.startsWith('harness/'));
  });
  t.ok(crossing.length > 0, 'the check found its imports');
  t.same(
    crossing.filter(({ file }) => !/^ops\/(generate_7day_report\.ts|report\/)/.test(file)),
    [],
  );
});

t.test('only tests import the test kit', async (t) => {
  const pages = globSync('dashboard/src/**/*.{ts,tsx}', { cwd: ROOT }).filter((file) => !/\.test\.ts$/.test(file));
  t.ok(pages.length > 10, `${pages.length} files of the dashboard`);
  // The soak is itself a test and is part of no package.
  const users = [...imports, ...pages.flatMap(importsOf)].filter(
    (entry) => entry.target.startsWith('.') && /^testkit\//.test(resolved(entry)),
  );
  t.same(
    users.filter(({ file }) => !file.startsWith('harness/soak/')),
    [],
  );
  const kit = globSync('testkit/**/*.ts', { cwd: ROOT })
    .flatMap(importsOf)
    .map((entry) => (entry.target.startsWith('.') ? resolved(entry) : ''));
  t.same(
    kit.filter((target) => /^(test|bench)\//.test(target)),
    [],
    'and it imports no test',
  );
});

const DOCUMENT = readFileSync(`${ROOT}/docs/develop/architecture.md`, 'utf8');

t.test('the diagram shows the imports between modules', async (t) => {
  const whole = (module: string): string => module.replace(/^harness\/.*/, 'harness');
  const found = imports
    .filter(({ file, target }) => target.startsWith('.') && !TEST_PROGRAMS.includes(moduleOf(file)))
    .map((entry) => [whole(moduleOf(entry.file)), whole(moduleOf(resolved(entry)))] as const)
    .filter(([from, to]) => from !== to && to !== 'core')
    .map(([from, to]) => `${from} --> ${to}`);
  const drawn = [...DOCUMENT.matchAll(/^ {2}(\w+ --> \w+)$/gm)].map(([, arrow]) => arrow);
  t.same([...drawn].sort(), [...new Set(found)].sort());
});

interface Step {
  readonly file: string;
  readonly functions: readonly string[];
}

function stepsOf(table: string): Step[] {
  return [...table.matchAll(/^\| \d+ \| `([^`]+)` \| ([^|]+) \|/gm)].map(([, file = '', functions = '']) => ({
    file: `src/${file}`,
    functions: [...functions.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  }));
}

/** Matches the declaration of a function: a call of it does not match. */
function declarationOf(name: string): RegExp {
  const named = [
    `^(export )?(async )?function\\*? ${name}\\b`,
    // A member of a class.
    `^ {2}((protected|async|get|set) |\\*)*${name}(<.*>)?\\([^;]*?\\)(: .*)? \\{$`,
    `^ {2}(readonly )?${name}(: [^=]+)? = (async )?\\(`,
    `^ *(export )?const ${name}(: [^=]+)? = (async )?\\(`,
    // A member of an object.
    `^ +${name}: (async )?(\\(|\\w+ =>)`,
  ];
  return new RegExp(named.join('|'), 'm');
}

/**
 * Whether a step follows from earlier ones: the path returns to its file, or one of their files names its first function or creates its
 * class, or its file has given one of them a callback.
 */
function follows({ file, functions: [name = ''] }: Step, earlier: readonly Step[]): boolean {
  const before = earlier.map((step) => step.file);
  const isImport = (from: readonly string[], to: readonly string[]): boolean =>
    imports.some((entry) => from.includes(entry.file) && to.includes(resolved(entry)));
  if (before.includes(file)) return true;
  if (name === 'constructor') return isImport(before, [file]);
  if (name.startsWith('#')) return isImport([file], before);
  return before.some((other) => new RegExp(`\\b${name}\\b`).test(codeOf(other)));
}

/** The text of a file without its comments. */
function codeOf(file: string): string {
  return readFileSync(`${ROOT}/${file}`, 'utf8').replace(/\/\*.*?\*\/|\/\/ [^\n]*/gs, '');
}

t.test('the steps of the documented paths exist, and each follows from an earlier one', async (t) => {
  const titles = [...DOCUMENT.matchAll(/^### (One .*)$/gm)];
  t.equal(titles.length, 4);
  const paths = DOCUMENT.split(/^\| step \|/m)
    .map(stepsOf)
    .slice(1);
  t.ok(paths.length > titles.length, `${paths.length} tables`);
  for (const [n, steps] of paths.entries()) {
    t.ok(steps.length > 5, `table ${n + 1} has ${steps.length} steps`);
    for (const [i, step] of steps.entries()) {
      for (const name of step.functions) t.match(codeOf(step.file), declarationOf(name), `${step.file} declares ${name}`);
      t.ok(i === 0 || follows(step, steps.slice(0, i)), `table ${n + 1}, step ${i + 1}: an earlier step leads to ${step.file}`);
    }
  }
});

t.test('the decisions in core import nothing but each other', async (t) => {
  const isHost = (path: string): boolean => /^src\/core\/(files|platform)\//.test(path);
  const decisions = imports.filter(({ file }) => moduleOf(file) === 'core' && !isHost(file));
  t.ok(decisions.length > 10, `${decisions.length} imports`);
  t.same(
    decisions.filter((entry) => !entry.target.startsWith('.') || isHost(resolved(entry))),
    [],
  );
});

t.test('there are no import cycles, including those of types', async (t) => {
  const known = new Set(sources);
  const within = (file: string): string[] => imports.filter((entry) => entry.file === file && entry.target.startsWith('.')).map(resolved);
  const graph = new Map(sources.map((file) => [file, within(file).filter((target) => known.has(target))]));
  const done = new Set<string>();
  const walk = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) t.fail(`cycle: ${[...path.slice(path.indexOf(file)), file].join(' → ')}`);
    if (done.has(file) || path.includes(file)) return;
    for (const next of graph.get(file) ?? []) walk(next, [...path, file]);
    done.add(file);
  };
  for (const file of sources) walk(file, []);
  t.equal(done.size, sources.length, 'every file was walked');
});

t.test('the hot path and the command line do not import heavy modules', async (t) => {
  // Each was measured: zx 24 MB, node:fs/promises 3 MB, node:https with TLS 3 MB, prom-client 6 MB; systeminformation belongs to its own program.
  const heavy = ['zx', 'node:fs/promises', 'fs/promises', 'node:https', 'node:tls', 'prom-client', 'systeminformation'];
  const found = imports.filter(
    ({ file, target }) =>
      heavy.includes(target) && !['ops', ...TEST_PROGRAMS].includes(moduleOf(file)) && file !== 'src/system/inventory-program.ts',
  );
  t.same(found, []);
});
