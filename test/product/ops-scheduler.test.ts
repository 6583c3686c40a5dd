import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { OpsDocument } from '../../src/http/api/ops-schema.ts';
import { NotifySocket } from '../../testkit/notify-socket.ts';
import { ROOT, RunningService, temporaryFolder } from '../../testkit/service.ts';

const folder = temporaryFolder();
const data = join(folder.path, 'data');
const runtime = join(folder.path, 'run');
const config = join(folder.path, 'ops.yaml');
const durable = join(data, 'ops/jobs.json');
/** Half a day away from now: it falls due in no test. */
const NIGHTLY = `0 ${(new Date().getUTCHours() + 12) % 24} * * *`;
mkdirSync(runtime);

/** `edge-health ops run` in a process of its own. */
class RunningScheduler {
  readonly process: ChildProcess;
  log = '';

  constructor(environment: NodeJS.ProcessEnv = {}) {
    this.process = spawn(join(ROOT, 'bin/edge-health'), ['ops', 'run', '--config', config], {
      stdio: ['ignore', 'inherit', 'pipe'],
      env: { ...process.env, RUNTIME_DIRECTORY: runtime, ...environment },
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.log += text;
    });
  }

  async logged(pattern: RegExp, seconds = 20): Promise<void> {
    const deadline = Date.now() + seconds * 1000;
    while (!pattern.test(this.log)) {
      if (Date.now() > deadline) throw new Error(`the log has no ${pattern}:\n${this.log}`);
      await new Promise((later) => setTimeout(later, 50));
    }
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
    if (this.process.exitCode !== null) return this.process.exitCode;
    const exited = once(this.process, 'exit') as Promise<[number | null, string | null]>;
    this.process.kill(signal);
    const [code, by] = await exited;
    return code ?? by ?? -1;
  }
}

let service: RunningService;
let scheduler: RunningScheduler | null = null;
t.before(async () => {
  service = await RunningService.start(folder.path, { dataPath: data });
  const port = Number(new URL(service.url).port);
  writeConfig({ port });
});
t.teardown(async () => {
  await scheduler?.end('SIGKILL');
  await service.end();
  folder.remove();
});

function writeConfig({ port, ...ops }: { readonly port: number; readonly [key: string]: unknown }): void {
  writeFileSync(
    config,
    JSON.stringify({ storage: { path: data }, rest: { host: '127.0.0.1', port }, ops: { timezone: 'UTC', backup_logs: NIGHTLY, ...ops } }),
  );
}
const portNow = (): number => Number(new URL(service.url).port);

interface Status {
  readonly ops: OpsDocument;
}
const jobOf = ({ ops }: Status, name: string) => ops.jobs.find((job) => job.name === name) as OpsDocument['jobs'][number];
const statusWith = (satisfied: (status: Status) => boolean, seconds?: number) => service.until<Status>('/status', satisfied, seconds);

t.test('it starts with a torn state, says so, and tells the service manager how it is', async (t) => {
  mkdirSync(join(data, 'ops'), { recursive: true });
  writeFileSync(durable, '{"scheduler": {"state": "runn');
  const socket = await NotifySocket.listen(folder.path);
  t.teardown(() => socket.close());
  scheduler = new RunningScheduler({ NOTIFY_SOCKET: socket.path, WATCHDOG_USEC: '2000000' });
  await scheduler.logged(/<5>the scheduler of edge-health .* is running/);
  t.match(scheduler.log, /<4>the state of the jobs cannot be read; it is set aside/);
  t.ok(existsSync(`${durable}.damaged`));
  await socket.waitFor(({ state }) => state['READY'] === '1' && state['WATCHDOG'] === '1');
  t.match((await socket.waitFor(({ state }) => 'STATUS' in state)).state['STATUS'], /^4 jobs; .*next: \w+ \d\d:\d\d$/);
  const before = socket.having('WATCHDOG').length;
  await new Promise((later) => setTimeout(later, 2000));
  t.ok(socket.having('WATCHDOG').length - before >= 2, 'a ping for each beat');
  t.equal(realpathSync(join(data, 'ops/live')), realpathSync(runtime));
  await statusWith(({ ops }) => ops.scheduler.state === 'running');
  t.equal(await scheduler.end(), 0);
  t.ok(socket.having('STOPPING').length > 0);
  t.equal((JSON.parse(readFileSync(durable, 'utf8')) as OpsDocument).scheduler.state, 'stopped');
  await statusWith(({ ops }) => ops.scheduler.state === 'stopped');
});

