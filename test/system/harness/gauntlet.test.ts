import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { FAULTS } from '../../../harness/gauntlet/faults/index.ts';
import type { Gauntlet } from '../../../harness/gauntlet/table.ts';
import { containersUnavailable } from '../../../testkit/container/images.ts';
import { peersUnavailable } from '../../../testkit/dds/peers.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { ROOT } from '../../../testkit/service.ts';

// The core of the gauntlet against this checkout's package. `npm run gauntlet` tries all of it.

t.setTimeout(900_000);
const skip = containersUnavailable() || peersUnavailable();
const PROGRAM = join(ROOT, 'harness/gauntlet/main.ts');

async function gauntlet(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', PROGRAM, ...args], { cwd: ROOT });
  const said = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      said[stream] += text;
      if (stream === 'stderr') for (const line of text.trimEnd().split('\n')) t.comment(line);
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...said };
}

t.test('the faults are told apart, and told', async (t) => {
  const names = FAULTS.map(({ name }) => name);
  t.equal(new Set(names).size, names.length, 'no name twice');
  for (const { name, expected } of FAULTS) t.ok(/^[a-z][a-z0-9-]*$/.test(name) && expected.length > 20, name);
  const { code, stdout } = await gauntlet('--list');
  t.equal(code, 0);
  for (const name of names) t.match(stdout, `${name} (`);
  t.match(await gauntlet('--only', 'sharks'), { code: 64, stderr: /no fault nor group "sharks"/ });
  t.match(await gauntlet('--suite', 'sarge'), { code: 64, stderr: /bookworm, trixie/ });
});

t.test('the installed package holds in the core', { skip }, async (t) => {
  const folder = temporaryFolder(t);
  const { code, stdout } = await gauntlet('--core', '--out', folder);
  const { tried, untried, machine } = JSON.parse(readFileSync(join(folder, 'gauntlet.json'), 'utf8')) as Gauntlet;
  t.equal(code, 0);
  t.same(untried, []);
  t.same(
    tried.map(({ fault }) => fault.name).sort(),
    FAULTS.filter(({ core }) => core)
      .map(({ name }) => name)
      .sort(),
  );
  for (const { fault, observation } of tried) {
    const failed = observation.checks.filter(({ holds }) => !holds);
    t.ok(observation.held, `${fault.name}: ${observation.observed}`, { failed, error: observation.error, journal: observation.journal });
    t.ok(observation.checks.length >= 3, `${fault.name}: ${observation.checks.length} things had to hold`);
  }
  t.ok(machine.cores > 0);
  t.ok(existsSync(join(folder, 'gauntlet.md')));
  const rows = stdout.split('\n').filter((line) => line.startsWith('| '));
  t.match(rows[0], /fault \| expected \| observed \| recovery, s \| samples lost \| alerts lost/);
  t.equal(rows.length, tried.length + 1, 'a row each');
});

t.test('interrupted, it takes its machines away', { skip }, async (t) => {
  const folder = temporaryFolder(t);
  const child = spawn(process.execPath, [PROGRAM, '--only', 'sigstop', '--out', folder], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const containers = (): string[] => namespacesOf(child.pid as number);
  const ended = once(child, 'exit');
  while (containers().length === 0) {
    if (child.exitCode !== null) throw new Error(`it ended:\n${said}`);
    await new Promise((later) => setTimeout(later, 50));
  }
  // Somewhere in the boot, or in the fault.
  await new Promise((later) => setTimeout(later, 3000));
  child.kill('SIGINT');
  t.same(await ended, [2, null], said);
  t.same(containers(), []);
  t.match(JSON.parse(readFileSync(join(folder, 'gauntlet.json'), 'utf8')), { tried: [], untried: ['sigstop'] });
});

/** Network namespaces of test/support that a process made. */
function namespacesOf(pid: number): string[] {
  return existsSync('/run/netns') ? readdirSync('/run/netns').filter((name) => name.startsWith(`ehtest-${pid}-`)) : [];
}
