import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { OpsDocument } from '../src/client/documents.ts';
import { DEFAULT_CONFIG } from '../src/config/schema.ts';
import { temporaryFolder } from '../testkit/folder.ts';
import { SmallDisk, whyNotMountable } from '../testkit/machine/small-disk.ts';
import { ROOT } from '../testkit/service/service.ts';
import type { JobContext } from './lib/job.ts';
import { list } from './list.ts';
import { lockByHand, lockNamed } from './schedule/job-lock.ts';
import { newRecord } from './schedule/job-records.ts';
import { leftRuns } from './schedule/manual-run.ts';

const EDGE_HEALTH = join(ROOT, 'bin/edge-health');

function installation(t: Test) {
  const folder = temporaryFolder(t);
  const data = join(folder, 'data');
  mkdirSync(data);
  const config = join(folder, 'config.yaml');
  // No service listens on this port.
  writeFileSync(config, JSON.stringify({ storage: { path: data }, rest: { host: '127.0.0.1', port: 1 }, ops: { timezone: 'UTC' } }));
  return { folder, data, config };
}

const ops = (config: string, ...argv: readonly string[]) =>
  spawnSync(EDGE_HEALTH, ['ops', ...argv, '--config', config], { encoding: 'utf8' });

t.test('wrong usage exits with UNKNOWN', async (t) => {
  const { config, data } = installation(t);
  t.match(ops(config, 'collect_metrics', '--url', 'robot'), { status: 3, stderr: /--url is "robot"; allowed: an address such as/ });
  t.equal(leftRuns(data).size, 0, 'and no run of a job');
  t.match(ops(config, 'list', '--trigger', 'whim'), { status: 3, stderr: /--trigger is "whim"; allowed: schedule, catch_up, manual/ });
  t.match(ops(config, 'nothing'), { status: 3, stderr: /unknown command "nothing"; allowed: health_check,/ });
  writeFileSync(config, 'ops: {backup_logs: daily}');
  t.match(ops(config, 'list'), { status: 3, stderr: /ops\.backup_logs: found "daily"/ });
  writeFileSync(config, 'rest: {token_file: /nowhere/token}');
  t.match(
    ops(config, 'list'),
    { stdout: /^job +schedule/m, stderr: /^rest\.token_file cannot be read: ENOENT.*\n$/ },
    'what needs no token works without its file',
  );
});

/** Prefix of a command: root becomes a user who has only the permissions that file modes grant. */
const AS_USER = process.geteuid?.() === 0 ? ['unshare', '--user'] : [];
const cannotBecomeUser = AS_USER.length > 0 && spawnSync('unshare', ['--user', 'true']).status !== 0 && 'no user namespaces here';

t.test('a user without permission gets one line with the path and what to run', { skip: cannotBecomeUser }, async (t) => {
  const { config, data, folder } = installation(t);
  const run = (...argv: readonly string[]) => {
    const [program = '', ...parameters] = [...AS_USER, EDGE_HEALTH, ...argv];
    return spawnSync(program, parameters, { encoding: 'utf8' });
  };
  const refused = (argv: readonly string[], status: number, text: string): void => {
    const { stderr, stdout, ...found } = run(...argv);
    t.equal(found.status, status, argv.join(' '));
    t.ok(`${stdout}${stderr}`.endsWith(`${text}\n`), `${stdout}${stderr}`);
    t.equal(`${stdout}${stderr}`.split('\n').length, 2, 'one line');
  };
  const jobs = ['health_check', 'collect_metrics', 'collect_alerts', 'backup_logs', 'generate_7day_report'];
  const harness = ['status', 'report', 'stop', 'verify'];
  const sudo = (path: string, command: string): string => `permission denied: ${path}; run: sudo edge-health ${command}`;

  mkdirSync(join(data, 'ops'), { recursive: true });
  chmodSync(join(data, 'ops'), 0o500);
  for (const name of jobs)
    refused(['ops', name, '--config', config], 3, `edge-health ops: ${sudo(join(data, 'ops', `${name}.lock`), `ops ${name}`)}`);

  chmodSync(join(data, 'ops'), 0o700);
  mkdirSync(join(data, 'run'));
  chmodSync(data, 0);
  for (const name of jobs) refused(['ops', name, '--config', config], 3, `edge-health ops: ${sudo(join(data, 'ops'), `ops ${name}`)}`);
  refused(['ops', 'list', '--config', config], 3, `${sudo(data, 'ops list')}, or as a member of its group (edge-health on an appliance)`);
  for (const name of harness) {
    const { status, stderr } = run('harness', name, join(data, 'run'));
    t.equal(status, 69, `harness ${name}`);
    t.match(stderr, new RegExp(`^edge-health harness: permission denied: ${data}/run\\S*; run.* sudo.*\n$`), 'one line');
  }
  chmodSync(data, 0o700);

  const token = join(folder, 'token');
  writeFileSync(token, 'secret');
  chmodSync(token, 0);
  writeFileSync(config, `rest: {token_file: ${token}}`);
  refused(['status', '--config', config], 3, `edge-health: the service requires a token: ${sudo(token, 'status')}`);
  refused(['ops', 'list', '--config', config], 3, `edge-health ops: rest.token_file cannot be read: ${sudo(token, 'ops list')}`);
});

