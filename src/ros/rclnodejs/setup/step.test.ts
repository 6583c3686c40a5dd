import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../../../testkit/folder.ts';
import { runCommand, SetupFailed } from './step.ts';

function shell(t: Test, script: string, program = '/bin/sh') {
  const root = temporaryFolder(t);
  return { program, arguments: ['-c', script], folder: root, environment: process.env, logFile: join(root, 'setup.log') };
}

t.test('output is written to the log', async (t) => {
  const command = shell(t, 'echo out; echo err >&2; pwd');
  await runCommand('speaking', command);
  await runCommand('speaking again', { ...command, arguments: ['-c', 'echo more'] });
  t.equal(readFileSync(command.logFile, 'utf8'), `out\nerr\n${command.folder}\nmore\n`);
});

t.test('a failure shows the first error and names the log', async (t) => {
  const command = shell(
    t,
    'echo fine; for i in 1 2 3; do echo line $i; done; echo "x.cpp:3: error: no such thing"; echo "   3 | thing"; exit 2',
  );
  const error = await runCommand('compiling', command).catch((problem: Error) => problem);
  t.type(error, SetupFailed);
  t.equal(
    (error as Error).message,
    `compiling failed (exit code 2):\n  x.cpp:3: error: no such thing\n     3 | thing\nFull output: ${command.logFile}`,
  );
});

t.test('a failure without an error line shows the last lines', async (t) => {
  const command = shell(t, 'for i in $(seq 100); do echo line $i; done; exit 1');
  const error = (await runCommand('working', command).catch((problem: Error) => problem)) as Error;
  t.match(error.message, /line 100/);
  t.notMatch(error.message, /line 80/);
});

t.test('output of earlier commands is not shown', async (t) => {
  const command = shell(t, 'echo "error: of the first"; exit 1');
  await runCommand('first', command).catch(() => undefined);
  const error = (await runCommand('second', { ...command, arguments: ['-c', 'echo second; exit 1'] }).catch(
    (problem: Error) => problem,
  )) as Error;
  t.notMatch(error.message, /of the first/);
});

t.test('a killed program and a missing one are reported', async (t) => {
  await t.rejects(runCommand('hanging', shell(t, 'kill -9 $$')), /hanging failed \(SIGKILL\)/);
  await t.rejects(runCommand('calling', shell(t, '', '/nonexistent/cmake')), /\/nonexistent\/cmake cannot be started/);
});
