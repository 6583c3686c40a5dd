import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import type { Job, JobContext, JobResult } from '../lib/job.ts';
import { leftRuns, runInOwnProcess } from './manual-run.ts';

const given = { options: {}, positionals: [] };
const contextOf = (dataFolder: string, signal = new AbortController().signal): JobContext =>
  ({ dataFolder, signal, trigger: 'manual', nowMs: Date.now, log: () => undefined }) as unknown as JobContext;
const programOf = (name: string, run: () => Promise<JobResult>): Job => ({ name, run }) as unknown as Job;

t.test('a manual run is left for the scheduler', async (t) => {
  const data = temporaryFolder(t);
  const failed: JobResult = { status: 'CRITICAL', lines: ['CRITICAL  disk full'], document: null };
  t.equal(
    await runInOwnProcess(
      programOf('list', async () => failed),
      contextOf(data),
      given,
    ),
    failed,
  );
  t.equal(leftRuns(data).size, 0, 'no job, nothing left');
  await runInOwnProcess(
    programOf('backup_logs', async () => failed),
    contextOf(data),
    given,
  );
  t.match(
    [...leftRuns(data).values()],
    [{ name: 'backup_logs', run: { status: 'CRITICAL', trigger: 'manual', lines: ['CRITICAL  disk full'] } }],
  );
  const thrown = runInOwnProcess(
    programOf('health_check', async () => {
      throw new Error('unexpected');
    }),
    contextOf(data),
    given,
  );
  await t.rejects(thrown, /unexpected/);
  t.match([...leftRuns(data).values()].at(-1), { name: 'health_check', run: { status: 'UNKNOWN', lines: [/unexpected/] } });
  await runInOwnProcess(
    programOf('backup_logs', async () => failed),
    contextOf(data, AbortSignal.abort()),
    given,
  );
  t.equal(leftRuns(data).size, 2, 'a run stopped by hand is no failure');
});

t.test('on a disk that cannot be written, health_check runs, and other jobs fail with the cause', async (t) => {
  const data = temporaryFolder(t);
  writeFileSync(join(data, 'ops'), ''); // No folder of that name can be made.
  const done: JobResult = { status: 'WARNING', lines: ['WARNING'], document: null };
  const check = programOf('health_check', async () => done);
  t.equal(await runInOwnProcess(check, contextOf(data), given), done);
  const metrics = programOf('collect_metrics', async () => {
    throw new Error('it has no lock');
  });
  await t.rejects(runInOwnProcess(metrics, contextOf(data), given), { code: 'ENOTDIR' });
});

const CHILD = `
const { runInOwnProcess } = await import(process.argv[1]);
const { existsSync } = await import('node:fs');
const dataFolder = process.argv[2];
const run = async () => {
  process.stdout.write('begun\\n');
  while (!existsSync(dataFolder + '/go')) await new Promise((later) => setTimeout(later, 20));
  return { status: 'OK', lines: ['OK'], document: null };
};
const context = { dataFolder, signal: new AbortController().signal, trigger: process.argv[3], nowMs: Date.now, log: console.error };
await runInOwnProcess({ name: 'backup_logs', run }, context, { options: {}, positionals: [] });
`;

t.test('a child of the scheduler leaves its run only if it outlives the scheduler', async (t) => {
  for (const outlives of [true, false]) {
    const data = temporaryFolder(t);
    const argv = [
      '--disable-warning=ExperimentalWarning',
      '--input-type=module',
      '-e',
      CHILD,
      import.meta.resolve('./manual-run.ts'),
      data,
      'catch_up',
    ];
    // A shell takes the part of the scheduler.
    const parent = spawn('/bin/sh', ['-c', `"$0" "$@" & wait`, process.execPath, ...argv], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(parent.stdout, 'data');
    const ended = once(parent.stdout, 'close');
    if (outlives) {
      const gone = once(parent, 'exit');
      parent.kill('SIGKILL');
      await gone;
    }
    writeFileSync(join(data, 'go'), '');
    parent.stdout.resume();
    await ended;
    t.ok(existsSync(join(data, 'ops')));
    const left = [...leftRuns(data).values()];
    if (outlives) t.match(left, [{ name: 'backup_logs', run: { status: 'OK', trigger: 'catch_up' } }]);
    else t.same(left, []);
  }
});

t.test('a run for another machine is not recorded as one of this machine', async (t) => {
  const data = temporaryFolder(t);
  const failed: JobResult = { status: 'CRITICAL', lines: ['CRITICAL  1 check'], document: null };
  const otherMachine = { options: { url: 'http://robot-7:5000' }, positionals: [] };
  const check = programOf('health_check', async () => failed);
  t.equal(await runInOwnProcess(check, contextOf(data), otherMachine), failed);
  t.notOk(existsSync(join(data, 'ops')), 'neither a lock nor a run');
  const collect = programOf('collect_metrics', async () => failed);
  t.equal(await runInOwnProcess(collect, contextOf(data), otherMachine), failed);
  t.ok(existsSync(join(data, 'ops')), 'it writes files here: with the lock');
  t.equal(leftRuns(data).size, 0);
});