t.test('switched off for three nights: what was missed is made up for once, and shown', async (t) => {
  writeConfig({ port: portNow(), make_up_missed: ['backup_logs', 'health_check'] });
  const document = JSON.parse(readFileSync(durable, 'utf8')) as OpsDocument;
  const off = new Date(Date.now() - 3 * 86_400_000).toISOString();
  rmSync(join(runtime, 'jobs.json'), { force: true });
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

  const second = spawnSync(join(ROOT, 'bin/edge-health'), ['ops', 'run', '--config', config], { encoding: 'utf8' });
  t.equal(second.status, 3);
  t.match(second.stderr, `another scheduler uses the data folder ${data}; stop that one, or set another storage.path`);

  const byHand = spawnSync(join(ROOT, 'bin/edge-health'), ['ops', 'collect_alerts', '--config', config], { encoding: 'utf8' });
  t.equal(byHand.status, 0, byHand.stdout + byHand.stderr);

  const status = await statusWith((now) => jobOf(now, 'backup_logs').last !== null && jobOf(now, 'health_check').last !== null, 40);
  const backup = jobOf(status, 'backup_logs');
  t.match(backup, { missed: 3, runs: 1, failures: 0, running_since: null, last: { trigger: 'missed', status: /^(OK|WARNING)$/ } });
  t.match(jobOf(status, 'health_check').last, { trigger: /^(missed|schedule)$/ });
  t.ok(jobOf(status, 'collect_metrics').missed >= 3 * 1440 - 1);
  const taken = await statusWith((now) => jobOf(now, 'collect_alerts').runs > 0, 30);
  t.match(jobOf(taken, 'collect_alerts').last, { status: 'OK', exit_code: 0, trigger: /^(manual|schedule)$/ }, 'a run by hand is taken in');
  t.ok(Date.parse(backup.next ?? '') > Date.now());
  t.match(scheduler.log, /<4>missed; it will be made up for job=backup_logs times=3/);
});

t.test('killed and started again it has forgotten nothing, and repeats nothing', async (t) => {
  t.equal(await scheduler?.end('SIGKILL'), 'SIGKILL');
  const before = (await service.json<Status & Record<string, unknown>>('/status')) as Status;
  scheduler = new RunningScheduler();
  await scheduler.logged(/is running/);
  const after = await statusWith(({ ops }) => ops.scheduler.started !== before.ops.scheduler.started);
  t.match(jobOf(after, 'backup_logs'), { missed: 3, runs: 1, last: { started: jobOf(before, 'backup_logs').last?.started } });
  t.match(after.ops.scheduler, { state: 'running' });
});

t.test('SIGHUP: a wrong configuration changes nothing, a right one does', async (t) => {
  const running = scheduler as RunningScheduler;
  writeFileSync(config, 'ops: {backup_logs: "0 25 * * *"}');
  running.process.kill('SIGHUP');
  await running.logged(/<3>not reloaded: the running configuration stays in force/);
  t.match(running.log, /ops\.backup_logs: found "0 25 \* \* \*"/);
  t.equal(jobOf(await service.json<Status & Record<string, unknown>>('/status'), 'backup_logs').schedule, NIGHTLY);
  writeConfig({ port: portNow(), backup_logs: '30 2 * * *' });
  running.process.kill('SIGHUP');
  await running.logged(/<5>configuration reloaded/);
  t.match(jobOf(await statusWith((now) => jobOf(now, 'backup_logs').schedule === '30 2 * * *'), 'backup_logs').next, /T02:30:00\.000Z$/);
});

t.test('it ends promptly, and list says so', async (t) => {
  const begun = Date.now();
  t.equal(await scheduler?.end('SIGINT'), 0);
  t.ok(Date.now() - begun < 13_000);
  await service.end();
  const list = spawnSync(join(ROOT, 'bin/edge-health'), ['ops', 'list', '--config', config], { encoding: 'utf8' });
  t.equal(list.status, 3);
  t.match(list.stdout, /no scheduler runs: the last beat was/);
  t.match(list.stdout, /\nbackup_logs +30 2 \* \* \* .* (OK|WARNING) +missed /, 'also while the service is down');
});
