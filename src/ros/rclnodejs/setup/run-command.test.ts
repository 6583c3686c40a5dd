import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../../../testkit/folder.ts';
import { runCommand, SetupFailed } from './run-command.ts';

function workspace(t: Test) {
  const folder = temporaryFolder(t);
  const work = { folder, environment: process.env, logFile: join(folder, 'setup.log') };
  return {
    ...work,
    run: (what: string, script: string): Promise<void> => runCommand(work, what, '/bin/sh', ['-c', script]),
    log: (): string => readFileSync(work.logFile, 'utf8'),
  };
}

const failure = (run: Promise<void>): Promise<Error> =>
  run.then(
    () => new Error('it did not fail'),
    (error: Error) => error,
  );

t.test('output is written to the log', async (t) => {
  const { folder, log, run } = workspace(t);
  await run('speaking', 'echo out; echo err >&2; pwd');
  await run('speaking again', 'echo more');
  t.equal(log(), `out\nerr\n${folder}\nmore\n`);
});

t.test('a program may run in another folder and environment', async (t) => {
  const work = workspace(t);
  await runCommand(work, 'speaking', '/bin/sh', ['-c', 'pwd; echo $WORD'], { folder: '/', environment: { WORD: 'hello' } });
  t.equal(work.log(), '/\nhello\n');
});

t.test('a failure shows the first error and names the log', async (t) => {
  const { logFile, run } = workspace(t);
  const script = 'echo fine; for i in 1 2 3; do echo line $i; done; echo "x.cpp:3: error: no such thing"; echo "   3 | thing"; exit 2';
  const error = await failure(run('compiling', script));
  t.type(error, SetupFailed);
  t.equal(error.message, `compiling failed (exit code 2):\n  x.cpp:3: error: no such thing\n     3 | thing\nFull output: ${logFile}`);
});

t.test('a failure without an error line shows the last lines', async (t) => {
  const { message } = await failure(workspace(t).run('working', 'for i in $(seq 100); do echo line $i; done; exit 1'));
  t.match(message, /line 100/);
  t.notMatch(message, /line 80/);
});

t.test('output of earlier commands is not shown', async (t) => {
  const { run } = workspace(t);
  await failure(run('first', 'echo "error: of the first"; exit 1'));
  const { message } = await failure(run('second', 'echo second; exit 1'));
  t.match(message, /second/);
  t.notMatch(message, /of the first/);
});

t.test('a killed program and a missing one are reported', async (t) => {
  const work = workspace(t);
  await t.rejects(work.run('hanging', 'kill -9 $$'), /hanging failed \(SIGKILL\)/);
  await t.rejects(runCommand(work, 'calling', '/nonexistent/cmake', []), /\/nonexistent\/cmake cannot be started/);
});
