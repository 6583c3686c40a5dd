import { type ChildProcess, type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import type { OpsDocument } from '../../src/http/api/ops-schema.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { NotifySocket } from '../../testkit/service/notify-socket.ts';
import { ROOT, RunningService } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

const folder = temporaryFolder(t);
const data = join(folder, 'data');
const runtime = join(folder, 'ops-run');
const config = join(folder, 'ops.yaml');
const durable = join(data, 'ops/jobs.json');
/** Half a day from now, so that it does not become due while the test runs. */
const NIGHTLY = `0 ${(new Date().getUTCHours() + 12) % 24} * * *`;
mkdirSync(runtime);

const ENVIRONMENT = {
  ...process.env,
  NODE_OPTIONS: undefined,
  NOTIFY_SOCKET: undefined,
  WATCHDOG_USEC: undefined,
  RUNTIME_DIRECTORY: runtime,
};

/** `edge-health ops run` in a process of its own. */
class RunningScheduler {
  readonly process: ChildProcess;
  log = '';

  constructor(environment: NodeJS.ProcessEnv = {}) {
    this.process = spawn(join(ROOT, 'bin/edge-health'), ['ops', 'run', '--config', config], {
      stdio: ['ignore', 'inherit', 'pipe'],
      env: { ...ENVIRONMENT, ...environment },
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.log += text;
    });
  }

  async logged(pattern: RegExp): Promise<void> {
    await until(`the log has ${pattern}`, () => pattern.test(this.log), { describe: () => this.log });
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
    if (this.process.exitCode !== null) return this.process.exitCode;
    const exited = once(this.process, 'exit') as Promise<[number | null, string | null]>;
    this.process.kill(signal);
    const [code, by] = await exited;
    return code ?? by ?? -1;
  }
}

let scheduler: RunningScheduler | null = null;
t.teardown(() => scheduler?.end('SIGKILL'));

/** Runs an operations command to its end. */
const ops = (...argv: string[]): SpawnSyncReturns<string> =>
  spawnSync(join(ROOT, 'bin/edge-health'), ['ops', ...argv, '--config', config], { encoding: 'utf8', env: ENVIRONMENT });

function writeConfig(changes: Readonly<Record<string, unknown>> = {}): void {
  const settings = { timezone: 'UTC', backup_logs: NIGHTLY, ...changes };
  const rest = { host: '127.0.0.1', port: 0 };
  const alerts = { raise_after_seconds: 3600 };
  writeFileSync(config, JSON.stringify({ storage: { path: data }, rest, alerts, ros: { transport: 'off' }, ops: settings }));
}
writeConfig();
// The last --config applies.
const service = await RunningService.start(folder, { dataPath: data, arguments: ['--config', config] });
t.teardown(() => service.end());

interface Status {
  readonly ops: OpsDocument;
}
const jobOf = ({ ops }: Status, name: string) => ops.jobs.find((job) => job.name === name) as OpsDocument['jobs'][number];
const statusWith = (satisfied: (status: Status) => boolean) => service.until<Status>('/status', satisfied);

t.test('the scheduler starts with a torn state, logs that, and reports to the service manager', async (t) => {
  mkdirSync(join(data, 'ops'), { recursive: true });
  writeFileSync(durable, '{"scheduler": {"state": "runn');
  const socket = await NotifySocket.listen(t);
  scheduler = new RunningScheduler({ NOTIFY_SOCKET: socket.path, WATCHDOG_USEC: '2000000' });
  await scheduler.logged(/notice: the scheduler of edge-health .* is running/);
  t.match(scheduler.log, /warning: job state unreadable, quarantined/);
  t.ok(existsSync(`${durable}.damaged`));
  await socket.waitFor(({ state }) => state['READY'] === '1' && state['WATCHDOG'] === '1');
  t.match((await socket.waitFor(({ state }) => 'STATUS' in state)).state['STATUS'], /^4 jobs; .*next: \w+ \d\d:\d\d$/);
  const before = socket.having('WATCHDOG').length;
  await until('further pings', () => socket.having('WATCHDOG').length >= before + 2);
  t.equal(dirname(realpathSync(join(data, 'ops/live'))), realpathSync(runtime));
  await statusWith(({ ops }) => ops.scheduler.state === 'running');
  t.equal(await scheduler.end(), 0);
  await socket.waitFor(({ state }) => state['STOPPING'] === '1');
  t.equal((JSON.parse(readFileSync(durable, 'utf8')) as OpsDocument).scheduler.state, 'stopped');
  await statusWith(({ ops }) => ops.scheduler.state === 'stopped');
});

t.test('after three nights switched off a missed run is caught up once, and shown', async (t) => {
  writeConfig({ catch_up: ['backup_logs', 'health_check'] });
  const document = JSON.parse(readFileSync(durable, 'utf8')) as OpsDocument;
  const off = new Date(Date.now() - 3 * 86_400_000).toISOString();
  rmSync(join(data, 'ops/live/jobs.json'));
  writeFileSync(
    durable,
    JSON.stringify({
      ...document,
      scheduler: { ...document.scheduler, beat: off },
      jobs: document.jobs.map((job) => ({ ...job, missed: 0, next: null })),
    }),
  );
  scheduler = new RunningScheduler();
  await scheduler.logged(/is running/);

  const second = ops('run');
  t.equal(second.status, 3);
  t.match(second.stderr, `another scheduler uses the data folder ${data}; stop that one, or set another storage.path`);

  // Its scheduled run, every five minutes, may be in progress: then it exits with 3.
  const byHand = await until('a run by hand', () => {
    const run = ops('collect_alerts');
    return run.status === 3 ? null : run;
  });
  t.equal(byHand.status, 0, byHand.stdout + byHand.stderr);

  const status = await statusWith((now) => jobOf(now, 'backup_logs').last !== null && jobOf(now, 'health_check').last !== null);
  const backup = jobOf(status, 'backup_logs');
  t.match(backup, { missed: 3, runs: 1, failures: 0, running_since: null, last: { trigger: 'catch_up', status: /^(OK|WARNING)$/ } });
  t.match(jobOf(status, 'health_check').last, { trigger: /^(catch_up|schedule)$/ });
  t.ok(jobOf(status, 'collect_metrics').missed >= 3 * 1440 - 1);
  const taken = await statusWith((now) => jobOf(now, 'collect_alerts').runs > 0);
  t.match(jobOf(taken, 'collect_alerts').last, { status: 'OK', exit_code: 0, trigger: /^(manual|schedule)$/ }, 'a run by hand is counted');
  t.ok(Date.parse(backup.next ?? '') > Date.now());
  t.match(scheduler.log, /warning: run missed, catch-up pending job=backup_logs times=3/);
});

t.test('after a kill and a restart the scheduler has lost nothing and repeats nothing', async (t) => {
  t.equal(await scheduler?.end('SIGKILL'), 'SIGKILL');
  const before = (await service.json<Status & Record<string, unknown>>('/status')) as Status;
  scheduler = new RunningScheduler();
  await scheduler.logged(/is running/);
  const after = await statusWith(({ ops }) => ops.scheduler.started !== before.ops.scheduler.started);
  t.match(jobOf(after, 'backup_logs'), { missed: 3, runs: 1, last: { started: jobOf(before, 'backup_logs').last?.started } });
  t.match(after.ops.scheduler, { state: 'running' });
});

t.test('SIGHUP with an invalid configuration changes nothing; with a valid one it applies', async (t) => {
  const running = scheduler as RunningScheduler;
  writeFileSync(config, 'ops: {backup_logs: "0 25 * * *"}');
  running.process.kill('SIGHUP');
  await running.logged(/error: not reloaded: the running configuration stays in force/);
  t.equal(jobOf(await service.json<Status & Record<string, unknown>>('/status'), 'backup_logs').schedule, NIGHTLY);
  writeConfig({ backup_logs: '30 2 * * *', notify: { command: '/bin/true' } });
  running.process.kill('SIGHUP');
  await running.logged(/notice: configuration reloaded/);
  t.match(jobOf(await statusWith((now) => jobOf(now, 'backup_logs').schedule === '30 2 * * *'), 'backup_logs').next, /T02:30:00\.000Z$/);
  await statusWith(({ ops }) => ops.notifications?.alerts === 'stream');
});

t.test('SIGINT stops the scheduler, and list shows that', async (t) => {
  t.equal(await scheduler?.end('SIGINT'), 0);
  await service.end();
  const list = ops('list');
  t.equal(list.status, 3);
  t.match(list.stdout, /no scheduler runs: the last beat was/);
  t.match(list.stdout, /\nbackup_logs +30 2 \* \* \* .* (OK|WARNING) +catch_up /, 'also while the service is down');
});
