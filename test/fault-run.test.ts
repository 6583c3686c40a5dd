/** The command of the fault run, as far as it needs no container. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { type FaultRun, renderPage } from './faults/support/report.ts';

const run = (...args: string[]) =>
  spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', 'test/faults/run.ts', ...args], { encoding: 'utf8' });

t.test('the list contains every fault of the published run, with the expected result', async (t) => {
  const { status, stdout } = run('--list');
  t.equal(status, 0);
  const lines = stdout.trim().split('\n');
  const faults = lines.map((line) => /^([a-z][a-z0-9-]*) \([a-z]+(?:, core)?\): .{20,}$/.exec(line)?.[1]);
  t.equal(new Set(faults).size, lines.length, 'no name twice');
  const published = JSON.parse(readFileSync('docs/develop/reports/faults/faults.json', 'utf8')) as FaultRun;
  t.same(
    published.faults.map(({ fault }) => fault.name).filter((name) => !faults.includes(name)),
    [],
  );
  t.equal(
    readFileSync('docs/develop/reports/faults/faults.md', 'utf8'),
    renderPage(published),
    'the published page is made of its figures',
  );
});

t.test('wrong usage is refused with the usage', async (t) => {
  t.match(run('sharks'), { status: 64, stderr: /no fault or family is called "sharks"[\s\S]*Usage: npm run faults/ });
  t.match(run('--suite', 'sarge'), { status: 64, stderr: /allowed: bookworm, trixie/ });
});

t.test('a page lists the checks that failed', async (t) => {
  const published = JSON.parse(readFileSync('docs/develop/reports/faults/faults.json', 'utf8')) as FaultRun;
  const [first, second] = published.faults;
  if (!first?.result || !second) throw new Error('there are too few faults');
  const result = {
    ...first.result,
    passed: false,
    checks: [{ what: 'it serves', holds: false, found: 'no | response' }],
    targets: [{ what: 'within 1 s', met: false, found: '2 s' }],
    journal: 'last line',
  };
  const page = renderPage({
    ...published,
    faults: [
      { ...first, result },
      { ...second, result: null },
    ],
  });
  t.match(page, /^1 faults .*: 1 FAILED; 1 targets not met on this machine; not run: /m);
  t.match(page, `| ${first.fault.name} |`);
  t.match(page, '| **FAILED** |');
  t.match(page, '- **does not hold**: it serves (no \\| response)');
  t.match(page, '- target **not met**: within 1 s (2 s)');
  t.match(page, 'last line');
  t.notMatch(page, `### ${second.fault.name}`);
});
