import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';

const ROOT = join(import.meta.dirname, '../..');
const run = (...files: readonly string[]) =>
  spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', 'scripts/tests/run.ts', ...files], { cwd: ROOT, encoding: 'utf8' });

t.test('a misspelled file is wrong usage, and a failure is counted once', async (t) => {
  const { status, stderr, stdout } = run('missing.test.ts');
  t.match({ status, stderr, stdout }, { status: 64, stderr: /^npm test: no such file: missing\.test\.ts; /, stdout: /^$/ });

  const file = join(t.testdir(), 'fails.test.ts');
  writeFileSync(file, `process.stdout.write('TAP version 14\\n1..1\\nnot ok 1 - broken\\n'); process.exitCode = 1;`);
  t.match(run(file).stdout, /\n0 passed, 1 failed\n$/);
});