t.test('on a read-only disk every command prints one line with what to do', { skip: whyNotMountable() ?? false }, async (t) => {
  const { config } = installation(t);
  const disk = new SmallDisk(t);
  disk.makeReadOnly();
  writeFileSync(config, JSON.stringify({ storage: { path: disk.folder }, rest: { host: '127.0.0.1', port: 1 }, ops: { timezone: 'UTC' } }));
  for (const name of ['collect_metrics', 'collect_alerts', 'backup_logs', 'generate_7day_report']) {
    const { status, stderr, stdout } = ops(config, name);
    t.equal(status, 2, name);
    t.match(stderr, /^edge-health ops: .* is mounted read-only; see dmesg for the disk's errors, then mount it for writing again\n$/);
    t.equal(stdout, '');
  }
  const check = ops(config, 'health_check');
  t.equal(check.status, 2);
  t.match(check.stdout, /^WARNING {2}history: this check could not be saved; .* is mounted read-only; see dmesg/m);
  t.notMatch(check.stderr, /\n {4}at /, 'no stack');
});

t.test('a job that is running is not started again', async (t) => {
  const { config, data } = installation(t);
  const held = lockByHand(data, 'collect_metrics', Date.parse('2026-06-10T12:00:00Z'));
  const refused = ops(config, 'collect_metrics');
  t.match(refused, {
    status: 3,
    stdout: `UNKNOWN   collect_metrics is already running, started manually, process ${process.pid}, since 2026-06-10T12:00:00.000Z`,
  });
  t.match(refused.stdout, 'edge-health ops list');
  const child = ops(config, 'collect_metrics', '--trigger', 'schedule', '--json');
  t.equal(child.status, 75, 'a status of its own for the scheduler');
  t.match(JSON.parse(child.stdout), { status: 'UNKNOWN', error: /is already running/ });
  t.equal(leftRuns(data).size, 0);
  t.notOk(existsSync(join(data, 'metrics')));
  held?.release();

  t.equal(ops(config, 'collect_metrics').status, 1, 'the service does not answer');
  const [left] = [...leftRuns(data).values()];
  t.match(left, { name: 'collect_metrics', run: { status: 'WARNING', exit_code: 1, trigger: 'manual' } });
  t.equal(ops(config, 'collect_metrics', '--trigger', 'schedule').status, 1);
  t.equal(ops(config, 'collect_metrics', '--dry-run').status, 1);
  t.equal(leftRuns(data).size, 1, 'neither what changes nothing nor what the scheduler runs is left for it');
  t.match((await listed(data)).stdout, /\ncollect_metrics .* WARNING +manual +- +1 +0 /, 'it is shown while no scheduler takes it in');
  const free = lockNamed(data, 'collect_metrics');
  t.ok(free);
  free?.release();
});

t.test('a reader of the output that exits is tolerated', async (t) => {
  const { config } = installation(t);
  const child = spawn('/bin/sh', ['-c', `"$0" "$@" | true; echo done`, EDGE_HEALTH, 'ops', 'list', '--config', config]);
  let [output, errors] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  await once(child, 'close');
  t.equal(output, 'done\n');
  t.equal(errors, '');
});

/** The output of `list` for a data folder. */
async function listed(dataFolder: string) {
  const config = { ...DEFAULT_CONFIG, ops: { ...DEFAULT_CONFIG.ops, timezone: 'UTC' } };
  const { document, lines, status } = await list.run({ config, dataFolder, nowMs: Date.now } as JobContext, {
    options: {},
    positionals: [],
  });
  return { status, document: document as OpsDocument, stdout: `${lines.join('\n')}\n` };
}

t.test('list shows the scheduler and every job', async (t) => {
  const { data, folder } = installation(t);
  const never = await listed(data);
  t.match(never, {
    status: 'UNKNOWN',
    stdout: /^UNKNOWN {3}no scheduler runs: none has run on this data folder\n.*systemctl enable --now edge-health-ops/,
  });
  t.match(never.stdout, /\nbackup_logs +0 0 \* \* \* +- +- +- +- +- +0 +0 +0 +0\n/);

  const live = join(folder, 'live');
  mkdirSync(live);
  mkdirSync(join(data, 'ops'));
  symlinkSync(live, join(data, 'ops/live'));
  const now = new Date().toISOString();
  const run = {
    started: '2026-06-10T00:00:00.000Z',
    duration_seconds: 61.2,
    status: 'CRITICAL',
    exit_code: 2,
    trigger: 'catch_up',
    failed: true,
    lines: ['CRITICAL  disk full'],
  } as const;
  const document: OpsDocument = {
    scheduler: { state: 'running', started: '2026-06-09T10:00:00.000Z', beat: now },
    jobs: [
      { ...newRecord('health_check', '*/5 * * * *'), next: '2099-06-11T00:05:00.000Z' },
      {
        ...newRecord('backup_logs', '0 0 * * *'),
        last: { ...run, lines: [...run.lines] },
        runs: 7,
        failures: 1,
        missed: 3,
        next: '2099-06-11T00:00:00.000Z',
      },
    ],
  };
  writeFileSync(join(live, 'jobs.json'), JSON.stringify(document));
  const running = await listed(data);
  t.equal(running.status, 'WARNING', 'a job failed last');
  t.match(running.stdout, /^OK {8}the scheduler has been running since 2026-06-09 10:00\n/);
  t.match(running.stdout, /\nbackup_logs +0 0 \* \* \* +2026-06-10 00:00 +1 min 1 s +CRITICAL +catch_up +2099-06-11 00:00 +7 +1 +3 +0\n/);
  t.match(running.stdout, /\nCRITICAL {2}backup_logs failed last \(exit code 2\):\n {2}CRITICAL {2}disk full\n$/);
  t.same((await listed(data)).document, document);

  const link = { since: now, problem: '/events: 503 too many' };
  const linked = (alerts: 'stream' | 'polling' | 'unreachable') => {
    const jobs = document.jobs.slice(0, 1);
    writeFileSync(join(live, 'jobs.json'), JSON.stringify({ ...document, jobs, notifications: { alerts, ...link } }));
    return listed(data);
  };
  t.match(await linked('stream'), { status: 'OK', stdout: /^OK {8}the scheduler has been running.*\n\njob / });
  t.match(await linked('polling'), { status: 'OK', stdout: /\nOK {8}notifications poll the alerts since .*: \/events: 503 too many\n/ });
  t.match(await linked('unreachable'), { status: 'WARNING', stdout: /\nWARNING {3}no alerts reach notifications since / });

  writeFileSync(
    join(live, 'jobs.json'),
    JSON.stringify({ ...document, scheduler: { ...document.scheduler, beat: '2026-06-10T01:02:00.000Z' } }),
  );
  const killed = await listed(data);
  t.match(killed, { status: 'UNKNOWN', stdout: /^UNKNOWN {3}no scheduler runs: the last beat was 2026-06-10 01:02\n/ });
  t.match(killed.stdout, /\nbackup_logs .* catch_up +- +7 /, 'nothing comes next');
  t.equal((await listed(data)).document.scheduler.state, 'stopped');
});
