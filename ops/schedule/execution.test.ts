import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { DEFAULT_CONFIG } from '../../src/config/schema.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';
import type { Job, JobContext } from '../lib/job.ts';
import { asChild, inProcess, type RunResult } from './execution.ts';
import { lockNamed } from './job-lock.ts';

const folder = temporaryFolder(t);

const log: string[] = [];
/** A program in place of that of edge-health. */
function child(text: string, graceSeconds = 5) {
  const file = join(folder, `${Math.random().toString(36).slice(2)}.sh`);
  writeFileSync(file, text);
  return asChild((name, trigger) => ['/bin/sh', file, name, '--trigger', trigger, '--config', 'robot.yaml'], {
    environment: { ...process.env, NOTIFY_SOCKET: '/run/x', WATCHDOG_USEC: '1' },
    graceSeconds,
    onLogLine: (line) => log.push(line),
  });
}
const never = new AbortController().signal;
const isAlive = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

t.test('the output and the exit status of a child process give the result', async (t) => {
  t.same(
    await child('echo "$@"; env | grep -cE "^(NOTIFY_SOCKET|WATCHDOG_USEC)="; echo "warning: careful" >&2; exit 1')(
      'backup_logs',
      'catch_up',
      never,
    ),
    {
      status: 'WARNING',
      lines: ['backup_logs --trigger catch_up --config robot.yaml', '0'],
    },
  );
  t.ok(log.includes('warning: careful'), 'its log goes on');
  t.same(await child('echo "error: disk full" >&2; exit 2')('backup_logs', 'schedule', never), {
    status: 'CRITICAL',
    lines: ['disk full'],
  });
  t.equal(await child('exit 75')('backup_logs', 'schedule', never), 'busy');
  t.same(await child('echo half; exit 9')('backup_logs', 'schedule', never), {
    status: 'UNKNOWN',
    lines: ['half', 'UNKNOWN   backup_logs ended with exit status 9'],
    failed: true,
  });
  t.match(await child('kill -SEGV $$')('backup_logs', 'schedule', never), { status: 'UNKNOWN', lines: [/ended by SIGSEGV/] });
  const missing = asChild(() => ['/nowhere/node'], { environment: {}, onLogLine: () => undefined });
  t.match(await missing('backup_logs', 'schedule', never), { status: 'UNKNOWN', lines: [/cannot be started: .*ENOENT/] });
  const many = (await child('seq 1 100000')('backup_logs', 'schedule', never)) as RunResult;
  t.equal(many.lines.at(-1), '100000');
  t.equal(many.lines.length, 50);
});

t.test('SIGTERM reaches the whole process group', async (t) => {
  const ending = new AbortController();
  const file = join(folder, 'pids');
  const ended = child(`trap 'echo tidied; exit 2' TERM; sleep 600 & echo $! > '${file}'; wait`)('backup_logs', 'schedule', ending.signal);
  await until('its child runs', () => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'));
  ending.abort();
  t.same(await ended, { status: 'CRITICAL', lines: ['tidied'] });
  await until('its child is gone', () => !isAlive(Number(readFileSync(file, 'utf8'))));
});

t.test('a child that ignores SIGTERM is killed, with its group', async (t) => {
  const ending = new AbortController();
  const file = join(folder, 'stubborn');
  const ended = child(`trap '' TERM; (trap '' TERM; exec sleep 600) & echo $! > '${file}'; while :; do sleep 1; done`, 0.3)(
    'backup_logs',
    'schedule',
    ending.signal,
  );
  await until('its child runs', () => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'));
  ending.abort();
  t.match(await ended, { status: 'UNKNOWN', lines: [/ended by SIGKILL/] });
  await until('its child is gone', () => !isAlive(Number(readFileSync(file, 'utf8'))));
});

t.test('a job can run within this process', async (t) => {
  const context = { config: DEFAULT_CONFIG, dataFolder: folder } as JobContext;
  let outcome: () => Promise<{ status: 'OK'; lines: string[]; document: null }> = async () => ({
    status: 'OK',
    lines: ['fine'],
    document: null,
  });
  const program = { run: async ({ trigger }: JobContext) => ({ ...(await outcome()), lines: [trigger] }) } as unknown as Job;
  const run = inProcess(
    async () => program,
    () => context,
  );
  t.same(await run('health_check', 'schedule', never), { status: 'OK', lines: ['schedule'] });

  const lock = lockNamed(folder, 'health_check');
  t.equal(await run('health_check', 'schedule', never), 'busy', 'another process runs it');
  lock?.release();

  const [begun, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  outcome = async () => {
    begun.resolve();
    await finish.promise;
    return { status: 'OK', lines: [], document: null };
  };
  const slow = run('health_check', 'schedule', never);
  await begun.promise;
  t.equal(lockNamed(folder, 'health_check'), null, 'and no other process can run it meanwhile');
  finish.resolve();
  await slow;
  outcome = async () => {
    throw new Error('unexpected');
  };
  t.same(await run('health_check', 'schedule', never), { status: 'UNKNOWN', lines: ['UNKNOWN   health_check: unexpected'], failed: true });
  const after = lockNamed(folder, 'health_check');
  t.ok(after, 'the lock is free after all of it');
  after?.release();
  const blocked = join(folder, 'blocked');
  mkdirSync(blocked);
  writeFileSync(join(blocked, 'ops'), '');
  const unwritable = inProcess(
    async () => program,
    () => ({ ...context, dataFolder: blocked }),
  );
  outcome = async () => ({ status: 'OK', lines: [], document: null });
  t.match(await unwritable('collect_alerts', 'schedule', never), { status: 'CRITICAL', lines: [/collect_alerts: .*; move it away$/] });
  t.match(await unwritable('health_check', 'schedule', never), { status: 'OK' }, 'it reports the disk');

  const broken = inProcess(
    async () => program,
    () => {
      throw new Error('no token');
    },
  );
  t.match(await broken('health_check', 'schedule', never), { status: 'UNKNOWN', lines: [/no token/] });
});
